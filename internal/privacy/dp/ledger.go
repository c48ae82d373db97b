package dp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/internal/chain"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/train"
)

// Ledger is a file in which a site keeps what runs have spent of one data set, and the budget that they may spend
// together, or only how many runs sent rows of it. Entries are added only, each with the hash of the one before
// (package chain).
type Ledger struct {
	Path   string
	Data   string    // digest of the edges: the ledger of other edges is refused
	Budget Guarantee // that all entries together must keep (zero = none, entries are only kept)

	on disk.FS // (nil = the machine's)
}

// ledgerEntry is one line of a ledger: what one run spent.
type ledgerEntry struct {
	Seq  uint64 `json:"seq"`  // 1, 2, 3, …
	Time string `json:"time"` // RFC 3339, UTC, seconds
	Data string `json:"data"`
	Run  string `json:"run"` // what the site calls it: the fingerprint of its plan
	train.Privacy
	Prev string `json:"prev"` // SHA-256 of the line before, without its end; zeros for the first
}

// spentError is the error of a run that would spend more than is left of a data set's budget.
type spentError struct {
	Path         string
	Budget       Guarantee
	Before, With float64 // ε at the budget's δ, without the run and with it
}

func (e *spentError) Error() string {
	return fmt.Sprintf("privacy ledger %s: the runs so far have spent ε %.3g at δ %g of edges; "+
		"with this one it would be %.3g, of a budget of %g", e.Path, e.Before, e.Budget.Delta, e.With, e.Budget.Epsilon)
}

// LedgerSum is what the entries of a ledger spent together.
type LedgerSum struct {
	Gaussian
	Entries int
	Runs    int     // that sent rows
	Numbers float64 // that these had of a node
}

// Spent returns what all entries spent. It begins no file.
func (l Ledger) Spent() (sum LedgerSum, err error) {
	if _, err := os.Stat(l.Path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(chain.HeadFile(l.Path)); errors.Is(err, fs.ErrNotExist) {
			return LedgerSum{}, nil
		}
	}
	err = l.open(func(_ *chain.File, spent LedgerSum) error {
		sum = spent
		return nil
	})
	return sum, err
}

// Afford returns a *spentError if the budget has less left than s spends.
func (l Ledger) Afford(s train.Privacy) error {
	return l.open(func(_ *chain.File, spent LedgerSum) error { return l.affords(spent.Gaussian, s) })
}

// Spend adds an entry for s, which is on disk when Spend returns. The error is a *spentError if less is left of the
// budget. After any error nothing may be released.
func (l Ledger) Spend(s train.Privacy, run string) error {
	return l.open(func(f *chain.File, spent LedgerSum) error {
		if err := l.affords(spent.Gaussian, s); err != nil {
			return err
		}
		err := f.Append(func(after chain.Head) ([]byte, error) {
			e := ledgerEntry{Seq: after.Seq + 1, Time: time.Now().UTC().Format(time.RFC3339), Data: l.Data, Run: run,
				Privacy: s, Prev: after.Hash}
			line, err := json.Marshal(e)
			if err == nil {
				_, err = parseEntry(line)
			}
			return line, err
		})
		if err != nil {
			return fmt.Errorf("privacy ledger %s: %w", l.Path, err)
		}
		return nil
	})
}

// Ran adds an entry for n runs that send rows, with `numbers` numbers of a node in all.
func (l Ledger) Ran(n int, numbers float64, run string) error {
	return l.Spend(train.Privacy{Unit: runUnit, Releases: n, Numbers: numbers}, run)
}

// lockWait is how long a ledger is waited for that another process has.
const lockWait = 30 * time.Second

func (l Ledger) affords(spent Gaussian, s train.Privacy) error {
	if l.Budget == (Guarantee{}) {
		return nil
	}
	if err := l.Budget.Validate(); err != nil {
		return fmt.Errorf("budget of the privacy ledger %s: %w", l.Path, err)
	}
	e := &spentError{Path: l.Path, Budget: l.Budget, Before: spent.Epsilon(l.Budget.Delta),
		With: compose(spent, Gaussian(s.Mu)).Epsilon(l.Budget.Delta)}
	if e.With > l.Budget.Epsilon {
		return e
	}
	return nil
}

// open checks the whole ledger and calls do while no other process has it.
func (l Ledger) open(do func(f *chain.File, spent LedgerSum) error) (err error) {
	on := l.on
	if on == nil {
		on = disk.OS{}
	}
	// Half a line comes from a run whose Spend did not return, so it released nothing.
	f, _, err := chain.Open(on, l.Path, placeOf)
	for until := time.Now().Add(lockWait); errors.Is(err, disk.ErrLocked) && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond) // others have it for moments
		f, _, err = chain.Open(on, l.Path, placeOf)
	}
	if err != nil {
		return fmt.Errorf("privacy ledger %s: %w", l.Path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var spent LedgerSum
	_, err = chain.Verify(l.Path, placeOf, func(line []byte) error {
		e, err := parseEntry(line)
		if err != nil {
			return err
		}
		if e.Data != l.Data {
			return fmt.Errorf("entry %d is of other edges, %.16s (got %.16s): use the ledger of these, or a new one "+
				"if no run has read any of them", e.Seq, e.Data, l.Data)
		}
		if e.Unit == runUnit {
			spent.Runs, spent.Numbers = spent.Runs+e.Releases, spent.Numbers+e.Numbers
			return nil
		}
		spent.Gaussian, spent.Entries = compose(spent.Gaussian, Gaussian(e.Mu)), spent.Entries+1
		return nil
	}, f.Head())
	if err != nil {
		return fmt.Errorf("privacy ledger: %w", err)
	}
	return do(f, spent)
}

// parseEntry takes exactly what Spend writes, without the end of the line.
func parseEntry(line []byte) (e ledgerEntry, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("not an entry: %w", err)
	}
	spends := e.Mu > 0 && e.Mu <= math.MaxFloat64
	switch e.Unit {
	case edgeUnit:
	case runUnit:
		spends = e.Mu == 0 && e.Releases > 0 && e.Numbers >= 0
	default:
		return e, fmt.Errorf("the unit of an entry must be %s or %s (got %q)", edgeUnit, runUnit, e.Unit)
	}
	if _, err := time.Parse(time.RFC3339, e.Time); err != nil || e.Seq == 0 || !chain.IsHash(e.Prev) || !spends {
		return e, errors.New("an entry must have seq, time, prev and a mu above 0, or releases above 0 for runs")
	}
	if again, err := json.Marshal(e); err != nil || !bytes.Equal(again, line) {
		return e, errors.New("not written as this program writes it")
	}
	return e, nil
}

// placeOf is the chain.Parse of a ledger.
func placeOf(line []byte) (uint64, string, error) {
	e, err := parseEntry(line)
	return e.Seq, e.Prev, err
}

// UsualDelta is the δ of a budget, or of a plan, that names none.
const UsualDelta = 1e-5

// UnmarshalText reads a guarantee as ε, or as ε,δ.
func (g *Guarantee) UnmarshalText(text []byte) error {
	epsilon, delta, two := strings.Cut(string(text), ",")
	read := Guarantee{Delta: UsualDelta}
	var err, err2 error
	read.Epsilon, err = strconv.ParseFloat(epsilon, 64)
	if two {
		read.Delta, err2 = strconv.ParseFloat(delta, 64)
	}
	if err != nil || err2 != nil {
		return fmt.Errorf("must be a number, epsilon, or two with a comma between, epsilon and delta (got %q)", text)
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*g = read
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (g Guarantee) MarshalText() ([]byte, error) {
	if g == (Guarantee{}) {
		return nil, nil
	}
	return fmt.Appendf(nil, "%g,%g", g.Epsilon, g.Delta), nil
}
