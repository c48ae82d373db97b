//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestWriteFile: a link stays and its target gets the text; devices and pipes are written to as they are.
func TestWriteFile(t *testing.T) {
	write := func(path string) error { return put(nil, path) }
	dir := t.TempDir()
	file, link, far := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "far")
	round := filepath.Join(dir, "round")
	for name, target := range map[string]string{link: "file", far: link, round: "round"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // without a target, then with one
		if err := write(far); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(far); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link must stay a link (got %v, %v)", info.Mode(), err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
			t.Errorf("the link's target must have the text (got %q, %v)", text, err)
		}
	}
	if err := write(round); err == nil || !strings.Contains(err.Error(), "link to itself") {
		t.Errorf("a link to itself must be refused (got %v)", err)
	}
	if err := Writable(round); err == nil {
		t.Error("a link to itself must be found before a run")
	}
	if err := Writable(os.DevNull); err != nil {
		t.Error(err)
	}
	before, err := os.Stat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(os.DevNull); err != nil {
		t.Error(err)
	}
	if after, err := os.Stat(os.DevNull); err != nil || !os.SameFile(before, after) {
		t.Errorf("%s must stay the device that it was (%v)", os.DevNull, err)
	}
	pipe := pipeAt(t, filepath.Join(dir, "pipe"))
	if err := write(filepath.Join(dir, "pipe")); err != nil {
		t.Error(err)
	}
	if got := <-pipe; got != "text" {
		t.Errorf("the pipe's reader must get the text (got %q)", got)
	}
}

// pipeAt makes a named pipe and returns what is read from it.
func pipeAt(t *testing.T, path string) <-chan string {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		got <- string(text)
	}()
	return got
}

// TestKeepsWithin: a link that leads out of a run's directory is refused, and what a killed run left is removed; other
// files stay.
func TestKeepsWithin(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"real", ".model.123.tmp", ".other.123.tmp", "model.tmp"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", at("model")); err != nil {
		t.Fatal(err)
	}
	if err := KeepsWithin(dir, "model"); err != nil {
		t.Errorf("a link within the directory: %v", err)
	}
	stays := map[string]bool{"real": true, ".model.123.tmp": false, ".other.123.tmp": true, "model.tmp": true}
	for name, want := range stays {
		if _, err := os.Stat(at(name)); (err == nil) != want {
			t.Errorf("%s must be there: %v (got %v)", name, want, err)
		}
	}
	for _, to := range []string{filepath.Join(other, "theirs"), "..", "nothing"} {
		os.Remove(at("model"))
		if err := os.Symlink(to, at("model")); err != nil {
			t.Fatal(err)
		}
		want := "must not be a link out of its directory (got one to " + to + ")"
		if err := KeepsWithin(dir, "model"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a link to %s: %v", to, err)
		}
		if err := KeepsWithin(dir, "result"); err != nil {
			t.Errorf("a link of another name: %v", err)
		}
	}
}

// TestPeakMemory: the memory of the program that started this one is not counted.
func TestPeakMemory(t *testing.T) {
	if os.Getenv("HEDDLE_TEST_PEAK") != "" {
		fmt.Println("peak", PeakMemory())
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("where there is no VmHWM, the system's figure is taken")
	}
	large := make([]byte, 256<<20)
	for i := 0; i < len(large); i += 4096 {
		large[i] = 1
	}
	c := exec.Command(os.Args[0], "-test.run=TestPeakMemory", "-test.v")
	c.Env = append(os.Environ(), "HEDDLE_TEST_PEAK=1")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var peak int64
	_, line, _ := strings.Cut(string(out), "peak ")
	if fmt.Sscan(line, &peak); peak < 1<<20 || peak > 128<<20 || PeakMemory() < 256<<20 {
		t.Errorf("the child held %d bytes, and this program %d", peak, PeakMemory())
	}
	runtime.KeepAlive(large)
}
