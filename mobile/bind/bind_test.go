package bind

import (
	"bytes"
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

// TestAPI: gobind takes all that package mobile exports, and makes of it what testdata/api.txt has. A change of that
// file is a change for every app.
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
