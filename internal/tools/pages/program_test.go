package pages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/rng"
)

const root = "../../.."

// peer is the program.
var peer string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "heddle-tools-")
	if err == nil {
		peer = filepath.Join(dir, "heddle")
		var text []byte
		if text, err = exec.Command("go", "build", "-C", root, "-o", peer,
			"./cmd/heddle").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// must runs the program and returns what it prints.
func must(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command(peer, args...)
	var stderr bytesOf
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("heddle %v: %v: %s", args, err, stderr)
	}
	return string(out)
}

type bytesOf []byte

func (b *bytesOf) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }

// start runs the program until the test ends.
func start(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, peer, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = c.Wait() // killed
	})
}

// sites writes a graph of three sites and returns its folder.
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
