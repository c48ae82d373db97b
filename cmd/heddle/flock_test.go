package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// flock is the peers of one run, a process each.
type flock struct {
	*crew
	plan  string
	mu    sync.Mutex
	lines []bytes.Buffer // standard error by rank
	procs []*exec.Cmd
	env   []string // more of it, of those that are started
}

// Write of a peer's standard error.
type tail struct {
	f    *flock
	rank int
}

func (w tail) Write(b []byte) (int, error) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	return w.f.lines[w.rank].Write(b)
}

func (f *flock) start(t *testing.T, r int, more ...string) {
	t.Helper()
	args := slices.DeleteFunc(f.join(r, f.plan, append([]string{"--json", f.json(r), "--rejoin", "1m"}, more...)...),
		func(s string) bool { return s == "-q" })
	p := process(t, args...)
	p.Stderr = tail{f, r}
	p.Env = append(p.Env, f.env...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	f.procs[r] = p
}

func (f *flock) json(r int) string { return filepath.Join(f.dir, fmt.Sprintf("result-%d.json", r)) }

func (f *flock) said(r int, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(f.lines[r].String(), text)
}

// until waits for peer r to print text.
func (f *flock) until(t *testing.T, r int, text string) {
	t.Helper()
	for begun := time.Now(); !f.said(r, text); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("peer %d has not said %q:\n%s", r, text, f.lines[r].String())
		}
	}
}
