package leaf

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
)

// Intake has what leaves have sent one site. It is for use by several goroutines.
type Intake struct {
	agreed Agreement
	site   int
	rules  Rules

	mu      sync.Mutex
	quotas  map[string]*quota
	leaves  map[Token]*quota
	border  *border            // nil = there are no edges between members, or Bind has not been called
	nodes   map[Token][]int32  // of the border, ascending
	taken   map[int32]Token    // the same by node
	open    uint32             // the exchange that is open, or opens next
	numbers func(Token) int    // of a share of it (nil = not known yet)
	held    [2]map[Token]share // of this exchange and of the next one, for which leaves may be ready first
	arrived chan struct{}      // one token: a share of this exchange came
}

// NewIntake returns the intake of one of the collecting sites.
func NewIntake(a Agreement, site int, r Rules) (*Intake, error) {
	if err := errors.Join(a.Validate(), gate.Phones{Cohorts: r.Cohorts, Attest: r.Attest}.Validate()); err != nil {
		return nil, err
	}
	if site < 0 || site >= a.Sites {
		return nil, fmt.Errorf("a site that collects shares must be below %d (got %d)", a.Sites, site)
	}
	if (r.Edges != nil) != a.Edges {
		return nil, fmt.Errorf("rules must have edges if the agreement has, and only then (the agreement: %v)", a.Edges)
	}
	in := &Intake{agreed: a, site: site, rules: r, quotas: map[string]*quota{}, leaves: map[Token]*quota{},
		nodes: map[Token][]int32{}, taken: map[int32]Token{}, held: [2]map[Token]share{{}, {}},
		arrived: make(chan struct{}, 1)}
	for _, c := range r.Cohorts {
		in.quotas[c.Name] = &quota{Cohort: c}
	}
	return in, nil
}

// ErrNotAdmitted is why a leaf is turned away.
var ErrNotAdmitted = errors.New("not admitted")

// Admit admits a leaf as one of a cohort. A leaf that is admitted already stays so.
func (in *Intake) Admit(ctx context.Context, t Token, evidence []byte) error {
	as, err := in.rules.Attest(ctx, t, evidence)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotAdmitted, err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	q, name := in.quotas[as.Cohort], as.Cohort
	switch {
	case in.leaves[t] != nil:
		return nil
	case q == nil:
		return fmt.Errorf("%w: this site has no cohort %q", ErrNotAdmitted, name)
	case q.leaves >= q.Most:
		return fmt.Errorf("%w: cohort %q must have at most %d phones", ErrNotAdmitted, name, q.Most)
	case len(in.leaves) >= in.agreed.Most:
		return fmt.Errorf("%w: a run must have at most %d phones", ErrNotAdmitted, in.agreed.Most)
	}
	nodes, err := in.find(as.Nodes)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotAdmitted, err)
	}
	for _, i := range nodes {
		in.taken[i] = t
	}
	in.nodes[t] = nodes
	q.leaves++
	in.leaves[t] = q
	return nil
}

// find returns the nodes of those names that have edges. in.mu is locked.
func (in *Intake) find(names []string) (nodes []int32, err error) {
	if in.border == nil && in.agreed.Edges {
		return nil, errors.New("the sites have not agreed on the edges yet")
	}
	if in.border == nil {
		return nil, nil
	}
	for _, name := range names {
		i, is := in.border.index[name]
		if !is { // it has no edge
			continue
		}
		if _, other := in.taken[i]; other || in.border.owner[i] >= 0 || slices.Contains(nodes, i) {
			return nil, fmt.Errorf("node %q is another member's", name)
		}
		nodes = append(nodes, i)
	}
	slices.Sort(nodes)
	return nodes, nil
}

// bind makes known which nodes sites have.
func (in *Intake) bind(b *border) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.border = b
}

// resume makes exchange k the one that opens next.
func (in *Intake) resume(k int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.open = uint32(k)
}

// owned returns the nodes of a leaf that have edges.
func (in *Intake) owned(t Token) []int32 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.nodes[t]
}

// admitted returns the leaves that have been.
func (in *Intake) admitted() []Token {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Collect(maps.Keys(in.leaves))
}

// Errors of Accept. Neither is the fault of a leaf: it waits for the sums.
var (
	ErrLate  = errors.New("the exchange has closed")
	ErrEarly = errors.New("the exchange is not open yet")
)

// Accept takes a share that came from the leaf t at the given time. The same share twice counts once. A share of
// another attempt replaces the one before: a leaf that was restarted sends all of its shares again.
func (in *Intake) Accept(t Token, b []byte, now time.Time) error {
	s, err := parseShare(b)
	if err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	q := in.leaves[t]
	switch {
	case q == nil:
		return ErrNotAdmitted
	case !q.take(now):
		return fmt.Errorf("phones of cohort %q must send at most %g messages a second", q.Name, q.Rate)
	case s.token != t:
		return errors.New("the share must be the sender's own")
	case s.run != in.agreed.Run:
		return fmt.Errorf("the run must be %x (got %x)", in.agreed.Run, s.run)
	case s.site != in.site || s.seed == (t.First(in.agreed.Sites) == in.site):
		return fmt.Errorf("the share must be for site %d (got one for %d)", in.site, s.site)
	case s.exchange < in.open:
		return ErrLate
	case s.exchange > in.open+1:
		return ErrEarly
	}
	if err := in.fits(s); err != nil {
		return err
	}
	in.held[s.exchange-in.open][t] = s
	if s.exchange == in.open {
		in.signal()
	}
	return nil
}

// fits returns an error unless a share has as many numbers as are known to be in it.
func (in *Intake) fits(s share) error {
	if s.exchange != in.open || in.numbers == nil || s.seed {
		return nil
	}
	if want := 8 * in.numbers(s.token); len(s.payload) != want {
		return fmt.Errorf("the numbers must have %d bytes (got %d)", want, len(s.payload))
	}
	return nil
}

func (in *Intake) signal() {
	select {
	case in.arrived <- struct{}{}:
	default:
	}
}

// begin sets how many numbers a leaf's share of the open exchange has. Shares that came before and have others are
// dropped. in.mu is locked when numbers is called.
func (in *Intake) begin(numbers func(Token) int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.numbers = numbers
	for t, s := range in.held[0] {
		if in.fits(s) != nil {
			delete(in.held[0], t)
		}
	}
	in.signal()
}

// Shares returns how many leaves the open exchange has a share of.
func (in *Intake) Shares() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.held[0])
}

// Quorum returns a Collector's Until: an exchange closes when `leaves` leaves have sent their share, or after d.
func (in *Intake) Quorum(leaves int, d time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, exchange int) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		for in.Shares() < leaves {
			select {
			case <-in.arrived:
			case <-timer.C:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
}

// close ends the open exchange and returns its shares by tag.
func (in *Intake) close() map[uint64]share {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := make(map[uint64]share, len(in.held[0]))
	for t, s := range in.held[0] {
		all[s.tag(in.nodes[t])] = s
	}
	in.held = [2]map[Token]share{in.held[1], {}}
	in.open++
	in.numbers = nil
	return all
}

// add adds the shares of the listed leaves to x.
func add(x comm.Integers, all map[uint64]share, list []uint64) {
	for _, tag := range list {
		s := all[tag]
		if s.seed {
			stream(s.payload).Add(x.Bits, 0, x.B)
		} else {
			x.Add(s.payload)
		}
	}
}

// common returns the tags that all lists have; each list is ascending.
func common(lists [][]uint64) []uint64 {
	all := slices.Clone(lists[0])
	for _, list := range lists[1:] {
		all = slices.DeleteFunc(all, func(tag uint64) bool {
			_, has := slices.BinarySearch(list, tag)
			return !has
		})
	}
	return all
}
