package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one of a wheel.
type file struct {
	name string
	text []byte
	mode os.FileMode
}

// contents returns the files of a wheel but RECORD (packaging.python.org/specifications/binary-distribution-format).
func contents(root string, binary []byte, version, platform string, windows bool) ([]file, error) {
	var all []file
	for _, pattern := range []string{"*.py", "py.typed"} {
		paths, err := filepath.Glob(filepath.Join(root, "python", "heddle", pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			all = append(all, file{"heddle/" + filepath.Base(path), text, 0o644})
		}
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%s must have the package heddle (got %d files)", filepath.Join(root, "python"),
			len(all))
	}
	program := "heddle/bin/heddle"
	if windows {
		program += ".exe"
	}
	readme, err1 := os.ReadFile(filepath.Join(root, "python", "README.md"))
	licence, err2 := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	info := "heddle_gnn-" + version + ".dist-info/"
	tags := ""
	for one := range strings.SplitSeq(platform, ".") {
		tags += "Tag: py3-none-" + one + "\n"
	}
	return append(all,
		file{program, binary, 0o755},
		file{info + "METADATA", metadata(version, readme), 0o644},
		file{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: heddle\nRoot-Is-Purelib: false\n" + tags), 0o644},
		file{info + "entry_points.txt", // one program has the commands of both
			[]byte("[console_scripts]\nheddle = heddle._program:main\npeer = heddle._program:main\n"), 0o644},
		file{info + "top_level.txt", []byte("heddle\n"), 0o644},
		file{info + "licenses/LICENSE", licence, 0o644}), nil
}

// metadata are the core metadata of the package.
func metadata(version string, readme []byte) []byte {
	return fmt.Appendf(nil, `Metadata-Version: 2.1
Name: heddle-gnn
Version: %s
Summary: Train one graph neural network across sites that cannot share their data
License: Apache-2.0
Project-URL: Source, https://%s
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Requires-Python: >=3.10
Requires-Dist: numpy >=1.24
Provides-Extra: torch
Requires-Dist: torch >=2.0 ; extra == 'torch'
Provides-Extra: pyg
Requires-Dist: torch-geometric >=2.4 ; extra == 'pyg'
Provides-Extra: onnx
Requires-Dist: torch >=2.2 ; extra == 'onnx'
Requires-Dist: onnx >=1.16 ; extra == 'onnx'
Provides-Extra: sklearn
Requires-Dist: scikit-learn >=1.3 ; extra == 'sklearn'
Description-Content-Type: text/markdown

%s`, version, module, readme)
}

// write writes a wheel: the same bytes for the same files.
func write(path string, files []file) (err error) {
	var info string
	var record strings.Builder
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for _, f := range files {
		sum := sha256.Sum256(f.text)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.text))
		if dir, ok := strings.CutSuffix(f.name, "/METADATA"); ok {
			info = dir
		}
	}
	fmt.Fprintf(&record, "%s/RECORD,,\n", info)
	files = append(files, file{info + "/RECORD", []byte(record.String()), 0o644}) // last, as the format recommends
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := zip.NewWriter(f)
	for _, one := range files {
		head := &zip.FileHeader{Name: one.name, Method: zip.Deflate,
			Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		head.SetMode(one.mode)
		w, err := z.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := w.Write(one.text); err != nil {
			return err
		}
	}
	return z.Close()
}
