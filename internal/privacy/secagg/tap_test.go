package secagg

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
)

// tap keeps the payloads that one member sends in the traffic class Reduce.
type tap struct {
	comm.Transport
	mu   sync.Mutex
	sent map[int][]byte // by receiver
}

func (w *tap) Send(ctx context.Context, to int, head, body []byte) error {
	if comm.Door(head[2]) == comm.Reduce {
		w.mu.Lock()
		w.sent[to] = append(w.sent[to], body...)
		w.mu.Unlock()
	}
	return w.Transport.Send(ctx, to, head, body)
}

// tapped sums one update of three members and returns what rank 2 sent to the owner of the sum. secret, unless nil,
// replaces what each pair of members shares.
func tapped(t *testing.T, x []float32, bits, how int, secret []byte) []byte {
	t.Helper()
	var wire *tap
	errs := together(t, 3, func(rank int, under comm.Transport) comm.Transport {
		if rank != 2 {
			return under
		}
		wire = &tap{Transport: under, sent: map[int][]byte{}}
		return wire
	}, func(g *comm.Group) error {
		r, err := New(context.Background(), KeyTerms{Least: 3}, g)
		if err != nil {
			return err
		}
		if how == unmasked {
			r.pairs = nil
		}
		for k := range r.pairs {
			if secret != nil {
				r.pairs[k].secret = secret
			}
		}
		c := &comm.Contribution{ID: comm.ReduceID{Kind: "test"}, Update: make([]float32, len(x)), Bits: bits}
		for i := range c.Update {
			c.Update[i] = 1
		}
		if g.Rank() == 2 {
			copy(c.Update, x)
		}
		_, err = r.Reduce(context.Background(), c)
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return wire.sent[0]
}

// apart is the two-sample Kolmogorov–Smirnov statistic of bytes, times √(nm/(n+m)).
func apart(x, y []byte) float64 {
	var cx, cy [256]float64
	for _, b := range x {
		cx[b]++
	}
	for _, b := range y {
		cy[b]++
	}
	n, m := float64(len(x)), float64(len(y))
	most, fx, fy := 0.0, 0.0, 0.0
	for b := range 256 {
		fx, fy = fx+cx[b]/n, fy+cy[b]/m
		most = max(most, math.Abs(fx-fy))
	}
	return most * math.Sqrt(n*m/(n+m))
}

// ksBound is passed by two samples of one distribution once in 10⁷ times.
const ksBound = 2.9

// TestWireTap: what a member sends before the sum is known has the same distribution whatever its
// numbers are, over fresh keys; without masks the tap sees the difference.
func TestWireTap(t *testing.T) {
	small, large := make([]float32, 64), make([]float32, 64)
	for i := range large {
		small[i], large[i] = 0, float32(i)*3.7-50
	}
	runs := 60
	if testing.Short() {
		runs = 20
	}
	for _, bits := range []int{8, 16, 32, 64} {
		var of [2][2][]byte // masked or not, small or large
		for range runs {
			for how := range 2 {
				of[how][0] = append(of[how][0], tapped(t, small, bits, how, nil)...)
				of[how][1] = append(of[how][1], tapped(t, large, bits, how, nil)...)
			}
		}
		if d := apart(of[masked][0], of[masked][1]); d > ksBound {
			t.Errorf("%d bits: bytes of two inputs are %.2f apart under masks, at most %.2f expected", bits, d, ksBound)
		}
		if d := apart(of[unmasked][0], of[unmasked][1]); d < 2*ksBound {
			t.Errorf("%d bits: bytes of two inputs are only %.2f apart in the clear: the tap sees nothing", bits, d)
		}
		uniform := make([]byte, 256*64)
		for i := range uniform {
			uniform[i] = byte(i)
		}
		if d := apart(of[masked][1], uniform); d > ksBound {
			t.Errorf("%d bits: masked bytes are %.2f apart from uniform ones", bits, d)
		}
	}
}

// TestEqualMasksDifferByInput: under the same masks, two vectors differ by exactly what the inputs do, so the tap sees
// all that is sent; and each of the vectors of a sum has different masks.
func TestEqualMasksDifferByInput(t *testing.T) {
	secret := make([]byte, 32)
	x, y := make([]float32, 50), make([]float32, 50)
	for i := range x {
		x[i], y[i] = float32(i)-20, 30-float32(i) // largest magnitudes alike: the same grid
	}
	y[0], x[0] = 30, 30
	a, b := tapped(t, x, 64, masked, secret), tapped(t, y, 64, masked, secret)
	at := 8 * limbs
	if !slices.Equal(a[:at], b[:at]) {
		t.Fatal("the grids of equal magnitudes differ under equal masks")
	}
	for i := range x {
		read := func(b []byte) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
		steps := math.Ldexp(float64(x[i]-y[i]), 56) // of a largest sum of 32
		if got, want := read(a[at:])-read(b[at:]), uint64(int64(steps)); got != want {
			t.Fatalf("number %d: masked vectors differ by %d, inputs by %d", i, got, want)
		}
	}
	if zero := tapped(t, make([]float32, 50), 64, masked, secret); slices.Equal(zero[:8*limbs], zero[at:2*at]) {
		t.Error("the masks of two vectors are the same")
	}
}

// TestSumsOfOneIDHaveOtherMasks: a sum that is repeated under its ID is masked anew, else the difference of two
// messages is the difference of the numbers.
func TestSumsOfOneIDHaveOtherMasks(t *testing.T) {
	var wire *tap
	errs := together(t, 3, func(rank int, under comm.Transport) comm.Transport {
		one := &tap{Transport: under, sent: map[int][]byte{}}
		if rank == 2 {
			wire = one
		}
		return one
	}, func(g *comm.Group) error {
		r, err := New(context.Background(), KeyTerms{Least: 3}, g)
		for k := 0; k < 2 && err == nil; k++ {
			_, err = r.Reduce(context.Background(), &comm.Contribution{ID: comm.ReduceID{Kind: "test"},
				Counts: make([]int64, 9)})
		}
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sent := wire.sent[0]
	if half := len(sent) / 2; half == 0 || slices.Equal(sent[:half], sent[half:]) {
		t.Errorf("two sums of zeros send %x, must be other bytes each time", sent)
	}
}
