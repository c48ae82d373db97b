"""Parses Swift files by tree-sitter-swift and property lists by plistlib, and exits with 1 at a fault.

python parse.py FILE...
"""

import plistlib
import sys

import tree_sitter
import tree_sitter_swift

parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_swift.language()))


def faults(node):
    """Yields what is no Swift or is missing below a node of the tree."""
    if node.is_error or node.is_missing:
        yield node
    for child in node.children:
        yield from faults(child)


failed = False
for path in sys.argv[1:]:
    with open(path, "rb") as f:
        text = f.read()
    if not path.endswith(".swift"):
        plistlib.loads(text)
        continue
    for node in faults(parser.parse(text).root_node):
        failed = True
        line, column = node.start_point
        print(f"{path}:{line + 1}:{column + 1}: must be Swift (got {text[node.start_byte : node.end_byte][:40]!r})")
sys.exit(failed)
