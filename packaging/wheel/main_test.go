package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWheel builds the wheel for this system twice, installs it in a bare environment of the oldest and of the newest
// Python here, and runs the lines of the README, whose figure must be that of heddle demo.
func TestWheel(t *testing.T) {
	if testing.Short() || os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("SKIPPED: builds the program and installs it; HEDDLE_LONG=1 runs it")
	}
	target := runtime.GOOS + "/" + runtime.GOARCH
	var wheels [2]string
	var bytesOf [2][]byte
	for k := range wheels {
		path, err := build(t.Context(), t.TempDir(), "1.2.3", target, "")
		if err != nil {
			t.Fatal(err)
		}
		if bytesOf[k], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		wheels[k] = path
	}
	if !bytes.Equal(bytesOf[0], bytesOf[1]) {
		t.Error("two builds must give the same bytes")
	}
	checkRecord(t, wheels[0])
	all := interpreters(t)
	if len(all) == 0 {
		t.Skip("SKIPPED: installing the wheel: no Python of 3.10 or later with venv")
	}
	for _, python := range all {
		t.Run(strings.ReplaceAll(filepath.Base(filepath.Dir(filepath.Dir(python))), "/", "-"),
			func(t *testing.T) { installed(t, python, wheels[0]) })
	}
}

// interpreters returns the oldest Python here of at least 3.10, and the newest if it is another version.
func interpreters(t *testing.T) []string {
	home, _ := os.UserHomeDir()
	names, _ := filepath.Glob(filepath.Join(cmp.Or(os.Getenv("PYENV_ROOT"), filepath.Join(home, ".pyenv")), "versions",
		"*", "bin", "python3"))
	if path, err := exec.LookPath("python3"); err == nil {
		names = append(names, path)
	}
	byVersion := map[int]string{}
	for _, name := range names {
		minor, err := exec.Command(name, "-c", "import sys, venv, ensurepip; print(sys.version_info[1])").Output()
		if n, bad := strconv.Atoi(strings.TrimSpace(string(minor))); err == nil && bad == nil && n >= 10 {
			byVersion[n] = name
		}
	}
	var versions []int
	for n := range byVersion {
		versions = append(versions, n)
	}
	slices.Sort(versions)
	if len(versions) > 2 {
		versions = []int{versions[0], versions[len(versions)-1]}
	}
	var all []string
	for _, n := range versions {
		all = append(all, byVersion[n])
	}
	return all
}

// installed installs the wheel for an interpreter, and uses it.
func installed(t *testing.T, python, wheel string) {
	dir := t.TempDir()
	if text, err := exec.Command(python, "-m", "venv", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	python = filepath.Join(dir, "bin", "python")
	if runtime.GOOS == "windows" {
		python = filepath.Join(dir, "Scripts", "python.exe")
	}
	if text, err := exec.Command(python, "-m", "pip", "install", "-q", "numpy").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: pip cannot install numpy here: %s", text)
	}
	run := func(args ...string) string {
		t.Helper()
		c := exec.Command(python, args...)
		c.Dir = dir
		var out, log bytes.Buffer
		c.Stdout, c.Stderr = &out, &log
		if err := c.Run(); err != nil {
			t.Fatalf("%v\n%s", err, &log)
		}
		return out.String()
	}
	run("-m", "pip", "install", "-q", "--no-index", wheel)
	if got := run("-m", "pip", "show", "heddle-gnn"); !strings.Contains(got, "Version: 1.2.3") ||
		!strings.Contains(got, "Requires: numpy\n") {
		t.Errorf("pip says\n%s", got)
	}
	if got := run("-m", "heddle", "--version"); !strings.HasPrefix(got, "heddle version") {
		t.Errorf("python -m heddle must be peer (got %q)", got)
	}
	for _, name := range []string{"heddle", "peer"} {
		const has = "import shutil, os, sys; print(shutil.which(sys.argv[1], path=os.path.dirname(sys.executable)))"
		if got := run("-c", has, name); got == "None\n" {
			t.Errorf("the wheel must have the command %s", name)
		}
	}
	lines, want := readme(t)
	if got := run("-c", lines); got != want {
		t.Errorf("the lines of the README print\n%sthe README shows\n%s", got, want)
	}
	run("-m", "heddle", "demo", "--seeds", "1", "--quiet", "--out", "demo")
	var demo struct {
		Ways []struct {
			Way  string
			Runs []struct{ Test float64 }
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "demo", "compare.json"))
	if err == nil {
		err = json.Unmarshal(text, &demo)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range demo.Ways {
		if shown := fmt.Sprintf("test accuracy %.3f\n", way.Runs[0].Test); way.Way == "together" && shown != want {
			t.Errorf("heddle demo has %qthe README %q", shown, want)
		}
	}
}

// readme returns the lines of Python in the README, and what it shows that they print.
func readme(t *testing.T) (lines, printed string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "```python\n")
	lines, after, ok2 := strings.Cut(after, "```\n")
	_, after, ok3 := strings.Cut(after, "```text\n")
	printed, _, ok4 := strings.Cut(after, "```\n")
	if !ok || !ok2 || !ok3 || !ok4 {
		t.Fatal("the README must have lines of Python and what they print")
	}
	return lines, printed
}

// checkRecord compares the files of a wheel with its RECORD.
func checkRecord(t *testing.T, path string) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var want strings.Builder
	got := ""
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, "/RECORD") {
			got = string(text)
			fmt.Fprintf(&want, "%s,,\n", f.Name)
			continue
		}
		sum := sha256.Sum256(text)
		fmt.Fprintf(&want, "%s,sha256=%s,%d\n", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
		if program := strings.HasPrefix(f.Name, "heddle/bin/"); program != (f.Mode()&0o111 != 0) {
			t.Errorf("%s has mode %v", f.Name, f.Mode())
		}
	}
	if got != want.String() {
		t.Errorf("RECORD is\n%smust be\n%s", got, want.String())
	}
}

// TestTargets makes a wheel of each program in the directory that HEDDLE_PROGRAMS names, and checks its tags and that
// the program inside is for that system.
func TestTargets(t *testing.T) {
	programs := os.Getenv("HEDDLE_PROGRAMS")
	if programs == "" {
		t.Skip("SKIPPED: HEDDLE_PROGRAMS names no directory of programs for other systems")
	}
	entries, err := os.ReadDir(programs)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s must have programs: %v", programs, err)
	}
	machines := map[string]string{"amd64": "py3-none-%s_x86_64", "arm64": "py3-none-%s_aarch64"}
	for _, entry := range entries {
		system, processor, _ := strings.Cut(entry.Name(), "-")
		path, err := build(t.Context(), t.TempDir(), "1.2.3", system+"/"+processor, programs)
		if err != nil {
			t.Fatal(err)
		}
		tag := map[string]string{"darwin/amd64": "py3-none-macosx_12_0_x86_64",
			"darwin/arm64": "py3-none-macosx_12_0_arm64", "windows/amd64": "py3-none-win_amd64",
			"windows/arm64": "py3-none-win_arm64"}[system+"/"+processor]
		if system == "linux" {
			tag = fmt.Sprintf(machines[processor], "manylinux_2_17")
		}
		name := filepath.Base(path)
		if !strings.HasPrefix(name, "heddle_gnn-1.2.3-"+tag) {
			t.Errorf("%s must have the tag %s", name, tag)
		}
		checkRecord(t, path)
		z, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasPrefix(f.Name, "heddle/bin/"):
				if got := systemOf(text); got != system+"/"+processor {
					t.Errorf("%s: the program is for %s", name, got)
				}
				if strings.HasSuffix(f.Name, ".exe") != (system == "windows") {
					t.Errorf("%s: the program is called %s", name, f.Name)
				}
			case strings.HasSuffix(f.Name, "/WHEEL"):
				for one := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(name,
					"heddle_gnn-1.2.3-py3-none-"), ".whl"), ".") {
					if !strings.Contains(string(text), "Tag: py3-none-"+one+"\n") {
						t.Errorf("%s: WHEEL has no tag %s", name, one)
					}
				}
			}
		}
		z.Close()
	}
}

// systemOf returns the system that a program is for, by its header.
func systemOf(program []byte) string {
	r := bytes.NewReader(program)
	if f, err := elf.NewFile(r); err == nil {
		return "linux/" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	}
	if f, err := macho.NewFile(r); err == nil {
		return "darwin/" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]
	}
	if f, err := pe.NewFile(r); err == nil {
		return "windows/" + map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64",
			pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[f.Machine]
	}
	return "no known system"
}
