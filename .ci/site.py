"""A hook of mkdocs: links from a page to files outside docs lead to the repository."""

import posixpath
import re


def on_page_markdown(markdown, page, config, **_):
    def outside(link):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), link[1]))
        return link[0] if path.startswith("docs/") else f"]({config.repo_url}/blob/main/{path}"

    return re.sub(r"\]\((\.\.?/[^)#]*)", outside, markdown)
