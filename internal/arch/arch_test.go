// Package arch tests who may import whom, and that what a person has to read does not grow.
package arch

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/heddle-gnn/heddle"

//go:embed lattice.txt
var latticeText string

//go:embed bans.txt
var bansText string

// The library must build and keep its rules on servers and on phones: build tags may change what is imported.
var targets = []string{"linux/amd64", "android/arm64", "ios/arm64"}

type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
	Deps       []string
	Error      *struct{ Err string }
}

// short is the path inside the module, "." for its root.
func short(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// listed has the answers of list so far, by target: several tests ask for the same.
var listed = map[string][]pkg{}

// list returns the module's packages as they are built for target, without their tests.
func list(t *testing.T, target string) []pkg {
	t.Helper()
	if all, ok := listed[target]; ok {
		return all
	}
	goos, goarch, _ := strings.Cut(target, "/")
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Name,Imports,Deps,Error", module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", target, err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
			// A program for a phone is linked by its own tools; its packages are looked at all the same.
			if p.Error != nil && p.Name != "main" {
				t.Errorf("%s: %s: %s", target, short(p.ImportPath), p.Error.Err)
			}
			all = append(all, p)
		}
	}
	if !t.Failed() {
		listed[target] = all
	}
	return all
}

// matches reports whether pattern, "a/b" or "a/..." or "...", covers path.
func matches(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	tree, isTree := strings.CutSuffix(pattern, "/...")
	return path == tree || isTree && strings.HasPrefix(path, tree+"/")
}

func anyMatches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// lines returns the lines of text that are not empty or comments.
func lines(text string) (out []string) {
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

// rowOf returns the row of the lattice that names path (−1 = none does). The exact name goes before a tree.
func rowOf(rows []string, path string) int {
	for i, row := range rows {
		if slices.Contains(strings.Fields(row), path) {
			return i
		}
	}
	return slices.IndexFunc(rows, func(row string) bool { return anyMatches(strings.Fields(row), path) })
}

func TestLattice(t *testing.T) {
	rows := lines(latticeText)
	for _, target := range targets {
		for _, p := range list(t, target) {
			from := rowOf(rows, short(p.ImportPath))
			if from < 0 {
				t.Errorf("%s is in no row of lattice.txt", short(p.ImportPath))
				continue
			}
			for _, imp := range p.Imports {
				if imp != module && !strings.HasPrefix(imp, module+"/") {
					continue
				}
				if to := rowOf(rows, short(imp)); to <= from && !nested(p.ImportPath, imp) {
					t.Errorf("%s: %s imports %s, which is not in a row below its own", target, short(p.ImportPath),
						short(imp))
				}
			}
		}
	}
}

// nested reports whether imp is inside p's directory, as mobile/bind is in mobile.
func nested(p, imp string) bool { return p != module && strings.HasPrefix(imp, p+"/") }

func TestBans(t *testing.T) {
	for _, target := range targets {
		all := list(t, target)
		for _, line := range lines(bansText) {
			part := strings.SplitN(line, " : ", 3)
			if len(part) != 3 {
				t.Fatalf("bans.txt: %q, want SET : IMPORTS : why", line)
			}
			set, but, _ := strings.Cut(part[0], " but ")
			for _, p := range all {
				if at := short(p.ImportPath); !anyMatches(strings.Fields(set), at) ||
					anyMatches(strings.Fields(but), at) {
					continue
				}
				for _, imp := range p.Imports {
					if anyMatches(strings.Fields(part[1]), imp) {
						t.Errorf("%s: %s imports %s: %s", target, short(p.ImportPath), imp, part[2])
					}
				}
			}
		}
	}
}

// TestLibraryIsFreeOfTheNetwork checks whole dependency trees: a program that embeds a trainer links no network.
func TestLibraryIsFreeOfTheNetwork(t *testing.T) {
	for _, target := range targets {
		for _, p := range list(t, target) {
			at := short(p.ImportPath)
			if anyMatches([]string{"p2p/...", "internal/p2p/...", "internal/session", "internal/disclosure", "cmd/...",
				"internal/cli/...", "mobile/...", "examples/...", "bench/...", "."}, at) {
				continue
			}
			networks := []string{"github.com/libp2p/...", "github.com/quic-go/...", "github.com/pion/...",
				module + "/p2p/..."}
			if at == "predict" { // a service has its own; without one the program is small
				networks = append(networks, "net/...", "crypto/tls/...")
			}
			for _, dep := range p.Deps {
				if anyMatches(networks, dep) {
					t.Errorf("%s: %s depends on %s", target, at, dep)
				}
			}
		}
	}
}

// TestPhonesLinkLittle: what reads tables, draws charts or parses flags of programs is not in the library of an app.
func TestPhonesLinkLittle(t *testing.T) {
	for _, target := range targets {
		for _, p := range list(t, target) {
			if short(p.ImportPath) != "mobile" {
				continue
			}
			for _, dep := range p.Deps {
				if anyMatches([]string{module + "/graph/dataset/...", module + "/internal/graph/dataset/...",
					module + "/internal/align/...", module + "/internal/cli/...", "github.com/parquet-go/...", module +
						"/internal/svg", "github.com/spf13/...", "html/template", "text/template", "testing"}, dep) {
					t.Errorf("%s: mobile depends on %s", target, dep)
				}
			}
		}
	}
}

// TestBenchIsNoPartOfTheProduct: what only measures may need more than a user has.
func TestBenchIsNoPartOfTheProduct(t *testing.T) {
	for _, p := range list(t, targets[0]) {
		if matches("bench/...", short(p.ImportPath)) {
			continue
		}
		for _, imp := range p.Imports {
			if matches("bench/...", short(imp)) {
				t.Errorf("%s imports %s, which is not part of the product", short(p.ImportPath), short(imp))
			}
		}
	}
}

func TestNames(t *testing.T) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "shared"}
	for _, p := range list(t, targets[0]) {
		if slices.Contains(vague, p.Name) {
			t.Errorf("package %s says nothing about what it holds", short(p.ImportPath))
		}
	}
}

// The largest length of a source file, which should have one idea, and of a function. Assembly decides the length of
// kernels.
const (
	maxLines    = 600
	maxFunction = 80
)

func TestFiles(t *testing.T) {
	seen := 0
	err := walk(root, func(name string, src []byte) error {
		seen++
		if n := bytes.Count(src, []byte("\n")); n > maxLines && !generated(src) {
			t.Errorf("%s has %d lines, more than %d: split it by noun", name, n, maxLines)
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			long := set.Position(f.End()).Line-set.Position(f.Pos()).Line >= maxFunction
			if long && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "kernels/") {
				t.Errorf("%s: %s has more than %d lines: give its parts names", name, f.Name.Name, maxFunction)
			}
			if f.Recv != nil || f.Name.Name != "init" {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s: init starts a goroutine", name)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("looked at %d files only: the root must be two folders up", seen)
	}
}
