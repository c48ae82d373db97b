package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	anchor    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	address   = regexp.MustCompile(`https?://\S+`)
	namedDocs = regexp.MustCompile(`\bdocs/[A-Za-z0-9_./-]*[A-Za-z0-9_]`)
	block     = regexp.MustCompile("(?ms)^```.*?^```$")
	inline    = regexp.MustCompile("`[^`\n]*`")
)

// files returns the paths below root, slash-separated, that end in one of the suffixes.
func files(t *testing.T, suffixes ...string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".git") || d.Name() == "runs") {
			return filepath.SkipDir
		}
		if slices.Contains(suffixes, filepath.Ext(path)) {
			paths = append(paths, filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prose returns the text of a page without its code blocks and inline code.
func prose(text string) string {
	return inline.ReplaceAllString(block.ReplaceAllString(text, ""), "")
}

// anchors returns the fragments of the headings of a page.
func anchors(text string) (all []string) {
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		h := anchor.ReplaceAllString(strings.ToLower(h[1]), "")
		all = append(all, strings.ReplaceAll(h, " ", "-"))
	}
	return all
}

// TestLinksResolve follows every relative link of every page, to a file and to a heading.
func TestLinksResolve(t *testing.T) {
	pages := files(t, ".md")
	if len(pages) < 10 {
		t.Fatalf("found %d pages, expected many more: %q", len(pages), pages)
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(prose(read(t, page)), -1) {
			target := m[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path, fragment, _ := strings.Cut(target, "#")
			to := page
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
				continue
			}
			if strings.HasSuffix(to, ".go") { // TestTenTasks looks up the function
				continue
			}
			if fragment != "" && !slices.Contains(anchors(read(t, to)), fragment) {
				t.Errorf("%s links to %s, which has no such heading", page, target)
			}
		}
	}
}

// TestNamedPagesExist checks the paths of pages that code, scripts and settings name. An address names the page of
// another project.
func TestNamedPagesExist(t *testing.T) {
	for _, path := range files(t, ".go", ".py", ".txt", ".yaml", ".html", ".md") {
		for _, name := range namedDocs.FindAllString(address.ReplaceAllString(read(t, path), ""), -1) {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
}

// dialect lists phrases that a reader has to read twice, and their plain form.
var dialect = []struct {
	phrase, plain string // a space in a phrase is also the end of a line
}{
	{`(?i)\b([a-z]*[^e\W]|[a-z]*[^r\W]e) is no [a-z]`, "is not a …"}, // "there is no" is plain
	{`, want\b`, `"X must be Y (got Z)"`},
	{`(?i)\b(is|are) said\b`, "is reported, state"},
	{`(?i)\b(is|are) asked for\b`, "is requested, on request"},
	{`(?i)\btelephone`, "phone"},
	{`(?i)\bin vain\b`, "unknown, without success"},
	{`(?i)\b(is|are) waited for\b`, "the others wait for …"},
	{`(?i)\blost peers?\b`, "failed peer"},
	{`(?i)\bgoes? on (with|from|without)\b`, "continues"},
	{`(?i)\b(is|are|was|were) (given up|begun anew)\b`, "is aborted, is repeated"},
	{`(?i)\b(who|it|that) knocks?\b|\bknocking\b`, "rejoin request"},
	{`(?m)^(<{7}|={7}|>{7})( |$)`, "a merge is not finished"},
}

// TestPlainEnglish looks for the dialect in the pages that users read.
func TestPlainEnglish(t *testing.T) {
	for _, page := range files(t, ".md") {
		if !strings.HasPrefix(page, "docs/") && page != "README.md" && page != "CONTRIBUTING.md" &&
			page != "CHANGELOG.md" {
			continue
		}
		text := prose(read(t, page))
		for _, d := range dialect {
			phrase := regexp.MustCompile(strings.ReplaceAll(d.phrase, " ", `\s`))
			for _, at := range phrase.FindAllStringIndex(text, -1) {
				near := text[max(0, at[0]-40):min(len(text), at[1]+20)]
				t.Errorf("%s: %q: %s", page, strings.Join(strings.Fields(near), " "), d.plain)
			}
		}
	}
}

// TestEveryPageIsListed looks for pages that docs/README.md, or for decisions docs/adr/README.md, does not link to.
func TestEveryPageIsListed(t *testing.T) {
	for _, page := range files(t, ".md") {
		index := "docs/README.md"
		if path.Dir(page) == "docs/adr" && path.Base(page) != "README.md" {
			index = "docs/adr/README.md"
		}
		rel, below := strings.CutPrefix(page, path.Dir(index)+"/")
		if !below || page == index {
			continue
		}
		if !strings.Contains(read(t, index), "("+rel+")") {
			t.Errorf("%s does not link to %s", index, page)
		}
	}
}

// task is one of the ten tasks: a file, its function, and the lines of the body.
var task = regexp.MustCompile(`\[[^]]+\]\(\.\./\.\./([^)]+)#(\w+)\): (\d+)`)

// TestTenTasks: the lines of user code that the page gives are those of the examples, without comments and empty lines.
func TestTenTasks(t *testing.T) {
	rows := task.FindAllStringSubmatch(read(t, stablePage), -1)
	if len(rows) != 10 {
		t.Fatalf("%s has %d tasks, want 10", stablePage, len(rows))
	}
	for _, row := range rows {
		text, fset := read(t, row[1]), token.NewFileSet()
		f, err := parser.ParseFile(fset, row[1], text, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != row[2] {
				continue
			}
			first, last := fset.Position(fn.Body.Lbrace).Line, fset.Position(fn.Body.Rbrace).Line
			for _, line := range strings.Split(text, "\n")[first : last-1] {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					n++
				}
			}
		}
		if row[3] != fmt.Sprint(n) {
			t.Errorf("%s: %s in %s has %d lines (got %s)", stablePage, row[2], row[1], n, row[3])
		}
	}
}
