package external

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/rng"
)

// full lets no file of this process grow beyond the limit, like a full disk, until the function that it returns is
// called.
func full(t *testing.T, most uint64) (again func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ) // else it ends the process
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	}
}

// TestDiskFull: if the disk is full nothing is left, and when there is space again the same call succeeds.
func TestDiskFull(t *testing.T) {
	// In a separate process: the limit would apply to all that this one writes, including the log of go test's cache.
	const alone = "HEDDLE_TEST_DISK_FULL"
	if os.Getenv(alone) == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestDiskFull$")
		c.Env = append(os.Environ(), alone+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	g, dir := graphtest.Communities(6000, 8, 6, 0.8, rng.New(8)), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := WriteGraph(at("graph"), g); err != nil {
		t.Fatal(err)
	}
	s, err := OpenGraph(at("graph"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	job := Job{Policy: policy(t, "fennel"), Parts: 3, Meta: shard.Meta{Policy: "fennel", Seed: 1}}
	if _, _, err := s.Write(at("want"), job); err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g, job.Policy, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []uint64{0, 100, 5_000, 20_000} {
		again := full(t, most)
		_, memory := shard.WriteDir(at("memory"), shards, job.Meta)
		_, _, stored := s.Write(at("stored"), job)
		graph := WriteGraph(at("copy"), g)
		again()
		for name, err := range map[string]error{"memory": memory, "stored": stored, "copy": graph} {
			if !errors.Is(err, syscall.EFBIG) {
				t.Errorf("%d bytes a file, %s: %v", most, name, err)
			}
			if _, err := os.Stat(at(name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%d bytes a file: %s has its name: %v", most, name, err)
			}
		}
		for _, name := range []string{"memory", "stored"} {
			if _, err := os.Stat(shard.Incomplete(at(name))); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%d bytes a file: something is left: %v", most, err)
			}
		}
	}
	if _, _, err := s.Write(at("stored"), job); err != nil {
		t.Fatal(err)
	}
	if _, err := shard.WriteDir(at("memory"), shards, job.Meta); err != nil {
		t.Fatal(err)
	}
	same(t, "after a full disk", files(t, at("stored")), files(t, at("want")))
	same(t, "in memory, after a full disk", files(t, at("memory")), files(t, at("want")))
}

// TestUnreadable: directories instead of files, files instead of directories, and what may not be read or written.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(at("d/manifest.json"), 0o755), os.WriteFile(at("file"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(graphtest.Path(10), partition.Contiguous{}, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	graph := func(path string) error {
		s, err := OpenGraph(path)
		if err == nil {
			s.Close()
		}
		return err
	}
	part := func(path string) error { _, _, err := shard.ReadShard(path); return err }
	write := func(path string) error { _, err := shard.WriteDir(path, shards, shard.Meta{}); return err }
	type test struct {
		err  error
		want string
	}
	tests := []test{
		{graph(dir), dir}, {graph(at("none")), "none"}, {graph(at("file")), "file"},
		{part(at("d/part-0")), "manifest.json"}, {part(at("none/part-0")), "manifest.json"},
		{part(at("file/part-0")), "manifest.json"},
		{write(at("file")), "file"}, {write(at("file/out")), "file"}, {write(at("d")), "d"},
	}
	if os.Geteuid() != 0 { // who may read everything
		if err := errors.Join(os.Mkdir(at("locked"), 0), os.WriteFile(at("secret"), nil, 0)); err != nil {
			t.Fatal(err)
		}
		tests = append(tests, test{graph(at("secret")), "permission denied"},
			test{part(at("locked/part-0")), "permission denied"}, test{write(at("locked/out")), "permission denied"})
	}
	for _, c := range tests {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, must be %q", c.err, c.want)
		}
	}
}
