// Command notices writes the notices of a program: the license, notice and patent files of each package that is linked,
// and Go's own. A module without a license, or with one that is not permitted, is an error.
//
//	go run ./packaging/notices -out NOTICES -targets linux/amd64,windows/arm64 ./cmd/heddle ./cmd/peer
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	out := flag.String("out", "NOTICES", "file to write")
	targets := flag.String("targets", "linux/amd64", "systems that the programs are built for, with commas between")
	tags := flag.String("tags", "", "build tags")
	flag.Parse()
	text, err := notices(strings.Split(*targets, ","), *tags, flag.Args()...)
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "notices: %v\n", err)
		os.Exit(1)
	}
}

// permitted are licenses that Heddle may be distributed with, each with a phrase that no other license has.
var permitted = []struct{ name, phrase string }{
	{"Apache-2.0", "apache license version 2.0"},
	{"Apache-2.0 OR MIT", "spdx-license-identifier: apache-2.0 or mit`"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification, are permitted"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
	{"MPL-2.0", "mozilla public license version 2.0"},
}

// refused are phrases of licenses, and of additions to them, that ask for more.
var refused = []string{"general public license", "commons clause", "business source license",
	"server side public license", "elastic license", "non-commercial", "noncommercial", "all advertising materials"}

// licenses returns the permitted licenses that a text has. Texts differ in line breaks, quoting and the case of
// letters, so phrases are searched in normal form. A text that no phrase fits is an error rather than a guess: a person
// adds the license here, or removes the module.
func licenses(text []byte) (names []string, err error) {
	words := strings.Join(strings.Fields(strings.ToLower(strings.ReplaceAll(string(text), ">", ""))), " ")
	words = strings.NewReplacer("license, version", "license version", "and/or", "and").Replace(words)
	for _, p := range permitted {
		if strings.Contains(words, p.phrase) {
			names = append(names, p.name)
		}
	}
	if slices.Contains(names, "MPL-2.0") { // which defines secondary licenses
		words = regexp.MustCompile(`gnu (lesser |affero )?general public license version`).ReplaceAllString(words, "")
	}
	for _, phrase := range refused {
		if strings.Contains(words, phrase) {
			return nil, fmt.Errorf("a license must not have %q", phrase)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("a license must be permitted by packaging/notices (got %.60q)", words)
	}
	return names, nil
}

// module is a module that a program has packages from.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *struct{ Version string }
}

// linked returns the modules of other authors in some programs, and by module the folders of their linked packages.
func linked(targets []string, tags string, programs ...string) (map[string][]string, map[string]module, error) {
	folders, modules := map[string][]string{}, map[string]module{}
	// One list for all targets: build constraints link other packages on each system, and a release has one file of
	// notices.
	for _, target := range targets {
		system, processor, ok := strings.Cut(target, "/")
		if !ok {
			return nil, nil, fmt.Errorf("a target must be a system and a processor, as linux/amd64 (got %q)", target)
		}
		c := exec.Command("go", append([]string{"list", "-deps", "-tags=" + tags, "-json=Dir,Module"}, programs...)...)
		c.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor)
		c.Stderr = os.Stderr
		text, err := c.Output()
		if err != nil {
			return nil, nil, fmt.Errorf("list packages for %s: %w", target, err)
		}
		for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
			var p struct {
				Dir    string
				Module *module
			}
			if err := d.Decode(&p); err != nil {
				return nil, nil, err
			}
			// A module replaced by a folder is part of this repository; one that is replaced by another version is
			// still a module of others. Without a module a package is Go's, which is added once below.
			if m := p.Module; m != nil && !m.Main && (m.Replace == nil || m.Replace.Version != "") {
				name := m.Path + " " + m.Version
				folders[name], modules[name] = append(folders[name], p.Dir), *m
			}
		}
	}
	return folders, modules, nil
}

// A file of a license may have an ending, but no program's.
var (
	ofLicense = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)`)
	ofNotice  = regexp.MustCompile(`(?i)^(notice|patents|copyright)`)
	ofCode    = regexp.MustCompile(`\.(c|go|h|html|js|mod|py|s|sh)$`)
)

// files calls do for each license or notice of a module that applies to one of its folders.
func files(root string, folders []string, do func(path string, license bool) error) error {
	seen := map[string]bool{}
	for _, dir := range slices.Sorted(slices.Values(folders)) {
		// From the package up to the root of its module: a folder may have a license for its code in addition to the
		// module's.
		for ; !seen[dir] && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			seen[dir] = true
			entries, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				license := ofLicense.MatchString(e.Name())
				if e.IsDir() || ofCode.MatchString(e.Name()) || !license && !ofNotice.MatchString(e.Name()) {
					continue
				}
				if err := do(filepath.Join(dir, e.Name()), license); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// notices returns the notices of some programs: a line for each module with its licenses, and each text once.
func notices(targets []string, tags string, programs ...string) ([]byte, error) {
	folders, modules, err := linked(targets, tags, programs...)
	if err != nil {
		return nil, err
	}
	if len(programs) == 0 || len(modules) == 0 {
		return nil, fmt.Errorf("the packages must be programs with modules of others (got %q)", programs)
	}
	goroot, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, err
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(goroot)), "\n")
	standard := "Go " + version
	folders[standard], modules[standard] = []string{dir}, module{Dir: dir}

	head, all := new(bytes.Buffer), book{owners: map[string][]string{}}
	fmt.Fprintf(head, "Heddle is distributed with these modules, under the licenses below.\n\n")
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		names, err := all.add(name, modules[name].Dir, folders[name])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(head, "%s: %s\n", name, strings.Join(names, ", "))
	}
	for _, text := range all.texts {
		fmt.Fprintf(head, "\n%s\n%s\n\n", strings.Repeat("-", 80), strings.Join(all.owners[text], "\n"))
		fmt.Fprintln(head, strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")))
	}
	return head.Bytes(), nil
}

// book has each text once.
type book struct {
	texts  []string
	owners map[string][]string // by text, its files
}

// add adds the texts of a module at root that apply to some of its folders, and returns its licenses.
func (b *book) add(name, root string, folders []string) (all []string, err error) {
	err = files(root, folders, func(path string, license bool) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if license {
			names, err := licenses(text)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, names...)
		}
		// Many modules have the same text to the byte, as Apache-2.0. Nearly equal ones stay apart, since the copyright
		// line is what the license asks to keep.
		key := string(text)
		if b.owners[key] == nil {
			b.texts = append(b.texts, key)
		}
		b.owners[key] = append(b.owners[key], name+filepath.ToSlash(strings.TrimPrefix(path, root)))
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: the module must have a license", name)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}
