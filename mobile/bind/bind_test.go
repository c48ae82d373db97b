package bind

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write testdata/api.txt anew")

// declared matches what an app can call: declarations in Java classes, and in the header for Objective-C and Swift.
var declared = map[string]*regexp.Regexp{
	"*.java":        regexp.MustCompile(`^\s*(@Override )?public .*`),
	"Mobile.objc.h": regexp.MustCompile(`^(@interface|@protocol|@property|- \(|FOUNDATION_EXPORT) ?.*`),
}

// TestAPI: gobind accepts all that package mobile exports, and makes the API in testdata/api.txt. A change of that file
// is a change for every app.
func TestAPI(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("go", "tool", "gobind", "-lang=java,objc,go", "-tags=no_websocket", "-outdir="+dir,
		"github.com/heddle-gnn/heddle/mobile").CombinedOutput()
	if err != nil {
		t.Fatalf("gobind: %v\n%s", err, out)
	}
	var got bytes.Buffer
	for _, at := range []string{"java/mobile/*.java", "src/gobind/Mobile.objc.h"} {
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(at)))
		if err != nil || len(files) == 0 {
			t.Fatalf("gobind made no %s (%v)", at, err)
		}
		slices.Sort(files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("skipped")) {
				t.Errorf("gobind left something out of %s", filepath.Base(file))
			}
			got.WriteString("# " + filepath.Base(file) + "\n")
			keep := declared[filepath.Base(file)]
			if keep == nil {
				keep = declared["*.java"]
			}
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimRight(line, "\n"); keep.MatchString(line) {
					got.WriteString(line + "\n")
				}
			}
		}
	}
	const golden = "testdata/api.txt"
	if *write {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the API of apps has changed; if that is meant: go test -run TestAPI -write, and say so "+
			"in CHANGELOG.md\n%s", got.String())
	}
}

// The library for Swift: calls of the framework, and methods that the framework calls.
var (
	swiftCall   = regexp.MustCompile(`\b(?:core|config)\.(\w+)\(((?:[^()]|\([^()]*\)|\(\))*)\)`)
	swiftMethod = regexp.MustCompile(`\bfunc (\w+)\(([^)]*)\)`)
)

// TestSwift: the framework's header has all that the library for Swift uses, with these labels, and its module has the
// name of the framework. There is no compiler outside a Mac.
func TestSwift(t *testing.T) {
	text, err := os.ReadFile("testdata/api.txt")
	core, err2 := os.ReadFile("swift/Sources/Heddle/Heddle.swift")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"ios.sh", "swift/Package.swift"} {
		if text, err := os.ReadFile(file); err != nil || !bytes.Contains(text, []byte("HeddleCore.xcframework")) ||
			!bytes.Contains(core, []byte("import HeddleCore\n")) {
			t.Errorf("%s must name the framework whose module is imported (%v)", file, err)
		}
	}
	api := string(text)
	for _, name := range regexp.MustCompile(`\bMobile[A-Z]\w*`).FindAllString(string(core), -1) {
		if name = strings.TrimSuffix(name, "Protocol"); !regexp.MustCompile(`\b` + name + `\b`).MatchString(api) {
			t.Errorf("%s must be in the header", name)
		}
	}
	for _, state := range regexp.MustCompile(`String \w+ = "(\w+)";`).FindAllStringSubmatch(api, -1) {
		if !regexp.MustCompile(`case (\w+, )*` + state[1] + `\b`).Match(core) {
			t.Errorf("State must have %s", state[1])
		}
	}
	_, ours, _ := strings.Cut(string(core), "private final class Keys")
	calls := append(swiftCall.FindAllStringSubmatch(string(core), -1), swiftMethod.FindAllStringSubmatch(ours, -1)...)
	if len(calls) < 30 {
		t.Fatalf("there must be at least 30 calls (got %d)", len(calls))
	}
	for _, call := range calls {
		selector := `(?m)^- \([^)]*\)` + call[1] + `\b`
		for i, argument := range strings.Split(call[2], ",") {
			if label, _, ok := strings.Cut(strings.TrimSpace(argument), ":"); ok && i > 0 {
				selector += `:\([^)]*\)\w+ ` + label + `\b`
			}
		}
		if !regexp.MustCompile(selector).MatchString(api) {
			t.Errorf("%s must be in the header", call[0])
		}
	}
}

// TestSwiftParses reads the files with the parser of HEDDLE_SWIFT, a Python with tree-sitter-swift.
func TestSwiftParses(t *testing.T) {
	python := os.Getenv("HEDDLE_SWIFT")
	if python == "" {
		t.Skip("SKIPPED: no HEDDLE_SWIFT: no Swift is parsed")
	}
	broken := filepath.Join(t.TempDir(), "broken.swift")
	if err := os.WriteFile(broken, []byte("func open( -> Int { 1 }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "parse.py", broken).CombinedOutput(); err == nil ||
		!bytes.Contains(out, []byte("broken.swift:1:")) {
		t.Fatalf("the parser must find a fault (got %v, %s)", err, out)
	}
	args := []string{"parse.py"}
	for _, at := range []string{"swift/*.swift", "swift/Sources/Heddle/*", "../../examples/ios/Phones/*"} {
		files, err := filepath.Glob(at)
		if err != nil || len(files) == 0 {
			t.Fatalf("there must be files at %s (%v)", at, err)
		}
		args = append(args, files...)
	}
	if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
