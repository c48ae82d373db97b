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

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/rng"
)

// plainFixed is what comm.Contribution documents, in plain loops and wide integers: the sums, the
// steps, and the largest magnitude of a sum of integers.
func plainFixed(parts [][]float32, bits, columns int) (sums []float32, step []float64, largest int64) {
	columns = max(columns, 1)
	step, sums = make([]float64, columns), make([]float32, len(parts[0]))
	for j := range step {
		most := make([]float64, len(parts))
		for p, x := range parts {
			for i := j; i < len(x); i += columns {
				most[p] = max(most[p], math.Abs(float64(x[i])))
			}
			step[j] += most[p]
		}
		step[j] = float64(float32(step[j])) * (1 + 0x1p-23) / (math.Exp2(float64(bits-1)) - 1 - float64(len(parts)))
	}
	for i := range sums {
		s, sum := step[i%columns], int64(0)
		for _, x := range parts {
			if s > 0 {
				sum += int64(math.RoundToEven(float64(x[i]) * (1 / s)))
			}
		}
		largest = max(largest, sum, -sum)
		sums[i] = float32(float64(sum) * s)
	}
	return sums, step, largest
}

// reduceFixed sums the parts, one a member, and returns every member's sums.
func reduceFixed(gs []*comm.Group, parts [][]float32, bits, columns int) ([][]float32, error) {
	out := make([][]float32, len(gs))
	errs := each(gs, func(g *comm.Group) error {
		out[g.Rank()] = slices.Clone(parts[g.Rank()])
		_, err := g.Reduce(context.Background(),
			&comm.Contribution{Update: out[g.Rank()], Bits: bits, Columns: columns})
		return err
	})
	return out, errors.Join(errs...)
}

// In fixed point M members send 2·(M−1)·(n·Bits/8 + 4·Columns) bytes under Reduce, and 16 a frame
// under Control.
func TestBytesOfFixedSums(t *testing.T) {
	for size := 1; size <= 7; size++ {
		for _, test := range []struct{ n, columns int }{{0, 7}, {1, 0}, {4094, 1}, {4097, 17}, {10_000, 5000},
			{900_000, 9}} {
			for _, bits := range []int{8, 16, 32} {
				net, gs := groups(size, netsim.Config{})
				parts := make([][]float32, size)
				for r := range parts {
					parts[r] = make([]float32, test.n)
				}
				if _, err := reduceFixed(gs, parts, bits, test.columns); err != nil {
					t.Fatal(err)
				}
				var got comm.Counts
				var frames, carried int64
				for _, g := range gs {
					got = got.Plus(g.Bytes())
					for to := range size {
						f, c := net.Stats(g.Rank(), to)
						frames, carried = frames+f, carried+c
					}
				}
				want := comm.Counts{Control: frames * comm.HeaderLen}
				if test.n > 0 {
					want.Reduce = int64(2 * (size - 1) * (test.n*bits/8 + 4*max(test.columns, 1)))
				}
				if got != want || carried != got.Total() {
					t.Errorf("%d numbers in %d columns and %d bits, %d members: sent %+v, must be %+v; "+
						"the network carried %d", test.n, test.columns, bits, size, got, want, carried)
				}
			}
		}
	}
}

// adversarial returns the members' parts: columns of any scale, also of zeros. All members may have their largest
// numbers in the same place and of the same sign, or numbers half-way between integers.
func adversarial(t *rapid.T, members, columns, rows, bits int) [][]float32 {
	key := rng.New(rapid.Uint64().Draw(t, "seed"))
	parts := make([][]float32, members)
	for p := range parts {
		parts[p] = make([]float32, rows*columns)
	}
	for j := range columns {
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		exponent := rapid.IntRange(-149, 118).Draw(t, "exponent") // 64 members' numbers may be 2¹¹⁹ in magnitude
		for p, x := range parts {
			key := key.Fold(uint64(j)).Fold(uint64(p))
			most := float32(math.Ldexp(1+key.Float64(0), exponent))
			for i := range rows {
				v := float32(key.Normal(uint64(i)+1)) * most / 8
				switch at := i*columns + j; {
				case kind == 1: // all at the same extreme
					x[at] = most
				case kind == 2:
					x[at] = -most
				case kind == 3 && p > 0: // far smaller than the first member's
					x[at] = float32(math.Ldexp(float64(v), -bits))
				case kind == 4: // halves of the first steps, which all round one way
					x[at] = most * (2*float32(i%3) + 1) / float32(int(2)<<(bits-1))
				case kind == 0 && j%2 == 1: // zeros
				default:
					x[at] = v
				}
			}
		}
	}
	return parts
}

// Whatever the members send, the sum of the integers fits in its bits and is at most M/2 steps from the exact sum. It
// equals the result of plain loops, and is the same bits at all members.
func TestFixedSums(t *testing.T) {
	for _, test := range []struct{ bits, members int }{{8, 8}, {16, 64}, {32, 64}} {
		t.Run(fmt.Sprintf("%d bits", test.bits), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				members := rapid.IntRange(2, test.members).Draw(t, "members")
				columns, rows := rapid.IntRange(1, 5).Draw(t, "columns"),
					rapid.SampledFrom([]int{1, 3, 100, 1500}).Draw(t, "rows")
				parts := adversarial(t, members, columns, rows, test.bits)
				want, step, largest := plainFixed(parts, test.bits, columns)
				if largest > 1<<(test.bits-1)-1 {
					t.Fatalf("a sum is %d, beyond %d bits", largest, test.bits)
				}
				_, gs := groups(members, netsim.Config{})
				got, err := reduceFixed(gs, parts, test.bits, columns)
				if err != nil {
					t.Fatal(err)
				}
				for r, x := range got {
					for i, v := range x {
						if math.Float32bits(v) != math.Float32bits(want[i]) {
							t.Fatalf("member %d, [%d]: must be %g (got %g)", r, i, want[i], v)
						}
					}
				}
				for i, v := range got[0] {
					exact := 0.0
					for _, x := range parts {
						exact += float64(x[i])
					}
					bound := step[i%columns]*float64(members)/2*(1+1e-6) + math.Abs(exact)*0x1p-23 + 0x1p-149
					if math.Abs(float64(v)-exact) > bound {
						t.Fatalf("[%d]: must be within %g of %g (got %g)", i, bound, exact, v)
					}
				}
			})
		})
	}
}

// Parts of Update have a step each, as columns have: their sums equal the sums of the separate parts. The residual is
// what this member's integers lack of its numbers, at most half a step.
func TestFixedSumOfParts(t *testing.T) {
	const members = 3
	lengths := []int{5, 0, 4200, 1}
	for _, bits := range []int{8, 16, 32} {
		key := rng.New(5).Fold(uint64(bits))
		parts := make([][]float32, members)
		for p := range parts {
			for k, n := range lengths {
				for i := range n {
					parts[p] = append(parts[p], float32(key.Fold(uint64(p)).Fold(uint64(k)).Normal(uint64(i)))*
						float32(math.Pow(1000, float64(k-1))))
				}
			}
		}
		_, gs := groups(members, netsim.Config{})
		var got, residuals [members][]float32
		must(t, each(gs, func(g *comm.Group) error {
			r := g.Rank()
			got[r], residuals[r] = slices.Clone(parts[r]), slices.Repeat([]float32{7}, len(parts[r]))
			_, err := g.Reduce(t.Context(),
				&comm.Contribution{Update: got[r], Bits: bits, Parts: lengths, Residual: residuals[r]})
			return err
		}))
		if sent := gs[0].Bytes().Plus(gs[1].Bytes()).Plus(gs[2].Bytes()).Reduce; sent != int64(2*(members-1)*
			(len(got[0])*bits/8+4*len(lengths))) {
			t.Errorf("%d bits: sent %d bytes", bits, sent)
		}
		at := 0
		for _, n := range lengths {
			var alone [][]float32
			for _, x := range parts {
				alone = append(alone, x[at:at+n])
			}
			want, step, _ := plainFixed(alone, bits, 1)
			for r := range got {
				for i, v := range want {
					if got[r][at+i] != v {
						t.Fatalf("%d bits, member %d, [%d]: must be %g (got %g)", bits, r, at+i, v, got[r][at+i])
					}
					x := float64(parts[r][at+i])
					if left := float32(x - math.RoundToEven(x/step[0])*step[0]); math.Abs(float64(residuals[r][at+i]-
						left)) > 1e-6*step[0] {
						t.Fatalf("%d bits, member %d, [%d]: the residual must be %g (got %g)", bits, r, at+i, left,
							residuals[r][at+i])
					}
				}
			}
			at += n
		}
	}
	// A sum that is not rounded leaves nothing out.
	_, gs := groups(1, netsim.Config{})
	c := comm.Contribution{Update: []float32{0.3}, Residual: []float32{7}, Bits: 8}
	if _, err := gs[0].Reduce(t.Context(), &c); err != nil || c.Residual[0] != 0 {
		t.Errorf("alone: the residual must be 0 (got %g, %v)", c.Residual[0], err)
	}
}

// A single member's numbers are not rounded, and nothing is sent for an empty Update.
func TestFixedSumAlone(t *testing.T) {
	_, gs := groups(1, netsim.Config{})
	x := []float32{1, 1e-20, -3}
	if _, err := gs[0].Reduce(t.Context(), &comm.Contribution{Update: x, Bits: 8}); err != nil || x[1] != 1e-20 {
		t.Errorf("%v, %v", x, err)
	}
	_, gs = groups(2, netsim.Config{})
	must(t, each(gs, func(g *comm.Group) error {
		c := comm.Contribution{Counts: []int64{1 << 40}, Bits: 8}
		if _, err := g.Reduce(t.Context(), &c); err != nil || c.Counts[0] != 1<<41 {
			return fmt.Errorf("counts must be %d (got %d): %w", int64(1<<41), c.Counts[0], err)
		}
		if n, _ := g.Waits(); n != 2 {
			return fmt.Errorf("waits for %d messages, must be 2", n)
		}
		return nil
	}))
}

// What cannot be summed is an error before anything is sent, and the group is broken: the others
// would wait.
func TestFixedSumRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for name, test := range map[string]struct {
		members int
		x       []float32
		bits    int
		want    string
	}{
		"NaN":      {3, []float32{0, nan}, 8, "update[1] must be between -2.8356862e+37 and 2.8356862e+37 (got NaN)"},
		"infinite": {3, []float32{inf}, 16, "update[0] must be between -2.8356862e+37 and 2.8356862e+37 (got -Inf)"},
		"too large": {2, []float32{1, 0, 1e38}, 32,
			"update[2] must be between -4.2535293e+37 and 4.2535293e+37 (got 1e+38)"},
		"members": {64, []float32{1}, 8, "a sum of 8 bits must have at most 63 members (got 64)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, gs := groups(test.members, netsim.Config{})
			g := gs[1]
			_, err := g.Reduce(t.Context(), &comm.Contribution{ID: comm.ReduceID{Kind: "round"}, Update: test.x,
				Bits: test.bits})
			if err == nil || !strings.HasSuffix(err.Error(), test.want) || !strings.Contains(err.Error(), "round") {
				t.Errorf("%v, must end with %q and name the reduction", err, test.want)
			}
			if b := g.Bytes(); b.Total() != 0 {
				t.Errorf("sent %+v", b)
			}
			if again := g.Barrier(t.Context()); again != err {
				t.Errorf("a later call returned %v, must be %v", again, err)
			}
		})
	}
	if most := comm.MaxMembers(8); most != 63 {
		t.Errorf("8 bits take %d members", most)
	}
}

// A peer whose largest magnitudes, or whose sums of them, cannot be is named.
func TestForeignGrids(t *testing.T) {
	frame := func(step byte, v float32) []byte {
		b := append([]byte{2, 0, byte(comm.Reduce), step, 1, 0, 0, 0, 4}, make([]byte, 7)...)
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, test := range []struct {
		rank int // of this member: 0 owns the grid
		v    float32
		want string
	}{
		{0, nan, "a largest magnitude must be between 0 and 4.2535293e+37 (got NaN)"},
		{0, inf, "(got +Inf)"},
		{0, -1, "(got -1)"},
		{0, 1e38, "(got 1e+38)"},
		{1, nan, "a sum of largest magnitudes must be between 2 and 1.1342745e+38 (got NaN)"},
		{1, inf, "(got +Inf)"},
		{1, 1.5, "(got 1.5)"},
	} {
		g := comm.NewGroup(&script{in: [][]byte{frame(byte(5+test.rank), test.v)}}, test.rank, 2)
		_, err := g.Reduce(t.Context(), &comm.Contribution{Update: []float32{1, -2}, Bits: 8})
		if fault, ok := errors.AsType[*comm.PeerError](err); !ok || fault.Rank != 1-test.rank ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, must be a PeerError of peer %d that says %q", err, 1-test.rank, test.want)
		}
	}
}
