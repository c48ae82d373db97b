package size

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Size is how large a package is without its tests and without generated files.
type Size struct {
	Lines     int
	Tokens    int // of Go, without comments
	Exported  int // names of the package, without methods and fields
	Functions []Function
}

// Function is a function or method of a package.
type Function struct {
	Name  string // a method's is Type.Name
	Lines int
}

// Longest returns the longest function; the zero Function where there is none.
func (s Size) Longest() (longest Function) {
	for _, f := range s.Functions {
		if f.Lines > longest.Lines {
			longest = f
		}
	}
	return longest
}

// Measure returns the sizes of the packages below root, by their folders with slashes; root itself is ".".
func Measure(root string) (map[string]Size, error) {
	sizes := map[string]Size{}
	err := Walk(root, func(name string, src []byte) error {
		if strings.HasSuffix(name, "_test.go") || Generated(src) {
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		s := sizes[folder]
		if err := s.add(name, src); err != nil {
			return err
		}
		sizes[folder] = s
		return nil
	})
	if err == nil && len(sizes) == 0 {
		err = fmt.Errorf("%s has no Go files", root)
	}
	return sizes, err
}

// Walk calls visit with every Go file below root, its name relative to root.
func Walk(root string, visit func(name string, src []byte) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return visit(name, src)
	})
}

// add counts one file.
func (s *Size) add(name string, src []byte) error {
	s.Lines += bytes.Count(src, []byte("\n"))
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	main := file.Name.Name == "main"
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			lines := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
			s.Functions = append(s.Functions, Function{functionName(d), lines})
			if d.Recv == nil && d.Name.IsExported() && !main {
				s.Exported++
			}
		case *ast.GenDecl:
			if !main {
				s.Exported += exported(d)
			}
		}
	}
	var scan scanner.Scanner
	scan.Init(set.AddFile(name, -1, len(src)), src, nil, 0)
	for {
		_, tok, text := scan.Scan()
		if tok == token.EOF {
			return nil
		}
		if tok != token.SEMICOLON || text == ";" { // others stand for ends of lines
			s.Tokens++
		}
	}
}

// exported returns how many exported names a declaration has.
func exported(d *ast.GenDecl) (n int) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				n++
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// Generated reports whether a file says that a program wrote it.
func Generated(src []byte) bool {
	head := src[:min(len(src), 200)]
	return bytes.Contains(head, []byte("// Code generated")) && bytes.Contains(head, []byte("DO NOT EDIT"))
}
