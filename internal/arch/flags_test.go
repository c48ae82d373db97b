package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What has flags: the programs, the benchmarks, and colors of charts (CSS variables begin like flags).
var flagged = []string{"internal/cli/", "cmd/", "bench/", "kernels/_asm/", "internal/svg/", "internal/tools/",
	"packaging/", "mobile/bind/", "examples/"}

// TestNoFlagsInLibraries: a text of a library names an option or a setting, since its user may have no command line.
func TestNoFlagsInLibraries(t *testing.T) {
	flag := regexp.MustCompile(`(^|[^\w-])--[a-z]`)
	seen := 0
	err := walk(root, func(name string, src []byte) error {
		if strings.HasSuffix(name, "_test.go") ||
			slices.ContainsFunc(flagged, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && flag.MatchString(text.Value) {
				t.Errorf("%s: %s has a flag: name the option", set.Position(n.Pos()), text.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 || !flag.MatchString(`"give --id-column"`) {
		t.Errorf("%d files were read, must be all of the libraries", seen)
	}
}
