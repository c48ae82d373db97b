package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// walk calls visit with every Go file below root, its name relative to root.
func walk(root string, visit func(name string, src []byte) error) error {
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

// generated reports whether a file states that a program wrote it.
func generated(src []byte) bool {
	head := src[:min(len(src), 200)]
	return bytes.Contains(head, []byte("// Code generated")) && bytes.Contains(head, []byte("DO NOT EDIT"))
}
