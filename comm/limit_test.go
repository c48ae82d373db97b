package comm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// liar changes the frames that a member sends.
type liar struct {
	comm.Transport
	lie func(step byte, body []byte)
}

func (l liar) Send(ctx context.Context, to int, head, body []byte) error {
	body = slices.Clone(body)
	l.lie(head[3], body)
	return l.Transport.Send(ctx, to, head, body)
}

// someLie returns groups of which member who changes the frames of allreduce's given step.
func someLie(size, who int, step byte, change func(b []byte)) []*comm.Group {
	net, gs := netsim.New(size, netsim.Config{}), make([]*comm.Group, size)
	for r := range gs {
		t := net.Transport(r)
		if r == who {
			t = liar{t, func(s byte, b []byte) {
				if s == step {
					change(b)
				}
			}}
		}
		gs[r] = comm.NewGroup(t, r, size)
	}
	return gs
}

func putFloat(b []byte, v float64) { binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v))) }

// Steps of an allreduce, as allreduce.go has them.
const (
	partStep, countStep, sumStep, countSumStep, gridStep = 1, 2, 3, 4, 5
)

// TestLiesAreNamed: if one member sends what no honest member can send, every other member ends with an error that
// names it, even members that it has sent nothing to.
func TestLiesAreNamed(t *testing.T) {
	t.Parallel()
	limit := func(int) comm.Limit { return comm.Limit{What: "a share", Least: -0.1, Most: 2} }
	count := func(int) comm.Limit { return comm.Limit{What: "a count", Least: 0, Most: 7} }
	for name, test := range map[string]struct {
		n, bits int
		who     int
		step    byte
		change  func(b []byte)
		want    string
	}{
		"NaN, star": {10, 0, 2, partStep, func(b []byte) { putFloat(b[8:], math.NaN()) },
			"update[2] must be finite (got NaN)"},
		"infinite, chunks": {10_000, 0, 3, partStep, func(b []byte) { putFloat(b[4:], math.Inf(-1)) },
			"must be finite (got -Inf)"},
		"too large": {10, 0, 1, partStep, func(b []byte) { putFloat(b, 1e9) }, "a share must be at most 2 (got 1e+09)"},
		"too small, chunks": {10_000, 0, 1, partStep, func(b []byte) { putFloat(b, -1.001) },
			"a share must be at least -0.1 (got -1.001"},
		"negative count": {10, 0, 3, countStep, func(b []byte) { b[7] = 0xff },
			"a count must be at least 0 (got -7.2"},
		"too large a count": {10, 16, 3, countStep, func(b []byte) { b[8] = 8 }, "a count must be at most 7 (got 8)"},
		"a narrow count":    {11, 0, 3, countStep, func(b []byte) { b[1] = 1 }, "a count must be at most 7 (got 259)"},
		"a wide count":      {11, 0, 3, countStep, func(b []byte) { b[2] = 9 }, "a count must be at most 7 (got 9)"},
		"sum of narrow counts": {11, 0, 0, countSumStep, func(b []byte) { b[0] = 200 },
			"the sum of a count must be at most 24 (got 200)"},
		"sum too large": {10_000, 0, 2, sumStep, func(b []byte) { putFloat(b, 100) },
			"the sum of a share must be at most 6.5 (got 100)"},
		"sum too small": {10_000, 0, 2, sumStep, func(b []byte) { putFloat(b, math.NaN()) },
			"the sum of a share must be at least 0.2"},
		"sum in fixed point": {10_000, 16, 2, sumStep, func(b []byte) { b[1] = 0x80 },
			"the sum of a share must be at least 0.2"},
		"sum of counts": {10, 0, 0, countSumStep, func(b []byte) { b[0] = 200 },
			"the sum of a count must be at most 24 (got 200)"},
		"large magnitude": {10, 16, 1, gridStep, func(b []byte) { putFloat(b, 3) },
			"the largest magnitude of a share must be at most 2 (got 3)"},
		"beyond its magnitude": {10, 8, 1, partStep, func(b []byte) { b[3] = 0x7f }, "a share must be at most 2 (got"},
		"a magnitude, infinite": {10, 8, 1, gridStep, func(b []byte) { putFloat(b, math.Inf(1)) },
			"a largest magnitude must be between 0 and"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 4
			gs := someLie(size, test.who, test.step, test.change)
			errs := each(gs, func(g *comm.Group) error {
				c := &comm.Contribution{Update: make([]float32, test.n), Counts: []int64{3, 3}, Bits: test.bits,
					UpdateLimit: limit, CountLimit: count}
				if test.n == 11 {
					c.CountBits, c.Wide = 16, func(i int) bool { return i == 1 }
				}
				for i := range c.Update {
					c.Update[i] = 0.5
				}
				if _, err := g.Reduce(t.Context(), c); err != nil {
					return err
				}
				return g.Barrier(t.Context())
			})
			for r, err := range errs {
				fault, ok := errors.AsType[*comm.PeerError](err)
				if !errors.Is(err, comm.ErrRefused) || !ok || fault.Rank != test.who ||
					!strings.Contains(err.Error(), test.want) {
					t.Errorf("peer %d must refuse peer %d since %q (got %v)", r, test.who, test.want, err)
				}
			}
		})
	}
}

// TestLimitsAreNoAlarm: numbers at their limits pass in every form of a sum, and so do numbers that are not finite at
// all members alike.
func TestLimitsAreNoAlarm(t *testing.T) {
	for _, size := range []int{1, 2, 3, 7} {
		for _, bits := range []int{0, 8, 16, 32} {
			for _, n := range []int{12, 9000} {
				_, gs := groups(size, netsim.Config{})
				must(t, each(gs, func(g *comm.Group) error {
					c := &comm.Contribution{Update: make([]float32, n), Counts: []int64{int64(g.Rank())}, Bits: bits,
						Columns: 3, UpdateLimit: func(i int) comm.Limit {
							return comm.Limit{What: "a number", Least: -math.Exp2(float64(i%3)) / 3,
								Most: float64(i%3) / 7}
						},
						CountLimit: func(int) comm.Limit { return comm.Limit{Most: float64(size - 1)} }}
					for i := range c.Update {
						if l := c.UpdateLimit(i); (i+g.Rank())%4 == 0 {
							c.Update[i] = float32(l.Most)
						} else {
							c.Update[i] = float32(l.Least)
						}
					}
					_, err := g.Reduce(t.Context(), c)
					return err
				}))
			}
		}
	}
	_, gs := groups(3, netsim.Config{})
	must(t, each(gs, func(g *comm.Group) error {
		x := []float32{1, 2, float32(math.NaN())}
		if err := g.AllReduce(t.Context(), comm.Reduce, x); err != nil || x[1] != 6 || x[2] == x[2] {
			t.Errorf("what is not finite at all members must be summed (got %v, %v)", x, err)
		}
		return nil
	}))
}

// TestRefuseTellsAll: a member that refuses another one between two operations also informs members that listen to
// neither of them. In a group of two, the other member is at fault for what this one has not sent. Other errors are
// nobody's business.
func TestRefuseTellsAll(t *testing.T) {
	for _, size := range []int{2, 5} {
		for _, culprit := range []int{0, -1} {
			_, gs := groups(size, netsim.Config{})
			last := size - 1
			errs := each(gs, func(g *comm.Group) error {
				if g.Rank() == last {
					err := comm.Refused("the components must keep 0.5 of its rows (got %g)", 0.1)
					if culprit >= 0 {
						err = &comm.PeerError{Rank: culprit, Op: "components", Err: err}
					}
					return g.Refuse(t.Context(), err)
				}
				for range 3 { // all but the first listen to the first only
					if err := g.AllReduce(t.Context(), comm.Reduce, []float32{1}); err != nil {
						return err
					}
				}
				return nil
			})
			for r, err := range errs {
				want := culprit
				if size == 2 {
					want = 0
				}
				if err.Error() != errs[0].Error() {
					t.Errorf("%d members: peer %d must end with %q (got %q)", size, r, errs[0], err)
				}
				fault, ok := errors.AsType[*comm.PeerError](err)
				if !errors.Is(err, comm.ErrRefused) ||
					!strings.Contains(err.Error(), "must keep 0.5 of its rows (got 0.1)") ||
					want >= 0 && (!ok || fault.Rank != want) || want < 0 && ok {
					t.Errorf("%d members: peer %d must blame peer %d (got %v)", size, r, want, err)
				}
				if again := gs[r].Refuse(t.Context(), err); !errors.Is(again, err) {
					t.Errorf("what is known must stay as it is (got %v)", again)
				}
				if err := gs[r].Barrier(t.Context()); !errors.Is(err, comm.ErrRefused) {
					t.Errorf("the group of peer %d must be broken (got %v)", r, err)
				}
			}
		}
	}
}

// TestRefusalsOfAll: of several refusals at the same time all members return one, whose culprit the most blame; nobody
// is to blame for what each finds at home.
func TestRefusalsOfAll(t *testing.T) {
	full, few := errors.New("disk full\nof site b"), errors.New("too few labels")
	lie := func(rank int) error { return &comm.PeerError{Rank: rank, Op: "rows", Err: comm.Refused("too long")} }
	for want, errs := range map[string][]error{
		"peer 1: ended the run: disk full; of site b": {nil, full, nil},
		"too few labels":                              {few, few, few},
		"peer 2: ended the run: rows: too long":       {lie(2), lie(2), nil},
		"peer 0: ended the run: rows: too long":       {nil, lie(0), lie(1)},
		"peer 2: ended the run: disk full; of site b": {comm.Refused("a sum of 3"), comm.Refused("a sum of 4"), full},
		"a sum of 3: a member sent a false one, and the sum does not show which": {comm.Refused("a sum of 3"),
			comm.Refused("a sum of 4"), nil},
	} {
		_, gs := groups(3, netsim.Config{})
		for r, err := range each(gs, func(g *comm.Group) error {
			err := errs[g.Rank()]
			if err == nil {
				err = g.Barrier(t.Context())
			}
			return g.Refuse(t.Context(), fmt.Errorf("round 3: %w", err))
		}) {
			if err == nil || strings.ReplaceAll(err.Error(), "round 3: ", "") != want ||
				!errors.Is(err, comm.ErrRefused) {
				t.Errorf("peer %d: %v, must be %q", r, err, want)
			}
			if r == 1 && errs[1] == full && strings.Contains(want, "peer 1") && !errors.Is(err, full) {
				t.Errorf("the cause at home must be kept (got %v)", err)
			}
		}
	}
}

// TestRefuseNothingElse: the loss of a member, and the end of the caller's context, are no refusals.
func TestRefuseNothingElse(t *testing.T) {
	_, gs := groups(2, netsim.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{nil, comm.ErrClosed} {
		if got := gs[0].Refuse(t.Context(), err); got != err {
			t.Errorf("must return %v (got %v)", err, got)
		}
	}
	if err := gs[0].Refuse(ended, context.Canceled); err != context.Canceled {
		t.Errorf("must return %v (got %v)", context.Canceled, err)
	}
	must(t, each(gs, func(g *comm.Group) error { return g.Barrier(t.Context()) }))
}

// TestForeignEndings checks what peers make of why another member ends the run: a malformed one is an error, and its
// text is shown without control characters.
func TestForeignEndings(t *testing.T) {
	body := func(culprit, by byte, text string) []byte {
		return append([]byte{culprit, 0, 0, 0, by, 0, 0, 0}, text...)
	}
	for name, test := range map[string]struct {
		body []byte
		rank int
		want string
	}{
		"short":       {body(1, 1, "")[:7], 1, "the end of a run must have 8 to 520 bytes (got 7)"},
		"long":        {body(1, 1, strings.Repeat("x", 513)), 1, "the end of a run must have 8 to 520 bytes (got 521)"},
		"no such":     {body(4, 1, "x"), 1, "the end of a run must name peers below 3 (got 4 and 1)"},
		"nobody says": {body(1, 3, "x"), 1, "the end of a run must name peers below 3 (got 1 and 3)"},
		"of this one": {body(1, 1, "it lies"), 0, "peer 0: ended the run: it lies"},
		"passed on":   {body(1, 2, "it lies"), 0, "peer 0: ended the run: it lies"},
		"unknown":     {body(0, 2, "a sum"), -1, "a sum"},
		"escapes":     {body(3, 1, "\x1b[2J\nred\xff"), 2, "peer 2: ended the run: ?[2J; red?"},
		"lost":        {body(3, 1, ""), 2, "lost, as peer 1 reports"},
		"lost, heard": {body(3, 2, ""), 2, "lost, as peer 2 reports"},
		"lost this":   {body(1, 1, ""), 1, "lost, as peer 1 reports"},
	} {
		synctest.Test(t, func(t *testing.T) {
			net := netsim.New(3, netsim.Config{})
			g := comm.NewGroup(net.Transport(0), 0, 3)
			head := make([]byte, comm.HeaderLen)
			head[0], head[1], head[2], head[8], head[9] = 2, 7, byte(comm.Control), byte(len(test.body)),
				byte(len(test.body)>>8)
			if strings.HasPrefix(name, "lost") {
				head[1] = 8
			}
			if err := net.Transport(1).Send(t.Context(), 0, head, test.body); err != nil {
				t.Fatal(err)
			}
			err := g.Barrier(t.Context())
			fault, ok := errors.AsType[*comm.PeerError](err)
			if ok != (test.rank >= 0) || ok && fault.Rank != test.rank || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: must blame peer %d with %q (got %v)", name, test.rank, test.want, err)
			}
		})
	}
}
