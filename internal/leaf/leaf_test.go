package leaf_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/rng"
)

// open admits everybody as one of cohort "all".
func open(most int, rate float64) leaf.Rules {
	return leaf.Rules{Cohorts: []gate.Cohort{{Name: "all", Most: most, Rate: rate}},
		Attest: func(context.Context, [16]byte, []byte) (gate.Admission, error) {
			return gate.Admission{Cohort: "all"}, nil
		}}
}

// federation is sites and leaves on one network: ranks [0, sites) are sites.
type federation struct {
	agreed     leaf.Agreement
	net        *netsim.Network
	collectors []*leaf.Collector
	intakes    []*leaf.Intake
	leaves     int
	wait       sync.WaitGroup
}

// meet makes a federation of m sites, whose exchanges close with `quorum` leaves or after a second, and serves leaves.
func meet(t *testing.T, sites, leaves, quorum int, secure bool) *federation {
	return meetOver(t, sites, leaves, quorum, secure, nil)
}

// nodesOf returns the names of the nodes of a site or leaf, by rank.
func nodesOf(rank int) []string { return []string{fmt.Sprint(rank, " a"), fmt.Sprint(rank, " b")} }

// meetOver is meet for leaves with edges.
func meetOver(t *testing.T, sites, leaves, quorum int, secure bool, edges *leaf.CrossEdges) *federation {
	f := &federation{agreed: leaf.Agreement{Run: [8]byte{7}, Sites: sites, Least: 2, Most: leaves, Edges: edges != nil},
		leaves: leaves, net: netsim.New(sites+leaves,
			netsim.Config{Links: netsim.Table{All: netsim.Model{Latency: 5 * time.Millisecond}}})}
	f.collectors, f.intakes = make([]*leaf.Collector, sites), make([]*leaf.Intake, sites)
	var all sync.WaitGroup
	for q := range sites {
		all.Go(func() {
			g := comm.NewGroup(f.net.Transport(q), q, sites)
			var inner comm.Reducer = g
			if secure {
				masked, err := secagg.New(t.Context(), secagg.KeyTerms{Least: 2}, g)
				if err != nil {
					t.Error(err)
				}
				inner = masked
			}
			rules := open(leaves, 0)
			if rules.Edges = edges; edges != nil {
				rules.Attest = func(_ context.Context, who [16]byte, _ []byte) (gate.Admission, error) {
					return gate.Admission{Cohort: "all", Nodes: nodesOf(sites + int(who[0]))}, nil
				}
			}
			in, err := leaf.NewIntake(f.agreed, q, rules)
			if err != nil {
				t.Error(err)
			}
			f.intakes[q] = in
			if f.collectors[q], err = leaf.NewCollector(f.agreed, g, inner, in,
				in.Quorum(quorum, time.Second)); err != nil {
				t.Error(err)
			}
			if edges != nil {
				if err := f.collectors[q].Bind(t.Context(), nodesOf(q)); err != nil {
					t.Error(err)
				}
			}
			for p := range leaves {
				f.wait.Go(func() {
					//nolint:errcheck // it ends as leaves leave
					f.collectors[q].Serve(t.Context(), f.net.Transport(q), sites+p)
				})
			}
		})
	}
	all.Wait()
	return f
}

// end ends the run and waits for what served leaves.
func (f *federation) end() {
	for _, s := range f.collectors {
		s.Stop(io.EOF)
	}
	for p := range f.leaves {
		f.net.Transport(len(f.collectors) + p).Close()
	}
	f.wait.Wait()
}

func token(p int) (t leaf.Token) {
	binary.LittleEndian.PutUint64(t[:], uint64(p))
	return t
}

// join returns the reducer of leaf p, whose uplink wrap may change.
func (f *federation) join(t *testing.T, p int, wrap func(leaf.Uplink) leaf.Uplink) *leaf.Contributor {
	link, known, err := leaf.Dial(t.Context(), f.net.Transport(len(f.collectors)+p), f.agreed, token(p), nil,
		nodesOf(len(f.collectors)+p))
	if err != nil {
		t.Error(err)
	}
	return &leaf.Contributor{Agreement: f.agreed, Token: token(p), Uplink: wrap(link), Known: known}
}

func same(u leaf.Uplink) leaf.Uplink { return u }

// numbers returns what a member contributes in one exchange.
func numbers(member, exchange, n int) *comm.Contribution {
	key := rng.New(3).Fold(uint64(member)).Fold(uint64(exchange))
	c := &comm.Contribution{ID: comm.ReduceID{Step: exchange, Kind: "test"}}
	for i := range n {
		c.Update = append(c.Update, float32(math.Ldexp(key.Float64(uint64(i))-0.5, int(key.Uint64(uint64(n+i))%24)-8)))
	}
	for i := range 3 {
		c.Counts = append(c.Counts, int64(key.Uint64(uint64(9*n+i))>>16)-1<<46)
	}
	return c
}

// pooled returns the sums of what the members contribute, computed from all numbers.
func pooled(members []int, exchange, n int) *comm.Contribution {
	sum := &comm.Contribution{Update: make([]float32, n), Counts: make([]int64, 3)}
	for i := range n {
		total := int64(0)
		for _, m := range members {
			total += int64(math.RoundToEven(float64(numbers(m, exchange, n).Update[i]) * (1 << 32)))
		}
		sum.Update[i] = float32(float64(total) * leaf.Step)
	}
	for _, m := range members {
		for i, v := range numbers(m, exchange, n).Counts {
			sum.Counts[i] += v
		}
	}
	return sum
}

func equal(t *testing.T, who string, got, want *comm.Contribution) {
	t.Helper()
	for i, v := range got.Update {
		if math.Float32bits(v) != math.Float32bits(want.Update[i]) {
			t.Errorf("%s: update[%d] must be %v (got %v)", who, i, want.Update[i], v)
			return
		}
	}
	if !slices.Equal(got.Counts, want.Counts) {
		t.Errorf("%s: counts must be %v (got %v)", who, want.Counts, got.Counts)
	}
}

// Sites and leaves compute the sums of the pooled numbers to the last bit, in any order and place, also under the
// sites' masks.
func TestSumsArePooledSums(t *testing.T) {
	for _, test := range []struct {
		sites, leaves int
		secure        bool
	}{{2, 5, false}, {3, 24, false}, {3, 7, true}, {5, 11, true}} {
		t.Run(fmt.Sprintf("%d sites %d leaves secure %v", test.sites, test.leaves, test.secure), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const exchanges, n = 3, 40
				f := meet(t, test.sites, test.leaves, test.leaves, test.secure)
				members := make([]int, test.sites+test.leaves)
				for m := range members {
					members[m] = m
				}
				var all sync.WaitGroup
				for m := range members {
					all.Go(func() {
						var r comm.Reducer
						if m < test.sites {
							r = f.collectors[m]
						} else {
							r = f.join(t, m-test.sites, same)
						}
						for k := range exchanges {
							c := numbers(m, k, n)
							said, err := r.Reduce(t.Context(), c)
							if err != nil || said.Without {
								t.Errorf("member %d, exchange %d: without its part: %v, %v", m, k, said.Without, err)
								return
							}
							equal(t, fmt.Sprintf("member %d, exchange %d", m, k), c, pooled(members, k, n))
						}
					})
				}
				all.Wait()
				f.end()
			})
		})
	}
}

// faulty is an uplink that does something else with a share for one site.
type faulty struct {
	leaf.Uplink
	send func(ctx context.Context, site int, share []byte) error
}

func (u faulty) Send(ctx context.Context, site int, share []byte) error {
	return u.send(ctx, site, share)
}

// A leaf that is gone between its two messages, one that sends everything twice, one that comes late and one that
// starts again in the middle. Sums have exactly the leaves whose shares all sites have, once each.
func TestDropOuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sites, leaves, n = 3, 6, 10
		f := meet(t, sites, leaves, leaves+1, false) // closes after a second
		var all sync.WaitGroup
		without := make([]bool, leaves)
		sum := make([]*comm.Contribution, leaves)
		for p := range leaves {
			all.Go(func() {
				l := f.join(t, p, func(u leaf.Uplink) leaf.Uplink {
					sent := 0
					return faulty{u, func(ctx context.Context, site int, share []byte) error {
						sent++
						switch {
						case p == 1 && sent > 1:
							return errors.New("gone")
						case p == 2:
							if err := u.Send(ctx, site, share); err != nil {
								return err
							}
						case p == 3:
							time.Sleep(2 * time.Second)
						case p == 4 && sent > 1: // the first of another attempt
							again := slices.Clone(share)
							again[40]++
							return u.Send(ctx, site, again)
						}
						return u.Send(ctx, site, share)
					}}
				})
				sum[p] = numbers(sites+p, 0, n)
				said, err := l.Reduce(t.Context(), sum[p])
				if err != nil {
					t.Error(err)
				}
				without[p] = said.Without
			})
		}
		for q := range sites {
			all.Go(func() {
				c := numbers(q, 0, n)
				if _, err := f.collectors[q].Reduce(t.Context(), c); err != nil {
					t.Error(err)
				}
				equal(t, fmt.Sprintf("site %d", q), c, pooled([]int{0, 1, 2, sites + 0, sites + 2, sites + 5}, 0, n))
			})
		}
		all.Wait()
		f.end()
		if want := []bool{false, true, false, true, true, false}; !slices.Equal(without, want) {
			t.Errorf("leaves that are left out must be %v (got %v)", want, without)
		}
		for p, c := range sum {
			equal(t, fmt.Sprintf("leaf %d", p), c, pooled([]int{0, 1, 2, sites + 0, sites + 2, sites + 5}, 0, n))
		}
	})
}

// A sum of too few leaves goes without any.
func TestLeastLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sites, n = 2, 4
		f := meet(t, sites, 2, 2, false)
		var all sync.WaitGroup
		all.Go(func() {
			said, err := f.join(t, 0, same).Reduce(t.Context(), numbers(sites, 0, n))
			if err != nil || !said.Without {
				t.Errorf("the only leaf must be left out: %v", err)
			}
		})
		for q := range sites {
			all.Go(func() {
				c := numbers(q, 0, n)
				if _, err := f.collectors[q].Reduce(t.Context(), c); err != nil {
					t.Error(err)
				}
				equal(t, "site", c, pooled([]int{0, 1}, 0, n))
			})
		}
		all.Wait()
		f.end()
	})
}

// narrow approves of sums of at most that many numbers.
type narrow int

func (n narrow) Rows(comm.Door, string, func(int) int) error { return nil }

func (n narrow) Sum(c *comm.Contribution) error {
	if len(c.Update) > int(n) || len(c.Update) == 0 {
		return comm.Refused("%d numbers must be at most %d", len(c.Update), int(n))
	}
	return nil
}

// TestSumsAreAskedFor: what a site sums with its leaves' shares needs approval as its member wants to sum it, and not
// as the whole numbers that sites exchange for it.
func TestSumsAreAskedFor(t *testing.T) {
	const sites, n = 2, 4
	net := netsim.New(sites, netsim.Config{})
	var all sync.WaitGroup
	for q := range sites {
		all.Go(func() {
			g := comm.NewGroup(net.Transport(q), q, sites)
			defer g.Close()
			g.Under(narrow(n))
			agreed := leaf.Agreement{Run: [8]byte{7}, Sites: sites, Least: 2, Most: 2}
			in, err := leaf.NewIntake(agreed, q, open(2, 0))
			if err != nil {
				t.Error(err)
				return
			}
			at, err := leaf.NewCollector(agreed, g, g, in, in.Quorum(0, time.Nanosecond))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := at.Reduce(t.Context(), numbers(q, 0, n)); err != nil {
				t.Errorf("site %d: %v", q, err)
			}
			if _, err := at.Reduce(t.Context(), numbers(q, 1, n+1)); !errors.Is(err, comm.ErrRefused) {
				t.Errorf("site %d: %v, must be refused", q, err)
			}
		})
	}
	all.Wait()
}

// A leaf that comes later fetches all sums from the first on, sends nothing for those that are closed, and takes part
// in the next.
func TestLateLeafCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sites, n = 2, 4
		f := meet(t, sites, 3, 3, false)
		var all sync.WaitGroup
		var sent []int
		for m := range sites + 3 {
			all.Go(func() {
				var r comm.Reducer
				switch {
				case m < sites:
					r = f.collectors[m]
				case m < sites+2:
					r = f.join(t, m-sites, same)
				default:
					time.Sleep(2500 * time.Millisecond)
					r = f.join(t, 2, func(u leaf.Uplink) leaf.Uplink {
						return faulty{u, func(ctx context.Context, site int, share []byte) error {
							sent = append(sent, int(binary.LittleEndian.Uint32(share[4:])))
							return u.Send(ctx, site, share)
						}}
					})
				}
				for k := range 4 {
					c := numbers(m, k, n)
					if _, err := r.Reduce(t.Context(), c); err != nil {
						t.Error(err)
					}
					members := []int{0, 1, 2, 3}
					if k >= 2 {
						members = append(members, 4)
					}
					equal(t, fmt.Sprintf("member %d, exchange %d", m, k), c, pooled(members, k, n))
				}
			})
		}
		all.Wait()
		f.end()
		// It does not know yet that the first exchange is closed.
		if want := []int{0, 0, 2, 2, 3, 3}; !slices.Equal(sent, want) {
			t.Errorf("the late leaf must send shares of exchanges %v (got %v)", want, sent)
		}
	})
}

// wires keeps what a leaf sends to each site.
type wires struct{ sent [][]byte }

func (w *wires) Send(_ context.Context, _ int, share []byte) error {
	w.sent = append(w.sent, slices.Clone(share))
	return nil
}

func (w *wires) Sums(context.Context, int, int) ([]byte, error) { return nil, io.EOF }

func (w *wires) Parts(context.Context, int) ([][]byte, error) { return nil, io.EOF }

// stream is a random source that follows from a seed.
type stream struct {
	key rng.Key
	at  uint64
}

func (s *stream) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(s.key.Uint64(s.at))
		s.at++
	}
	return len(b), nil
}

// shares returns what a leaf of these numbers sends, by site.
func shares(a leaf.Agreement, who leaf.Token, seed uint64, update []float32) [][]byte {
	w := &wires{sent: nil}
	l := leaf.Contributor{Agreement: a, Token: who, Uplink: w, Random: &stream{key: rng.New(seed)}}
	l.Reduce(context.Background(), &comm.Contribution{Update: update}) //nolint:errcheck // nobody answers
	return w.sent
}

// No site's bytes reveal anything about a leaf's numbers. With equal seeds, all sites except one get equal bytes
// whatever the numbers are, and that one's bytes differ by exactly their difference. Over fresh seeds its bytes are
// uniform. Lengths follow the formula.
func TestSharesTellNothing(t *testing.T) {
	a := leaf.Agreement{Sites: 3, Least: 2, Most: 100}
	who := token(1) // whose first site is 1
	x, y := make([]float32, 64), make([]float32, 64)
	for i := range x {
		x[i], y[i] = float32(i), float32(-3*i)
	}
	one, other := shares(a, who, 5, x), shares(a, who, 5, y)
	total := int64(0)
	for q := range one {
		total += int64(len(one[q]))
		if same := bytes.Equal(one[q], other[q]); same != (q != 1) {
			t.Errorf("site %d: equal bytes for other numbers: %v", q, same)
		}
	}
	if want := a.SentBytes(len(x)); total != want {
		t.Errorf("a leaf must send %d bytes (got %d)", want, total)
	}
	for i := range x {
		at := leaf.HeaderLen + 8*i
		d := binary.LittleEndian.Uint64(one[1][at:]) - binary.LittleEndian.Uint64(other[1][at:])
		if want := int64(x[i]-y[i]) << 32; int64(d) != want {
			t.Fatalf("number %d must differ by %d (got %d)", i, want, int64(d))
		}
	}
	var counts [256]float64
	n := 0.0
	for seed := range uint64(200) {
		for _, b := range shares(a, who, seed, x)[1][leaf.HeaderLen:] {
			counts[b]++
			n++
		}
	}
	chi := 0.0
	for _, c := range counts {
		chi += (c - n/256) * (c - n/256) / (n / 256)
	}
	if chi > 255+6*math.Sqrt(2*255) {
		t.Errorf("the bytes that the first site gets must be uniform: χ² of 255 degrees of freedom is %.0f", chi)
	}
}

// An intake refuses what no leaf sends that keeps to the protocol.
func TestIntakeRefuses(t *testing.T) {
	a := leaf.Agreement{Run: [8]byte{1}, Sites: 2, Least: 2, Most: 3}
	in, err := leaf.NewIntake(a, 0, leaf.Rules{Cohorts: []gate.Cohort{{Name: "phone", Most: 2, Rate: 0.1},
		{Name: "kiosk", Most: 9}},
		Attest: func(_ context.Context, _ [16]byte, evidence []byte) (as gate.Admission, err error) {
			if as.Cohort = string(evidence); as.Cohort == "" {
				err = errors.New("no evidence")
			}
			return as, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	for _, admit := range []struct {
		leaf          int
		evidence, why string
	}{{1, "", "no evidence"}, {1, "robot", "no cohort"}, {1, "phone", ""}, {1, "phone", ""}, {2, "phone", ""},
		{3, "phone", "at most 2"}, {3, "kiosk", ""}, {4, "kiosk", "at most 3"}} {
		err := in.Admit(t.Context(), token(admit.leaf), []byte(admit.evidence))
		if (err == nil) != (admit.why == "") ||
			err != nil && (!errors.Is(err, leaf.ErrNotAdmitted) || !strings.Contains(err.Error(), admit.why)) {
			t.Errorf("leaf %d with %q: %v, must say %q", admit.leaf, admit.evidence, err, admit.why)
		}
	}
	now := time.Unix(0, 0)
	good := func() []byte { return shares(a, token(3), 1, make([]float32, 4))[0] } // a seed for site 0
	for name, test := range map[string]struct {
		from   int
		change func(b []byte) []byte
		want   string
	}{
		"short":      {3, func(b []byte) []byte { return b[:10] }, "at least 48 bytes"},
		"version":    {3, func(b []byte) []byte { b[0] = 9; return b }, "version"},
		"kind":       {3, func(b []byte) []byte { b[1] = 3; return b }, "kind"},
		"seed":       {3, func(b []byte) []byte { return b[:len(b)-1] }, "80 bytes"},
		"numbers":    {3, func(b []byte) []byte { b[1] = 1; return b[:len(b)-1] }, "whole numbers"},
		"site":       {3, func(b []byte) []byte { b[2] = 1; return b }, "for site 0"},
		"role":       {3, func(b []byte) []byte { b[1] = 1; return b }, "for site 0"},
		"early":      {3, func(b []byte) []byte { b[4] = 2; return b }, leaf.ErrEarly.Error()},
		"run":        {3, func(b []byte) []byte { b[8] = 2; return b }, "run must be 01"},
		"other's":    {2, func(b []byte) []byte { return b }, "the sender's own"},
		"unknown":    {9, func(b []byte) []byte { return b }, leaf.ErrNotAdmitted.Error()},
		"good":       {3, func(b []byte) []byte { return b }, ""},
		"good again": {3, func(b []byte) []byte { return b }, ""},
	} {
		err := in.Accept(token(test.from), test.change(good()), now)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, must say %q", name, err, test.want)
		}
	}
	if in.Shares() != 1 {
		t.Errorf("one share came, %d are held", in.Shares())
	}
	// Leaf 2 is a phone; its cohort may send a message in ten seconds, and one at first. That one is spent above.
	b := shares(a, token(2), 1, make([]float32, 4))[0]
	if err := in.Accept(token(2), b, now.Add(time.Second)); err == nil ||
		!strings.Contains(err.Error(), "0.1 messages a second") {
		t.Errorf("too soon: %v", err)
	}
	if err := in.Accept(token(2), b, now.Add(20*time.Second)); err != nil {
		t.Error(err)
	}
	if _, err := leaf.NewIntake(leaf.Agreement{Sites: 1, Least: 1}, 0, leaf.Rules{}); err == nil ||
		!strings.Contains(err.Error(), "between 2 and 64 (got 1)") || !strings.Contains(err.Error(), "need a cohort") {
		t.Errorf("a bad agreement: %v", err)
	}
}

// Numbers that might not fit are refused before anything is sent.
func TestNumbersMustFit(t *testing.T) {
	a := leaf.Agreement{Sites: 2, Least: 2, Most: 1000}
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), 1e9} {
		w := &wires{}
		l := leaf.Contributor{Agreement: a, Uplink: w}
		_, err := l.Reduce(t.Context(), &comm.Contribution{Update: []float32{0, v}})
		if err == nil || !strings.Contains(err.Error(), "update[1] must be between") || len(w.sent) > 0 {
			t.Errorf("%v: %v, %d messages", v, err, len(w.sent))
		}
	}
	l := leaf.Contributor{Agreement: a, Uplink: &wires{}}
	if _, err := l.Reduce(t.Context(), &comm.Contribution{Update: make([]float32, 1<<20+1)}); err == nil ||
		!strings.Contains(err.Error(), "at most 1048576 numbers") {
		t.Errorf("too many numbers: %v", err)
	}
}
