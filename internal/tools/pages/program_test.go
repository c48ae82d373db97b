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

// patients imports a table of 3000 patients in three hospitals, who are ill by their age and by their contacts, or by
// nothing that a model can know, and returns its folder.
func patients(t *testing.T, known bool) string {
	t.Helper()
	key, dir := rng.New(4), t.TempDir()
	nodes, edges := "id,age,sex,ward,ill,hospital\n", "source,target\n"
	for i := range 3000 {
		k := key.Fold(uint64(i))
		age, group, ill := 20+int(k.Uint64(0)%70), int(k.Uint64(1)%5), "no"
		risk := 0.05
		if known && age > 55 && group < 3 {
			risk = 0.8
		}
		if k.Float64(2) < risk {
			ill = "yes"
		}
		nodes += fmt.Sprintf("p%d,%d,%s,%s,%s,%s\n", i, age, []string{"f", "m"}[k.Uint64(3)%2],
			[]string{"medicine", "medicine", "medicine", "surgery", "outpatient"}[group], ill,
			[]string{"north", "south", "west"}[k.Uint64(5)%3])
		for j := range 3 { // of the same group, mostly
			other := int(k.Uint64(uint64(10+j)) % 3000)
			if o := key.Fold(uint64(other)); int(o.Uint64(1)%5) == group || j == 0 {
				edges += fmt.Sprintf("p%d,p%d\n", i, other)
			}
		}
	}
	for name, text := range map[string]string{"patients.csv": nodes, "contacts.csv": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "import", "--nodes", filepath.Join(dir, "patients.csv"), "--edges", filepath.Join(dir, "contacts.csv"),
		"--label-column", "ill", "--site-column", "hospital", "--out", filepath.Join(dir, "data"))
	return filepath.Join(dir, "data")
}
