package comm_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/rng"
)

// plainFour returns what a sum of 4 bits must be of one part, and what each member keeps.
func plainFour(parts [][]float32) (sums []float32, residuals [][]float32) {
	members, mean := len(parts), 0.0
	for _, x := range parts {
		squares := 0.0
		for _, v := range x {
			squares += float64(v) * float64(v)
		}
		mean += float64(float32(math.Sqrt(squares / float64(len(x)))))
	}
	reach := float64(7 / members)
	step := 2 * float64(float32(mean)) / float64(members) / (1 + reach)
	total := make([]float64, len(parts[0]))
	for _, x := range parts {
		left := make([]float32, len(x))
		for i, v := range x {
			z := 0.0
			if step > 0 {
				z = max(-reach, min(reach, math.RoundToEven(float64(v)/step)))
			}
			total[i] += z
			left[i] = float32(float64(v) - z*step)
		}
		residuals = append(residuals, left)
	}
	for _, z := range total {
		sums = append(sums, float32(z*step))
	}
	return sums, residuals
}

// TestFourBits: with 2 to 7 members all have the sums of the grid that the mean of their root mean squares sets. Half a
// byte is sent for each number, and what is beyond a member's reach stays with it.
func TestFourBits(t *testing.T) {
	lengths := []int{301, 0, 64, 7} // parts begin and end within a byte
	key := rng.New(4)
	for members := 2; members <= comm.MaxMembers(4); members++ {
		parts := make([][]float32, members)
		for p := range parts {
			for k, n := range lengths {
				for i := range n {
					v := key.Fold(uint64(p)).Fold(uint64(k)).Normal(uint64(i)) * math.Pow(1000, float64(k-1))
					if k == 2 {
						v = 0
					} else if i == 3 {
						v *= 100
					}
					parts[p] = append(parts[p], float32(v))
				}
			}
		}
		_, gs := groups(members, netsim.Config{})
		got, left := make([][]float32, members), make([][]float32, members)
		must(t, each(gs, func(g *comm.Group) error {
			r := g.Rank()
			got[r], left[r] = slices.Clone(parts[r]), slices.Repeat([]float32{7}, len(parts[r]))
			_, err := g.Reduce(t.Context(),
				&comm.Contribution{Update: got[r], Bits: 4, Parts: lengths, Residual: left[r]})
			return err
		}))
		sent := int64(0)
		for _, g := range gs {
			sent += g.Bytes().Reduce
		}
		if want := int64(2 * (members - 1) * ((len(got[0])+1)/2 + 4*len(lengths))); sent != want {
			t.Errorf("%d members: must send %d bytes (got %d)", members, want, sent)
		}
		at := 0
		for _, n := range lengths {
			if n == 0 {
				continue
			}
			var alone [][]float32
			for _, x := range parts {
				alone = append(alone, x[at:at+n])
			}
			sums, residuals := plainFour(alone)
			for r := range got {
				for i, v := range sums {
					if got[r][at+i] != v {
						t.Fatalf("%d members, member %d, [%d]: must be %g (got %g)", members, r, at+i, v, got[r][at+i])
					}
					if left[r][at+i] != residuals[r][i] {
						t.Fatalf("%d members, member %d, [%d]: the residual must be %g (got %g)", members, r, at+i,
							residuals[r][i], left[r][at+i])
					}
				}
			}
			at += n
		}
	}
}

// TestFourBitsLoseNothing: with error feedback the sums of many rounds add up to all that the members gave,
// up to what they still keep.
func TestFourBitsLoseNothing(t *testing.T) {
	const members, n, rounds = 4, 50, 30
	_, gs := groups(members, netsim.Config{})
	got, given := make([][n]float64, members), make([][n]float64, members)
	kept := make([][]float32, members)
	must(t, each(gs, func(g *comm.Group) error {
		r := g.Rank()
		residual := make([]float32, n)
		for k := range rounds {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rng.New(uint64(k)).Fold(uint64(r)).Normal(uint64(i))) + float32(i)/n
				given[r][i] += float64(x[i])
				x[i] += residual[i]
			}
			if _, err := g.Reduce(t.Context(),
				&comm.Contribution{ID: comm.ReduceID{Round: k}, Update: x, Bits: 4, Residual: residual}); err != nil {
				return err
			}
			for i, v := range x {
				got[r][i] += float64(v)
			}
		}
		kept[r] = residual
		return nil
	}))
	for i := range n {
		want, still := 0.0, 0.0
		for r := range members {
			want, still = want+given[r][i], still+float64(kept[r][i])
		}
		if math.Abs(got[0][i]+still-want) > 1e-3 {
			t.Errorf("[%d]: sums and residuals must add up to %g (got %g and %g)", i, want, got[0][i], still)
		}
		if math.Abs(still) > 0.5*math.Abs(want)+20 {
			t.Errorf("[%d]: after %[4]d rounds the residuals must be a small part of %[3]g (got %[2]g)", i, still, want,
				rounds)
		}
	}
}

// TestFourBitsNeedFeedback: with more members than 7 nothing is sent, and a sum of 4 bits without a
// residual, or with limits, is the caller's fault.
func TestFourBitsNeedFeedback(t *testing.T) {
	_, gs := groups(8, netsim.Config{})
	_, err := gs[0].Reduce(t.Context(), &comm.Contribution{Update: []float32{1}, Residual: []float32{0}, Bits: 4})
	if err == nil || !strings.HasSuffix(err.Error(), "a sum of 4 bits must have at most 7 members (got 8)") ||
		gs[0].Bytes().Total() != 0 {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]comm.Contribution{
		"residual": {Update: []float32{1}, Bits: 4},
		"limits": {Update: []float32{1}, Bits: 4, Residual: []float32{0},
			UpdateLimit: func(int) comm.Limit { return comm.Limit{} }},
		"columns": {Update: []float32{1}, Bits: 4, Residual: []float32{0}, Columns: 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			form, err := c.Fixed(3)
			t.Error(fmt.Sprint(form != nil, err))
		})
	}
}
