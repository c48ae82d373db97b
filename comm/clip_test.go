package comm_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// clippedParts returns the parts of so many members: sums over 2 + rank things, about 1 each in column 0 and −2 in column 1.
func clippedParts(members, rows, bits int) (all []*comm.Contribution) {
	for m := range members {
		c := &comm.Contribution{ID: comm.ReduceID{Kind: "means"}, Clipped: true, Bits: bits, Columns: 2, Counts: []int64{int64(2 + m), int64(2 + m)}}
		for i := range 2 * rows {
			mean := []float64{1, -2}[i%2] + 0.1*rng.New(uint64(m)).Normal(uint64(i))
			c.Update = append(c.Update, float32(mean*float64(c.Counts[0])))
		}
		all = append(all, c)
	}
	return all
}

// clipAll sums parts, one a member.
func clipAll(t *testing.T, parts []*comm.Contribution) []error {
	t.Helper()
	return eachMember(t, len(parts), func(ctx context.Context, rank int, transport comm.Transport) error {
		g := comm.NewGroup(transport, rank, len(parts))
		defer g.Close()
		_, err := g.Reduce(ctx, parts[rank])
		return g.Refuse(ctx, err)
	})
}

// eachMember runs do as every member of a network at once and returns what they return, by rank.
func eachMember(t *testing.T, members int, do func(ctx context.Context, rank int, transport comm.Transport) error) []error {
	t.Helper()
	net := netsim.New(members, netsim.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	errs := make([]error, members)
	var all sync.WaitGroup
	for rank := range members {
		all.Go(func() { errs[rank] = do(ctx, rank, net.Transport(rank)) })
	}
	all.Wait()
	return errs
}

// farOff is how far the means in sums of parts are from the true ones, at most, and total the count that they are of.
func farOff(c *comm.Contribution, total float64) (off float64) {
	for i, v := range c.Update {
		off = max(off, math.Abs(float64(v)/total-[]float64{1, -2}[i%2]))
	}
	return off
}

// TestClippedSum: all members have the same bits, near the plain sum where nobody lies, and not far from it where two of
// eight do.
func TestClippedSum(t *testing.T) {
	for _, bits := range []int{0, 8, 16} {
		for liars := range 3 {
			parts := clippedParts(8, 50, bits)
			total := 0.0
			for m, c := range parts {
				total += float64(c.Counts[0])
				for i := range c.Update {
					if m >= 8-liars {
						c.Update[i] *= -1000
					}
				}
			}
			if err := errors.Join(clipAll(t, parts)...); err != nil {
				t.Fatal(err)
			}
			for _, c := range parts[1:] {
				if !slices.Equal(c.Update, parts[0].Update) || float64(c.Counts[1]) != total {
					t.Fatalf("%d bits: members must have the same sums and count %g (got %d)", bits, total, c.Counts[1])
				}
			}
			if off := farOff(parts[0], total); off > 0.35 {
				t.Errorf("%d bits, %d liars: the means must be near the true ones (got %.2g apart)", bits, liars, off)
			}
		}
	}
}

// TestClippedSumOfNothing: a column that few members have, or none, and the sum of a single member.
func TestClippedSumOfNothing(t *testing.T) {
	parts := clippedParts(4, 3, 8)
	for m, c := range parts {
		for i := range c.Update {
			if i%2 == 1 || m != 2 {
				c.Update[i] = 0
			}
		}
		c.Counts[1] = 0
		if m != 2 {
			c.Counts[0] = 0
		}
	}
	want := slices.Clone(parts[2].Update)
	if err := errors.Join(clipAll(t, parts)...); err != nil {
		t.Fatal(err)
	}
	for i, v := range parts[0].Update {
		if math.Abs(float64(v-want[i])) > 0.02*math.Abs(float64(want[0])) {
			t.Errorf("number %d must be %g, which its only member sent (got %g)", i, want[i], v)
		}
	}
	one := clippedParts(1, 3, 0)
	want = slices.Clone(one[0].Update)
	if err := errors.Join(clipAll(t, one)...); err != nil || !slices.Equal(one[0].Update, want) {
		t.Errorf("the sum of one member must be its part %v (got %v, %v)", want, one[0].Update, err)
	}
}

// TestClippedSumRefuses: a part beyond its limits ends the sum at all members, by the name of who sent it.
func TestClippedSumRefuses(t *testing.T) {
	check := func(update []float32, counts []int64, _ []float64) error {
		if math.Abs(float64(update[0])) > 3*float64(counts[0]) {
			return comm.Refused("a mean must be at most 3 (got %g)", update[0]/float32(counts[0]))
		}
		return nil
	}
	for name, test := range map[string]struct {
		lie  func(c *comm.Contribution)
		want string
	}{
		"long":     {func(c *comm.Contribution) { c.Update[0] *= 6 }, "a mean must be at most 3 (got"},
		"limit":    {func(c *comm.Contribution) { c.Update[1] = 1e6 }, "a sum must be at most 100 (got 1e+06)"},
		"negative": {func(c *comm.Contribution) { c.Counts[1] = -1 }, "a count must be at least 0 (got -1)"},
		"many":     {func(c *comm.Contribution) { c.Counts[1] = 1000 }, "things must be at most 50 (got 1000)"},
		"NaN":      {func(c *comm.Contribution) { c.Update[2] = float32(math.Inf(1)) }, "must be finite"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, bits := range []int{0, 16} {
				parts := clippedParts(4, 5, bits)
				for _, c := range parts {
					c.UpdateLimit = func(int) comm.Limit { return comm.Limit{What: "a sum", Least: -100, Most: 100} }
					c.CountLimit = func(int) comm.Limit { return comm.Limit{What: "things", Least: 0, Most: 50} }
					c.CheckPart = check
				}
				test.lie(parts[3])
				for rank, err := range clipAll(t, parts)[:3] {
					at, ok := errors.AsType[*comm.PeerError](err)
					if test.want == "must be finite" { // nobody sends it: peer 3 leaves, and then those who noticed before this one
						ok = ok && at.Rank != rank
					} else {
						ok = ok && at.Rank == 3 && errors.Is(err, comm.ErrRefused) && strings.Contains(err.Error(), test.want)
					}
					if !ok {
						t.Errorf("%d bits: peer %d must refuse what peer 3 sent since %q (got %v)", bits, rank, test.want, err)
					}
				}
			}
		})
	}
}

// twoFaced sends one peer a different part than the others.
type twoFaced struct{ comm.Transport }

func (f twoFaced) Send(ctx context.Context, to int, head, body []byte) error {
	if frame, err := comm.ParseFrame(slices.Concat(head, body)); err == nil && to == 0 && frame.Door == comm.Reduce && len(body) > 0 {
		body = slices.Clone(body)
		body[len(body)-1] ^= 1
	}
	return f.Transport.Send(ctx, to, head, body)
}

// TestClippedSumOfTwoFaces: a member that sends different parts to different members ends the sum.
func TestClippedSumOfTwoFaces(t *testing.T) {
	parts := clippedParts(3, 5, 16)
	errs := eachMember(t, 3, func(ctx context.Context, rank int, transport comm.Transport) error {
		if rank == 2 {
			transport = twoFaced{transport}
		}
		g := comm.NewGroup(transport, rank, 3)
		defer g.Close()
		_, err := g.Reduce(ctx, parts[rank])
		return g.Refuse(ctx, err)
	})
	for rank, err := range errs[:2] {
		if !errors.Is(err, comm.ErrRefused) || !strings.Contains(fmt.Sprint(err), "got other parts than this peer") {
			t.Errorf("peer %d must refuse parts that differ (got %v)", rank, err)
		}
	}
}

// TestClippedSumOfShortPart: a part of a wrong length ends the sum by the name of who sent it.
func TestClippedSumOfShortPart(t *testing.T) {
	parts := clippedParts(3, 5, 0)
	errs := eachMember(t, 3, func(ctx context.Context, rank int, transport comm.Transport) error {
		g := comm.NewGroup(transport, rank, 3)
		defer g.Close()
		if rank < 2 {
			_, err := g.Reduce(ctx, parts[rank])
			return g.Refuse(ctx, err)
		}
		short := make([]byte, 7)
		in, err := g.SendRecv(ctx, comm.Reduce, "means", [][]byte{short, short, nil}, 1<<10)
		if err != nil {
			t.Error(err)
			return err
		}
		h := sha256.New()
		for _, b := range [][]byte{in[0], in[1], short} {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
			h.Write(b)
		}
		digest := h.Sum(nil)
		g.SendRecv(ctx, comm.Control, "digest", [][]byte{digest, digest, nil}, 1<<10)
		return g.Barrier(ctx) // until it is refused
	})
	for rank, err := range errs[:2] {
		at, ok := errors.AsType[*comm.PeerError](err)
		if !ok || at.Rank != 2 || !errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), "a part must have 56 bytes (got 7)") {
			t.Errorf("peer %d must refuse a short part of peer 2 (got %v)", rank, err)
		}
	}
}
