package arch

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// apiText has what public packages still show of internal ones: a package, the type, and the exported names that lead
// to it. It may only shrink.
//
//go:embed api.txt
var apiText string

// stablePage lists, in its first table, the packages that are promised.
const stablePage = "docs/reference/stable.md"

// promised returns the import paths of the packages that the page promises.
func promised(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	table, _, _ := strings.Cut(read(t, stablePage), "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| `heddle(/[a-z0-9/]+)?` \\|").FindAllStringSubmatch(table, -1) {
		all[module+m[1]] = true
	}
	if len(all) < 10 {
		t.Fatalf("%s lists %d packages, want more", stablePage, len(all))
	}
	return all
}

// shown returns the types of other packages of the module that exported names of p lead to, and those names: by
// signatures, exported fields and methods, and embedded types.
func shown(p *types.Package, promised map[string]bool) map[string][]string {
	found := map[string][]string{}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		seen := map[types.Type]bool{}
		var walk func(t types.Type)
		named := func(o *types.TypeName) {
			q := o.Pkg()
			if q == nil || promised[q.Path()] || q.Path() != module && !strings.HasPrefix(q.Path(), module+"/") {
				return
			}
			if key := short(q.Path()) + "." + o.Name(); !slices.Contains(found[key], name) {
				found[key] = append(found[key], name)
			}
		}
		// inside walks types that have no name.
		inside := func(t types.Type) {
			switch t := t.(type) {
			case *types.Signature:
				for v := range t.Params().Variables() {
					walk(v.Type())
				}
				for v := range t.Results().Variables() {
					walk(v.Type())
				}
				for p := range t.TypeParams().TypeParams() {
					walk(p.Constraint())
				}
			case *types.Struct:
				for f := range t.Fields() {
					if f.Exported() || f.Embedded() {
						walk(f.Type())
					}
				}
			case *types.Interface:
				for m := range t.Methods() {
					walk(m.Type())
				}
				for e := range t.EmbeddedTypes() {
					walk(e)
				}
			case *types.Union:
				for term := range t.Terms() {
					walk(term.Type())
				}
			case *types.Map:
				walk(t.Key())
				walk(t.Elem())
			case interface{ Elem() types.Type }:
				walk(t.Elem())
			}
		}
		walk = func(t types.Type) {
			if seen[t] {
				return
			}
			seen[t] = true
			switch n := t.(type) {
			case *types.Alias:
				named(n.Obj())
				walk(n.Rhs())
			case *types.Named:
				named(n.Obj())
				for a := range n.TypeArgs().Types() {
					walk(a)
				}
				// an unexported type of p shows its parts if an exported name leads to it
				if n.Obj() == o || n.Obj().Pkg() == p && !n.Obj().Exported() {
					inside(n.Underlying())
					for p := range n.TypeParams().TypeParams() {
						walk(p.Constraint())
					}
					for m := range n.Methods() {
						if m.Exported() {
							walk(m.Type())
						}
					}
				}
			default:
				inside(t)
			}
		}
		walk(o.Type())
	}
	return found
}

// TestPublicSignatures: no exported name of a promised package leads to a type of a package that is not, except those
// of api.txt, each of which is still needed.
func TestPublicSignatures(t *testing.T) {
	public := promised(t)
	paths := slices.Sorted(maps.Keys(public))
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"},
		paths...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	files := map[string]string{}
	for _, line := range lines(string(out)) {
		path, file, _ := strings.Cut(line, "=")
		files[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	var today []string
	for _, path := range paths {
		p, err := from.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		found := shown(p, public)
		for _, of := range slices.Sorted(maps.Keys(found)) {
			today = append(today, fmt.Sprintf("%s %s: %s", short(path), of, strings.Join(found[of], " ")))
		}
	}
	known := lines(apiText)
	for _, one := range today {
		if !slices.Contains(known, one) {
			t.Errorf("a public signature has an internal type: %s", one)
		}
	}
	for _, one := range known {
		if !slices.Contains(today, one) {
			t.Errorf("api.txt lists what is no more: %s", one)
		}
	}
}

// TestShown checks the check: each way in which a name can show an internal type is found, and what is not exported or
// public is not.
func TestShown(t *testing.T) {
	fset := token.NewFileSet()
	checked := map[string]*types.Package{}
	check := func(path, src string) *types.Package {
		f, err := parser.ParseFile(fset, path+".go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := (&types.Config{Importer: importing(checked)}).Check(path, fset, []*ast.File{f}, nil)
		if err != nil {
			t.Fatal(err)
		}
		checked[path] = p
		return p
	}
	check(module+"/internal/in", `package in
		type T struct{}
		func (T) Do() {}
		type K int`)
	check(module+"/open", "package open\ntype T struct{}")
	p := check(module+"/api", `package api
		import ("`+module+`/internal/in"; "`+module+`/open")
		func Param(map[string][]*in.T) {}
		func Result() (func(in.T), error) { return nil, nil }
		type Field struct{ X [2]in.T }
		type Embeds struct{ in.T }
		type Points struct{ *in.T }
		type Promotes struct{ *hidden }
		func (hidden) Do(in.T) {}
		const Constant in.K = 1
		func Returns() (x hidden) { return }
		func Generic[V interface{ *in.T }](V) {}
		type Chain = Alias
		type Calls[V any] struct{ F func(V) in.T }
		type Method struct{}
		func (*Method) Do(in.T) {}
		type Asks interface{ Do(chan in.T) }
		type Alias = in.T
		type Hides struct{ Inner hidden }
		type hidden struct{ X in.T }
		type List[V interface{ in.T | int }] []V
		var Of = List[in.T]{}
		var Value in.T
		type Good struct{ x in.T; Y open.T }
		func (Good) do(in.T) {}
		func unseen(in.T) {}
		func Fine(open.T, Good) {}`)
	public := map[string]bool{p.Path(): true, module + "/open": true}
	got := shown(p, public)
	want := "Alias Asks Calls Chain Embeds Field Generic Hides List Method Of Param Points Promotes Result " +
		"Returns Value"
	if s := strings.Join(got["internal/in.T"], " "); s != want || len(got) != 2 || len(got["internal/in.K"]) != 1 {
		t.Errorf("%v, want internal/in.T by %s, and internal/in.K by Constant", got, want)
	}
}

// importing imports from packages that are checked.
type importing map[string]*types.Package

func (m importing) Import(path string) (*types.Package, error) { return m[path], nil }
