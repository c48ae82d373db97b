package secagg

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/rng"
)

// together runs do for each of size members at the same time, with groups over the given transports.
func together(t testing.TB, size int, wrap func(rank int, t comm.Transport) comm.Transport,
	do func(g *comm.Group) error) []error {
	t.Helper()
	return over(t, netsim.New(size, netsim.Config{}), size, wrap, do)
}

// over is together over a network.
func over(t testing.TB, net *netsim.Network, size int, wrap func(rank int, t comm.Transport) comm.Transport,
	do func(g *comm.Group) error) []error {
	t.Helper()
	errs := make([]error, size)
	var all sync.WaitGroup
	for r := range size {
		transport := comm.Transport(net.Transport(r))
		if wrap != nil {
			transport = wrap(r, transport)
		}
		g := comm.NewGroup(transport, r, size)
		all.Go(func() {
			errs[r] = do(g)
			if errs[r] != nil {
				g.Close()
			}
		})
		t.Cleanup(func() { g.Close() })
	}
	all.Wait()
	return errs
}

func numbers(seed uint64, rank, n int, scale float64) []float32 {
	key, x := rng.New(seed).Fold(uint64(rank)), make([]float32, n)
	for i := range x {
		x[i] = float32(scale * key.Normal(uint64(i)))
	}
	return x
}

// outcome is what one member got of a sum.
type outcome struct {
	update, residual []float32
	counts           []int64
	meta             [][]byte
	sent             comm.Counts
}

// How a test sums.
const (
	masked = iota
	unmasked
	plain // by comm.Group itself
)

// reduceAll sums what one returns for each member, and returns what each of them got.
func reduceAll(t testing.TB, size, how int, one func(rank int) *comm.Contribution) []outcome {
	t.Helper()
	got := make([]outcome, size)
	errs := together(t, size, nil, func(g *comm.Group) error {
		var r comm.Reducer = g
		if how != plain {
			s, err := New(context.Background(), KeyTerms{Least: 2}, g)
			if err != nil {
				return err
			}
			if r = s; how == unmasked {
				s.pairs = nil
			}
		}
		before, c := g.Bytes(), one(g.Rank())
		reduced, err := r.Reduce(context.Background(), c)
		sent := g.Bytes()
		got[g.Rank()] = outcome{c.Update, c.Residual, c.Counts, reduced.Meta,
			comm.Counts{Reduce: sent.Reduce - before.Reduce, Control: sent.Control - before.Control}}
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return got
}

func (o outcome) same(p outcome) bool {
	return sameBits(o.update, p.update) && sameBits(o.residual, p.residual) && slices.Equal(o.counts, p.counts)
}

func sameBits(x, y []float32) bool {
	return slices.EqualFunc(x, y, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}

// TestMaskedIsUnmasked: the masks cancel to the last bit, for few members and for many.
func TestMaskedIsUnmasked(t *testing.T) {
	for _, size := range []int{2, 3, 4, 5, 8, 13} {
		if testing.Short() && size > 5 {
			continue
		}
		maskedIsUnmasked(t, size)
	}
}

// TestMaskedIsUnmaskedForAll: the same for each possible number of members.
func TestMaskedIsUnmaskedForAll(t *testing.T) {
	testenv.OnlyLong(t)
	for size := 2; size <= MostMembers; size++ {
		maskedIsUnmasked(t, size)
	}
}

// maskedIsUnmasked sums numbers of several members in 32 and 64 bits, of few members also in others, and for lengths
// around the edges of chunks and frames. If more than 5 add up in fixed point, the sums without masks are comm.Group's
// own.
func maskedIsUnmasked(t *testing.T, size int) {
	t.Helper()
	even := 4096/size*size + size // all chunks are alike
	lengths, rings := []int{4095, even - 1, even, even + 1}, []int{32, 64}
	if size <= 4 {
		lengths = append(lengths, 0, 1, 7, size*(1<<15)-1, size*(1<<15), size*(1<<15)+1, size*(1<<16)+3)
	}
	if size <= 5 {
		rings = append(rings, 0, 4, 8, 16)
	}
	all := make([][]float32, size)
	for r := range all {
		all[r] = numbers(1, r, slices.Max(lengths), 3)
	}
	errs := together(t, size, nil, func(g *comm.Group) error {
		with, err := New(context.Background(), KeyTerms{Least: 2}, g)
		if err != nil {
			return err
		}
		unmasked := &Reducer{group: g}
		for _, n := range lengths {
			for _, bits := range rings {
				if bits == 4 && size > comm.MaxMembers(4) {
					continue
				}
				without := comm.Reducer(g) // in fixed point, too
				if bits == 0 || size <= 5 {
					without = unmasked
				}
				if err := sameSums(with, without, g.Rank(), size, bits, all[g.Rank()][:n]); err != nil {
					return fmt.Errorf("%d members, %d numbers of %d bits: %w", size, n, bits, err)
				}
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// sameSums sums x and three counts with and without masks.
func sameSums(with, without comm.Reducer, rank, size, bits int, x []float32) error {
	var got []outcome
	for _, r := range []comm.Reducer{with, without} {
		c := &comm.Contribution{ID: comm.ReduceID{Kind: "test"}, Update: slices.Clone(x), Bits: bits,
			Residual: make([]float32, len(x)), Counts: []int64{int64(rank), -5, math.MinInt64 / 64},
			Meta: []byte{byte(rank)}}
		if len(x)%2 == 1 {
			c.CountBits, c.Wide = 16, func(i int) bool { return i > 0 }
		}
		reduced, err := r.Reduce(context.Background(), c)
		if err != nil {
			return err
		}
		if c.Counts[0] != int64(size*(size-1)/2) || c.Counts[1] != int64(-5*size) ||
			c.Counts[2] != int64(size)*(math.MinInt64/64) || reduced.Meta[size-1][0] != byte(size-1) {
			return fmt.Errorf("counts %v, meta %v", c.Counts, reduced.Meta)
		}
		got = append(got, outcome{update: c.Update, residual: c.Residual, counts: c.Counts})
	}
	if !got[0].same(got[1]) {
		return errors.New("the sum with masks is another than without")
	}
	return nil
}

// TestFloatsSumAsInTheClear: a sum of float32 numbers has the bits of comm.Group's, which adds them in
// float64, as long as they are within 2³⁸ of each other.
func TestFloatsSumAsInTheClear(t *testing.T) {
	for _, scale := range []float64{1e-20, 1, 1e15} {
		for _, size := range []int{2, 3, 7} {
			one := func(rank int) *comm.Contribution {
				return &comm.Contribution{ID: comm.ReduceID{Kind: "test"}, Update: numbers(2, rank, 5000, scale)}
			}
			with, floats := reduceAll(t, size, masked, one), reduceAll(t, size, plain, one)
			apart := 0
			for i, v := range floats[0].update {
				if with[0].update[i] != v {
					apart++
				}
			}
			if apart > 2 { // float64 may round twice
				t.Errorf("%d members, scale %g: %d of 5000 sums differ from those of floats", size, scale, apart)
			}
		}
	}
}

// TestBytes: a masked sum of 32 bits takes the bytes of one of floats, one of 64 twice as many, and the
// grid 32 bytes a column.
func TestBytes(t *testing.T) {
	for _, size := range []int{3, 10} {
		const n = 50_000
		for bits, factor := range map[int]float64{8: 0.25, 16: 0.5, 32: 1, 64: 2, 0: 2} {
			var floats, with, grid int64
			for _, o := range reduceAll(t, size, plain, func(rank int) *comm.Contribution {
				return &comm.Contribution{Update: numbers(3, rank, n, 1)}
			}) {
				floats += o.sent.Reduce
			}
			for _, o := range reduceAll(t, size, masked, func(rank int) *comm.Contribution {
				return &comm.Contribution{Update: numbers(3, rank, n, 1), Bits: bits}
			}) {
				with += o.sent.Reduce
			}
			grid = int64(2 * (size - 1) * 8 * limbs)
			if got := float64(with-grid) / float64(floats); got != factor {
				t.Errorf("%d members, %d bits: %.4f of the bytes of floats, must be %v", size, bits, got, factor)
			}
		}
	}
}

// TestRefusals: what cannot be summed is refused by name before anything of it is sent.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		size, least int
		bits        int
		value       float32
		says        string
	}{
		{2, 3, 0, 1, "must have 3 to 64 members (got 2)"},
		{MostMembers + 1, 3, 0, 1, "must have 3 to 64 members (got 65)"},
		{3, 3, 0, float32(math.NaN()), "update[1] must be between"},
		{3, 3, 16, float32(math.Inf(-1)), "update[1] must be between"},
		{3, 3, 0, math.MaxFloat32 / 4, "update[1] must be between"},
	} {
		sent := make([]int64, test.size)
		errs := together(t, test.size, nil, func(g *comm.Group) error {
			r, err := New(context.Background(), KeyTerms{Least: test.least}, g)
			if err != nil {
				return err
			}
			_, err = r.Reduce(context.Background(),
				&comm.Contribution{Update: []float32{1, test.value}, Bits: test.bits})
			sent[g.Rank()] = g.Bytes().Reduce
			return err
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), test.says) || sent[r] != 0 {
				t.Errorf("%d members: error %v after %d bytes, must be %q after none", test.size, err, sent[r],
					test.says)
			}
		}
	}
}

// TestMasksDependOnParameters: members with different parameters get noise from each other, and each learns who
// differs.
func TestMasksDependOnParameters(t *testing.T) {
	for _, update := range []int{0, 100} {
		got := reduceAll(t, 3, masked, func(rank int) *comm.Contribution {
			return &comm.Contribution{Update: make([]float32, update), Counts: []int64{1},
				Meta: []byte{byte(rank / 2), byte(rank)}, Common: 1}
		})
		for r, o := range got {
			if o.meta[2][0] != 1 || o.meta[0][0] != 0 {
				t.Errorf("rank %d was told %v", r, o.meta)
			}
			if update == 0 && o.counts[0] == 3 {
				t.Errorf("rank %d got the sum although the members differ", r)
			}
		}
		same := reduceAll(t, 3, masked, func(rank int) *comm.Contribution {
			return &comm.Contribution{Update: make([]float32, update), Counts: []int64{1}, Meta: []byte{7, byte(rank)},
				Common: 1}
		})
		if same[0].counts[0] != 3 {
			t.Errorf("members alike count %d, must be 3", same[0].counts[0])
		}
	}
}

// signers are Ed25519 keys, one a rank.
func signers(size int) (sign func(rank int) func([]byte) ([]byte, error), verify func(int, []byte, []byte) error) {
	keys := make([]ed25519.PrivateKey, size)
	for r := range keys {
		keys[r] = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(r + 1)}, ed25519.SeedSize))
	}
	sign = func(rank int) func([]byte) ([]byte, error) {
		return func(m []byte) ([]byte, error) { return ed25519.Sign(keys[rank], m), nil }
	}
	verify = func(rank int, m, s []byte) error {
		if !ed25519.Verify(keys[rank].Public().(ed25519.PublicKey), m, s) {
			return errors.New("the signature is not this member's")
		}
		return nil
	}
	return sign, verify
}

// TestKeys: members that agree get a sum, signed or not; those that do not are named.
func TestKeys(t *testing.T) {
	const size = 4
	sign, verify := signers(size)
	run := func(change func(rank int, terms *KeyTerms), wrap func(int, comm.Transport) comm.Transport) []error {
		return together(t, size, wrap, func(g *comm.Group) error {
			terms := KeyTerms{Least: 3, Sign: sign(g.Rank()), Verify: verify}
			if change != nil {
				change(g.Rank(), &terms)
			}
			r, err := New(context.Background(), terms, g)
			if err != nil {
				return err
			}
			c := &comm.Contribution{Update: numbers(4, g.Rank(), 10, 1), Counts: []int64{1}}
			if _, err = r.Reduce(context.Background(), c); err == nil && c.Counts[0] != size {
				err = fmt.Errorf("counts %v", c.Counts)
			}
			return err
		})
	}
	for _, signed := range []bool{false, true} {
		if err := errors.Join(run(func(_ int, terms *KeyTerms) {
			if !signed {
				terms.Sign, terms.Verify = nil, nil
			}
		}, nil)...); err != nil {
			t.Errorf("signed %t: %v", signed, err)
		}
	}
	blamed := func(what string, errs []error, rank int, says string) {
		t.Helper()
		named := false
		for _, err := range errs {
			var at *comm.PeerError
			named = named || errors.As(err, &at) && at.Rank == rank && strings.Contains(err.Error(), says)
		}
		if !named {
			t.Errorf("%s: errors %v, must be %q of rank %d", what, errs, says, rank)
		}
	}
	blamed("a foreign signature", run(func(r int, terms *KeyTerms) {
		if r == 2 {
			terms.Sign = sign(1)
		}
	}, nil), 2, "not this member's")
	blamed("another plan", run(func(r int, terms *KeyTerms) {
		if r == 1 {
			terms.Run[0] = 1
		}
	}, nil), 1, "not this member's")
}

// TestKeysOfTwoFaces: a member that shows two others different keys is detected.
func TestKeysOfTwoFaces(t *testing.T) {
	errs := together(t, 3, func(rank int, under comm.Transport) comm.Transport {
		if rank != 2 {
			return under
		}
		return &twoFaced{Transport: under}
	}, func(g *comm.Group) error {
		_, err := New(context.Background(), KeyTerms{Least: 3}, g)
		return err
	})
	found := false
	for _, err := range errs[:2] {
		found = found || err != nil && strings.Contains(err.Error(), "saw other keys")
	}
	if !found {
		t.Errorf("errors %v, must be one of other keys", errs)
	}
}

// twoFaced sends rank 1 another key than rank 0.
type twoFaced struct {
	comm.Transport
	done bool
}

func (f *twoFaced) Send(ctx context.Context, to int, head, body []byte) error {
	if to == 1 && !f.done {
		f.done = true
		other, err := newKeys()
		if err != nil {
			return err
		}
		body = other.public()
	}
	return f.Transport.Send(ctx, to, head, body)
}

// TestMagnitudes: the widened magnitudes sum exactly down to 2⁻⁷², and never to less than their sum.
func TestMagnitudes(t *testing.T) {
	key := rng.New(5)
	for i := range uint64(2000) {
		exponent := int(key.Uint64(3*i)%215) - 93
		x := float32(math.Ldexp(1+key.Float64(3*i+1), exponent))
		y := float32(math.Ldexp(1+key.Float64(3*i+2), int(key.Uint64(3*i+2)%215)-93))
		sums := widen([]float32{x})
		sums.Add(widen([]float32{y}).B)
		want := float64(x) + float64(y)
		got := narrow(sums)[0]
		if exponent > -72 && x > y && got != float32(want) {
			t.Fatalf("%g + %g = %g, must be %g", x, y, got, want)
		}
		if float64(got)*(1+0x1p-23) < want {
			t.Fatalf("%g + %g = %g is too small", x, y, got)
		}
	}
	if narrow(widen([]float32{0}))[0] != 0 {
		t.Error("zero is not zero")
	}
}
