package dp

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/heddle-gnn/heddle/internal/chain"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/disk/disktest"
	"github.com/heddle-gnn/heddle/train"
)

func statement(t *testing.T, epsilon float64) train.Privacy {
	t.Helper()
	return edges(t, Guarantee{epsilon, 1e-5}, 2).Statement()
}

// Runs spend until the budget is used up; a refused run leaves no entry, and the next run knows what one spent. Two
// runs of ε 1 are less than one of ε 2.
func TestLedgerRefusesWhenSpent(t *testing.T) {
	l := Ledger{Path: filepath.Join(t.TempDir(), "site", "cora.ledger"), Data: "cora", Budget: Guarantee{2, 1e-5}}
	one := statement(t, 1)
	runs := 0
	for ; runs < 10; runs++ {
		err := l.Spend(one, fmt.Sprint("run ", runs))
		if spent := (*spentError)(nil); errors.As(err, &spent) {
			if l.Afford(one) == nil || spent.With <= 2 || spent.Before > 2 || spent.Before < 1 {
				t.Errorf("refused with %v", spent)
			}
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if runs != 3 { // μ of ε 1 is a little more than half of that of ε 2: 3 of them are √3 as much
		t.Errorf("%d runs of ε 1 were allowed in a budget of ε 2", runs)
	}
	if err := l.Afford(statement(t, 0.2)); err != nil {
		t.Errorf("a smaller run: %v", err)
	}
	sum, err := l.Spent()
	total := sum.Gaussian
	if err != nil || sum.Entries != 3 || total.Epsilon(1e-5) > 2 ||
		total != compose(Gaussian(one.Mu), Gaussian(one.Mu), Gaussian(one.Mu)) {
		t.Errorf("spent %g in %d entries, %v", total, sum.Entries, err)
	}
	l.Budget = Guarantee{}
	if err := l.Spend(statement(t, 50), "without a budget"); err != nil {
		t.Error(err)
	}
	l.Budget = Guarantee{2, 0}
	if err := l.Afford(one); err == nil || !strings.Contains(err.Error(), "delta must be above 0") {
		t.Errorf("a budget without δ: %v", err)
	}
	l.Data = "citeseer"
	if err := l.Spend(one, "other"); err == nil ||
		!strings.Contains(err.Error(), "is of other edges, cora (got citeseer)") {
		t.Errorf("the ledger of another data set: %v", err)
	}
}

// A ledger counts runs that send rows separately from what runs spend, and reading a missing ledger does not make it.
func TestLedgerCountsRuns(t *testing.T) {
	l := Ledger{Path: filepath.Join(t.TempDir(), "site", "runs.jsonl"), Data: "cora"}
	if sum, err := l.Spent(); err != nil || sum != (LedgerSum{}) {
		t.Errorf("no ledger: %+v, %v", sum, err)
	}
	if _, err := os.Stat(filepath.Dir(l.Path)); err == nil {
		t.Error("reading has begun a ledger")
	}
	one := statement(t, 1)
	if err := errors.Join(l.Ran(1, 3, "a"), l.Spend(one, "a"), l.Ran(5, 7.5, "b")); err != nil {
		t.Fatal(err)
	}
	if sum, err := l.Spent(); err != nil || sum != (LedgerSum{Gaussian(one.Mu), 1, 6, 10.5}) {
		t.Errorf("%+v, %v; must be six runs of 10.5 numbers and one that spent", sum, err)
	}
	if err := l.Ran(0, 1, "none"); err == nil {
		t.Error("an entry of no runs was written")
	}
	for _, gone := range []string{l.Path, chain.HeadFile(l.Path)} {
		text, err := os.ReadFile(gone)
		if err == nil {
			err = os.Remove(gone)
		}
		if err != nil {
			t.Fatal(err)
		}
		if sum, err := l.Spent(); err == nil {
			t.Errorf("without %s: %+v", gone, sum)
		}
		if err := os.WriteFile(gone, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A ledger with a removed or changed entry is refused, wherever that is. Half a line at the end, of a run whose Spend
// did not succeed, is cut off.
func TestLedgerChanged(t *testing.T) {
	l := Ledger{Path: filepath.Join(t.TempDir(), "ledger"), Data: "cora", Budget: Guarantee{8, 1e-5}}
	for k := range 3 {
		if err := l.Spend(statement(t, 0.5), fmt.Sprint(k)); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))[:3]
	for name, changed := range map[string][]byte{
		"last entry gone":   bytes.Join(lines[:2], nil),
		"first entry gone":  bytes.Join(lines[1:], nil),
		"all gone":          nil,
		"less spent":        bytes.Replace(whole, []byte(`"epsilon":0.5`), []byte(`"epsilon":0.4`), 1),
		"no entry":          append(bytes.Clone(whole), "{}\n"...),
		"last entry halved": whole[:len(whole)-9],
		"an end of another": append(bytes.Join(lines[:2], nil), lines[1]...),
	} {
		if err := os.WriteFile(l.Path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.Spend(statement(t, 0.5), "x"); err == nil || !strings.Contains(err.Error(), l.Path) {
			t.Errorf("%s: %v", name, err)
		}
		if head, err := os.ReadFile(chain.HeadFile(l.Path)); err != nil ||
			!bytes.HasPrefix(head, []byte("00000000000000000003 ")) {
			t.Fatalf("%s: the head is %q now, %v", name, head, err)
		}
	}
	if err := os.WriteFile(l.Path, append(bytes.Clone(whole), `{"seq":4,"ti`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if sum, err := l.Spent(); err != nil || sum.Entries != 3 {
		t.Errorf("half a line: %d entries, %v", sum.Entries, err)
	}
	if err := os.Remove(l.Path); err != nil {
		t.Fatal(err)
	}
	if err := l.Spend(statement(t, 0.5), "x"); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("a ledger that is gone: %v", err)
	}
}

// On a disk that is full or fails at any call, either Spend returns an error, or the entry is there afterwards.
func TestLedgerOnAFullDisk(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 0; ; at++ {
			l := Ledger{Path: filepath.Join(t.TempDir(), "ledger"), Data: "cora", Budget: Guarantee{8, 1e-5}}
			d := &disktest.Failing{FS: disk.OS{}, At: at, Err: fault, Lasts: fault == syscall.ENOSPC}
			l.on = d
			told := 0
			for range 2 {
				if l.Spend(statement(t, 0.5), "run") == nil {
					told++
				}
			}
			l.on = nil
			sum, err := l.Spent()
			entries := sum.Entries
			if err != nil || entries < told {
				t.Fatalf("call %d: %d of %d entries, %v", at, entries, told, err)
			}
			if !d.Reached() {
				if told != 2 || at < 8 {
					t.Errorf("%d entries were written in %d calls", told, at)
				}
				break
			}
		}
	}
}

// If runs spend at the same time, no more are allowed than the budget permits.
func TestLedgerHasOneWriter(t *testing.T) {
	l := Ledger{Path: filepath.Join(t.TempDir(), "ledger"), Data: "cora", Budget: Guarantee{2, 1e-5}}
	one := statement(t, 1)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if err := l.Spend(one, "run"); err != nil && !strings.Contains(err.Error(), "of a budget of 2") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if sum, err := l.Spent(); err != nil || sum.Entries != 3 || sum.Epsilon(1e-5) > 2 {
		t.Errorf("%v, %v", sum, err)
	}
}

func TestGuaranteeText(t *testing.T) {
	for text, want := range map[string]Guarantee{"8": {8, 1e-5}, "0.5,1e-7": {0.5, 1e-7}} {
		var g Guarantee
		if err := g.UnmarshalText([]byte(text)); err != nil || g != want {
			t.Errorf("%q is read as %+v, %v", text, g, err)
		}
	}
	for text, want := range map[string]string{"": "must be a number", "x": "must be a number", "1,": "must be a number",
		"1,x": "must be a number", "0": "epsilon must be above 0", "1,2": "delta must be"} {
		var g Guarantee
		if err := g.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, must be %q", text, err, want)
		}
	}
}
