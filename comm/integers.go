package comm

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/kernels"
)

// Integers are numbers of Bits bits each, packed, little endian, that are added modulo 2^Bits.
type Integers struct {
	Bits int    // 8, 16, 32 or 64
	B    []byte // Bits/8 bytes for each number
	form *Fixed // of the Update whose integers they become and whose numbers their sums are (nil = they are numbers)
}

// NewIntegers returns n zeros of `bits` bits.
func NewIntegers(bits, n int) Integers { return Integers{Bits: bits, B: make([]byte, n*bits/8)} }

// Add adds y, packed integers of as many bits, to the first ones of x.
func (x Integers) Add(y []byte) { kernels.AddIntegers(x.Bits, y, x.B[:len(y)]) }

func (x Integers) shape() (n, width int)   { return len(x.B) / (x.Bits / 8), x.Bits / 8 }
func (x Integers) bytes(lo, hi int) []byte { return x.B[lo*x.Bits/8 : hi*x.Bits/8] }
func (x Integers) put(lo int, b []byte) {
	if x.form != nil {
		x.form.decode(lo, b)
		return
	}
	copy(x.B[lo*x.Bits/8:], b)
}
func (x Integers) sum(lo int, terms [][]byte) {
	for _, b := range terms {
		if b != nil {
			Integers{Bits: x.Bits, B: x.B[lo*x.Bits/8:]}.Add(b)
		}
	}
}

// SumIntegers makes each of at most two vectors the sum of the members' vectors by Reduce,
// element by element; every member sends meta to each of the others by Control. The
// lengths must agree between members. It is the transport of sums whose terms are masked: hide is called
// once for numbers lo, …, hi−1 of vector k before they are sent to member `to`, which sums them, by several
// goroutines at once. These are few enough for a core's cache, and other ones are on their way meanwhile.
func (g *Group) SumIntegers(ctx context.Context, id ReduceID, meta []byte, hide func(k, to, lo, hi int),
	vectors ...Integers) (Reduced, error) {
	if len(meta) > MaxMeta || len(vectors) > 2 {
		panic(fmt.Sprintf("comm: SumIntegers %v: at most %d bytes of meta and two vectors (got %d and %d)", id, MaxMeta,
			len(meta), len(vectors)))
	}
	c, err := g.begin(ctx, opAllReduce, Reduce, "")
	if err != nil {
		return Reduced{}, err
	}
	c.id = id
	r := Reduced{Meta: make([][]byte, g.size)}
	if len(meta) > 0 {
		r.Meta[g.rank] = meta
	}
	var sums []*sum
	for k, v := range vectors {
		if len(v.B) > 0 {
			c.path = 2
		}
		s := newSum(c, v, []uint8{stepGive, stepGiveCount}[k], []uint8{stepSum, stepSumCount}[k])
		s.ready = v.ready(func(to, lo, hi int) {
			if to != g.rank {
				hide(k, to, lo, hi)
			}
		})
		sums = append(sums, s)
	}
	if g.size > 1 {
		c.sumUp(meta, r.Meta, sums...)
	}
	return r, c.end()
}

// atHand is how many bytes of integers are computed and hidden before the next.
const atHand = 16 << 10

// ready returns what sum.ready is: it computes integers and then hides them.
func (x Integers) ready(hide func(to, lo, hi int)) func(to, lo, hi int) {
	return func(to, lo, hi int) {
		for step := atHand / (x.Bits / 8); lo < hi; lo += step {
			end := min(lo+step, hi)
			if x.form != nil {
				x.form.encode(lo, end, x.bytes(lo, end))
			}
			hide(to, lo, end)
		}
	}
}
