package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// noSync names a file: once it is there, every fsync of a test's peer fails with an I/O error, as on a failing disk.
const noSync = "HEDDLE_TEST_NO_SYNC"

// breakDisk lets syncs fail as described at noSync.
func breakDisk() {
	if path := os.Getenv(noSync); path != "" {
		go failSyncs(path)
	}
}

func failSyncs(from string) {
	for {
		if _, err := os.Stat(from); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	const load, jump, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the number of the system call
		{Code: jump, K: unix.SYS_FSYNC, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		if _, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
			uintptr(unsafe.Pointer(&program))); no != 0 {
			err = no
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no seccomp:", err)
		os.Exit(3)
	}
}

// tempInMemory puts the folders of tests into memory, where programs may run there and it has room: runs would wait for
// the disk at thousands of fsyncs. Tests of a disk that is full or fails make one.
func tempInMemory() {
	const shared, least = "/dev/shm", 2 << 30
	var s unix.Statfs_t
	if os.Getenv("TMPDIR") == "" && unix.Statfs(shared, &s) == nil && s.Flags&unix.MS_NOEXEC == 0 &&
		s.Bavail*uint64(s.Bsize) >= least && unix.Access(shared, unix.W_OK) == nil {
		os.Setenv("TMPDIR", shared)
	}
}

// TestFullDisk: a full disk is not a fault of the input, so the exit code is 1.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := unix.Mount("heddle", disk, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("SKIPPED, not shown here: no small disk can be mounted: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	out := filepath.Join(disk, "out")
	refuse(t, 1, []string{"no space left on device", disk}, "import", "--nodes",
		filepath.Join(hospitalTables, "../patients.csv"), "--out", out)
	refuse(t, 1, []string{"no space left on device", disk}, "partition", "--data", sites(t), "--parts", "2", "-o", out)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var errors bytes.Buffer
	if exit := program.Run(t.Context(), []string{"inspect", sites(t)}, full, &errors); exit != 1 ||
		!strings.Contains(errors.String(), "standard output: ") {
		t.Errorf("full standard output: exit %d, %s", exit, &errors)
	}
}

// TestDiskFailsInARun: the disk of one of three peers is full in the middle of a run, or fails to
// sync. All peers end soon, name that one and the file, and do not wait for it. When the disk works again all
// resume from their checkpoints, and end with one model.
func TestDiskFailsInARun(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	t.Parallel()
	const victim = 1
	data := sites(t)
	for i, test := range []struct{ name, want string }{{"full", "no space left on device"},
		{"sync", "input/output error"}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := &flock{crew: &crew{dir: t.TempDir()}, lines: make([]bytes.Buffer, 3), procs: make([]*exec.Cmd, 3)}
			f.parts = filepath.Join(f.dir, "parts")
			must(t, "partition", "--data", data, "--parts", "3", "-o", f.parts)
			for r := range 3 {
				f.members = append(f.members,
					fmt.Sprintf("site-%d=%s", r, strings.TrimSpace(must(t, "init", "--identity", f.key(r)))))
			}
			var port int
			if _, err := fmt.Sscan(fmt.Sprint(testenv.FreePorts(t, 6)), &port); err != nil {
				t.Fatal(err)
			}
			f.plan = f.crew.plan(t, f.members, "--rounds", "60", "--port", fmt.Sprint(port+3*i), "--peer-timeout", "1s")
			f.own = []string{"--checkpoint-every", "5"}
			state := filepath.Join(f.dir, "state")
			if err := os.Mkdir(state, 0o700); err != nil {
				t.Fatal(err)
			}
			begin := func(r int) {
				at := filepath.Join(f.dir, fmt.Sprintf("state-%d", r))
				if r == victim {
					at = state
				}
				f.start(t, r, "--link", "latency=10ms", "--state", at)
			}
			filler := filepath.Join(f.dir, "fails")
			switch test.name {
			case "full":
				if err := unix.Mount("heddle", state, "tmpfs", 0, "size=4m"); err != nil {
					t.Skipf("SKIPPED, not shown here: no small disk can be mounted: %v", err)
				}
				t.Cleanup(func() { unix.Unmount(state, unix.MNT_DETACH) })
				filler = filepath.Join(state, "filler")
			case "sync":
				f.env = []string{noSync + "=" + filler}
			}
			begin(victim)
			f.env = nil
			begin(0)
			begin(2)
			for begun := time.Now(); len(checkpoints(t, state)) == 0; time.Sleep(5 * time.Millisecond) {
				if time.Since(begun) > time.Minute {
					t.Fatal("no checkpoint after a minute")
				}
			}
			if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); errors.Is(err,
				syscall.ENOSPC) != (test.name == "full") {
				t.Fatalf("filling the disk: %v", err)
			}
			f.same(t, 0, victim, 2)
			said := f.last(victim)
			if strings.Contains(said, "no seccomp") {
				t.Skipf("SKIPPED, not shown here: %s", said)
			}
			if !strings.HasPrefix(said, "heddle: peer 1 (site-1): ended the run: ") ||
				!strings.Contains(said, test.want) || !strings.Contains(said, state) {
				t.Fatalf("says %q, must contain %q and a file in %s", said, test.want, state)
			}
			before := checkpoints(t, state)
			os.Remove(filler)
			for r := range 3 {
				begin(r)
			}
			f.until(t, victim, "resumed from a checkpoint")
			if len(before) == 0 {
				t.Error("nothing was left of what had been saved")
			}
			for r, p := range f.procs {
				if err := p.Wait(); err != nil {
					t.Fatalf("peer %d: %v\n%s", r, err, f.lines[r].String())
				}
				model := func(r int) []byte {
					return contents(t, filepath.Join(f.dir, fmt.Sprintf("out-%d", r), "model.safetensors"))
				}
				if !bytes.Equal(model(r), model(0)) {
					t.Errorf("peer %d made another model", r)
				}
			}
		})
	}
}
