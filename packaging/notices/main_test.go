package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestEachLinkedModule: the notices of each program name every module that is linked, with its text.
func TestEachLinkedModule(t *testing.T) {
	testenv.OnlyLong(t) // it builds the programs
	for _, program := range []string{"heddle", "peer"} {
		path := "github.com/heddle-gnn/heddle/cmd/" + program
		target := strings.TrimSpace(string(output(t, "go", "env", "GOOS"))) + "/" +
			strings.TrimSpace(string(output(t, "go", "env", "GOARCH")))
		text, err := notices([]string{target}, "", path)
		if err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(t.TempDir(), program)
		output(t, "go", "build", "-ldflags=-s -w", "-o", binary, path)
		info, err := buildinfo.ReadFile(binary)
		if err != nil || len(info.Deps) < 20 {
			t.Fatalf("%s: %d modules (%v)", program, len(info.Deps), err)
		}
		for _, m := range info.Deps {
			name := "\n" + m.Path + " " + m.Version
			if !strings.Contains(string(text), name+": ") || !strings.Contains(string(text), name+"/") {
				t.Errorf("%s: the notices must have %s", program, m.Path)
			}
		}
		if strings.Contains(string(text), "go.uber.org/goleak") {
			t.Errorf("%s: goleak is for tests", program)
		}
	}
}

func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	text, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return text
}

// TestLicenses: a license that is not permitted is refused, alone and next to one that is.
func TestLicenses(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person obtaining a copy\nof this software"
	const isc = "Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee"
	for text, want := range map[string][]string{
		mit: {"MIT"}, isc: {"ISC"}, mit + "\n" + isc: {"ISC", "MIT"},
		"Mozilla Public License, version 2.0 ... the GNU Lesser General Public License, Version 2.1": {"MPL-2.0"},
		"GNU GENERAL PUBLIC LICENSE Version 3":                                                       nil,
		mit + "\nor the GNU Affero General Public License":                                           nil,
		"Mozilla Public License, version 2.0 and the GNU General Public License":                     nil,
		mit + "\n\"Commons Clause\" License Condition v1.0":                                          nil,
		"All rights reserved.": nil, "": nil,
	} {
		if got, err := licenses([]byte(text)); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%.40q: %v, %v", text, got, err)
		}
	}
}

// TestFiles: a linked folder brings its own license and its module's, other folders nothing; what is no license is not
// read as one, and a module must have one.
func TestFiles(t *testing.T) {
	const bsd = "Redistribution and use in source and binary forms, with or without modification, are permitted"
	const gpl = "GNU General Public License"
	root := t.TempDir()
	for name, text := range map[string]string{"LICENSE.md": bsd, "NOTICE": "of all", "license.go": gpl,
		"linked/COPYING": "Apache License\nVersion 2.0", "other/LICENSE": gpl, "other/deep/doc.go": "package deep"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := book{owners: map[string][]string{}}
	names, err := all.add("m v1", root, []string{filepath.Join(root, "linked")})
	if err != nil || !slices.Equal(names, []string{"Apache-2.0", "BSD"}) || len(all.texts) != 3 ||
		!slices.Equal(all.owners["of all"], []string{"m v1/NOTICE"}) {
		t.Errorf("%v, %v, %v", names, all.owners, err)
	}
	if _, err := all.add("m v1", root, []string{filepath.Join(root, "other", "deep")}); err == nil ||
		!strings.Contains(err.Error(), "general public license") {
		t.Errorf("a license of a folder above must be refused (%v)", err)
	}
	if _, err := all.add("m v2", t.TempDir(), []string{root}); err == nil {
		t.Error("a module without a license must be refused")
	}
}
