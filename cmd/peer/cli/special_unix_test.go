//go:build unix

package cli

import (
	"os"
	"path/filepath"
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
