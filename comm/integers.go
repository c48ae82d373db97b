package comm

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/kernels"
)

// Integers are numbers of Bits bits each, packed, little endian, that are added modulo 2^Bits.
type Integers struct {
	Bits int // 8, 16, 32 or 64
	B    []byte
}

// NewIntegers returns n zeros of that many bits.
func NewIntegers(bits, n int) Integers { return Integers{bits, make([]byte, n*bits/8)} }

// Add adds y, packed integers of as many bits, to the first ones of x.
func (x Integers) Add(y []byte) { kernels.AddIntegers(x.Bits, y, x.B[:len(y)]) }

// Sub subtracts y, packed integers of as many bits, from the first ones of x.
func (x Integers) Sub(y []byte) { kernels.SubIntegers(x.Bits, y, x.B[:len(y)]) }

func (x Integers) shape() (n, width int)   { return len(x.B) / (x.Bits / 8), x.Bits / 8 }
func (x Integers) bytes(lo, hi int) []byte { return x.B[lo*x.Bits/8 : hi*x.Bits/8] }
func (x Integers) put(lo int, b []byte)    { copy(x.B[lo*x.Bits/8:], b) }
func (x Integers) sum(lo int, terms [][]byte) {
	for _, b := range terms {
		if b != nil {
			Integers{x.Bits, x.B[lo*x.Bits/8:]}.Add(b)
		}
	}
}

// SumIntegers makes each of at most two vectors the sum of the members' vectors by Reduce,
// element by element; every member sends meta to each of the others by Control. The
// lengths must agree between members. It is the transport of sums whose terms are masked: hide is called
// once for numbers lo, …, hi−1 of vector k before they are sent to member `to`, which sums them, by several
// goroutines at once. So some parts are masked while others are on their way.
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
		s.hide = func(to, lo, hi int) { hide(k, to, lo, hi) }
		sums = append(sums, s)
	}
	if g.size > 1 {
		c.sumUp(meta, r.Meta, sums...)
	}
	return r, c.end()
}
