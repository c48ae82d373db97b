package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/rng"
)

// asPeer makes this test binary the program, for tests that start several processes.
const asPeer = "HEDDLE_TEST_AS_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(asPeer) != "" {
		breakDisk()
		main()
	}
	tempInMemory()
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "heddle-tests")) // not the user's ledgers
	// The tests run side by side: most wait for each other's peers, links and time limits.
	flag.Set("test.parallel", "8")
	testenv.MainWithoutLeaks(m)
}

// call runs the program in this process.
func call(ctx context.Context, args ...string) (exit int, stdout, stderr string) {
	var out, err bytes.Buffer
	exit = program.Run(ctx, args, &out, &err)
	return exit, out.String(), err.String()
}

// must runs the program, which must exit with 0, and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	exit, stdout, stderr := call(t.Context(), args...)
	if exit != 0 {
		t.Fatalf("peer %s: exit %d\n%s", strings.Join(args, " "), exit, stderr)
	}
	return stdout
}

// process returns the program as a separate process.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), asPeer+"=1")
	return c
}

// sites writes a small data set of three sites and returns its directory.
func sites(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sites")
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Sites: 3, Classes: 4, Columns: 80, Train: 0.1, Val: 0.1},
		rng.New(3))
	if err := dataset.Write(dir, g); err != nil {
		t.Fatal(err)
	}
	return dir
}

func figures(t *testing.T, path string) (r cli.ResultFile) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, must be %v", what, got, want)
	}
}

// TestNoHome: without a home folder no key is written to the working folder.
func TestNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("plan.yaml", []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"no home folder", "--identity"}, "init")
	refuse(t, 2, []string{"no home folder", "--identity"}, "join", "--plan", "plan.yaml", "--shard", "part-0")
	if files, err := filepath.Glob("*"); err != nil || len(files) != 1 {
		t.Errorf("written: %v %v, must be plan.yaml only", files, err)
	}
}
