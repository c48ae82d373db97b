package mobile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestIdle: a device that waits for its conditions opens no socket and sets no timer, so that nothing wakes the
// process. How often threads are woken counts on a machine that does nothing else: HEDDLE_QUIET=1 declares that this
// one is.
func TestIdle(t *testing.T) {
	s := newSites(t, 2, "")
	s.plan = []byte(strings.Replace(string(s.plan), "phone_when: always", "phone_when: charging", 1))
	files, alone, quiet := openFiles(t), 0, os.Getenv("HEDDLE_QUIET") != ""
	if quiet {
		alone = quietest(t)
	}
	d, w := s.phone(t, t.TempDir(), ""), newWatcher()
	if err := d.Start(w); err != nil {
		t.Fatal(err)
	}
	w.until(t, Waiting)
	if quiet {
		waiting := quietest(t)
		t.Logf("woken %d times in a second by this test alone, %d with a device that waits", alone, waiting)
		if waiting > alone+3 {
			t.Errorf("a device that waits is woken %d times in a second, must be %d, by this test alone", waiting,
				alone)
		}
	} else {
		t.Log("wake-ups are not counted: set HEDDLE_QUIET=1 on a machine that does nothing else")
	}
	if n := openFiles(t); n > files {
		t.Errorf("a device that waits has %d files and sockets open, must have %d", n, files)
	}
}

// quietest returns how often this process is woken in a second, the least of three: the machine may do so once, a timer
// does each time.
func quietest(t *testing.T) int {
	t.Helper()
	least := 0
	for try := range 3 {
		time.Sleep(50 * time.Millisecond) // what was begun before ends
		before := wakeUps(t)
		time.Sleep(500 * time.Millisecond)
		if n := 2 * (wakeUps(t) - before); try == 0 || n < least {
			least = n
		}
	}
	return least
}

// wakeUps returns how often the threads of this process have gone to sleep, and so were woken.
func wakeUps(t *testing.T) (all int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(paths) == 0 {
		t.Fatalf("threads: %v, %d of them", err, len(paths))
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for line := range strings.Lines(string(text)) {
			n := 0
			if _, err := fmt.Sscanf(line, "voluntary_ctxt_switches: %d", &n); err == nil {
				all += n
			}
		}
	}
	return all
}
