package kernels

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// set is one implementation of every loop. Its functions trust their arguments: exported ones have
// checked them.
type set struct {
	name string

	axpy        func(a float32, x, y []float32)
	dot         func(x, y []float32) float32
	add         func(x, y []float32)
	scale       func(a float32, x []float32)
	relu        func(x, y []float32)
	reluGrad    func(y, dy, dx []float32)
	where       func(e int32, arg []int32, x, y []float32) // y = x where arg is e, else 0
	elu         func(x, y []float32)
	eluGrad     func(y, dy, dx []float32)
	leakyDot    func(slope float32, v, x, y []float32) float32
	leakyGrad   func(d, slope float32, v, x, y, dv, dy []float32)
	leakySource func(p, d, slope float32, dh, v, x, y, dx []float32)
	adam        func(p, g, m, v []float32, c adam)
	// past the caches, whole lines that is, unless add
	dropout func(lo, hi, limit uint32, up float32, x, y []float32, add, past bool)
	// kept sets in mask the bits of values of x that dropout leaves other than 0, and counts them. packKept writes
	// these, times up, and their columns, turnKept the same where the bit of a value and its row are in place, and
	// which it keeps to bits. Both write up to 16 values more than they count.
	kept     func(lo, hi, limit uint32, col []int32, x []float32, mask *uint16) int
	packKept func(mask *uint16, up float32, col []int32, x []float32, at []int32, y []float32) int
	turnKept func(mask *uint16, up float32, place []uint32, x []float32, at []int32, y []float32, bits *uint16) int

	addWide  func(x []float32, sum []float64)        // sum += x
	sumWide  func(dst []float32, terms [][]float32)  // dst = Σ terms in float64
	integers func(bits int, x, y []byte, minus bool) // y ± x, packed integers modulo 2^bits
	// the keys of the rounds, and y ± the stream from byte `at` on by them; nil or false: crypto/cipher has to do it
	expandKey func(key *[32]byte, rounds *[15][16]byte) bool
	keystream func(k *Keystream, bits, at int, y []byte, minus bool)
	maxIndex  func(col []int32) uint32 // greatest, as unsigned, so that a negative one is greatest of all

	toBF16   func(x []float32, y []uint16)
	fromBF16 func(x []uint16, y []float32)
	maxAbs   func(x []float32) float32
	toInt8   func(up float32, x []float32, y []int8)
	fromInt8 func(scale float32, x []int8, y []float32)
	toFixed  func(x []float32, up []float64, b []byte)    // b = x·up as integers of 32 bits
	fixed    func(b []byte, steps []float64, x []float32) // x = integers of 32 bits times steps

	// Rows of LayerNorm and softmax; sums are in the order of type lanes.
	sum        func(x []float32) float64
	sumSquares func(x []float32, mean float32) float64                        // of what x is from the mean
	normalise  func(x, gain, bias, y []float32, mean, inv float32, past bool) // past the caches, whole lines that is
	normSums   func(x, dy, gain []float32, mean, inv float32) (a, b float64)  // Σ dy·gain, Σ dy·gain·x̂
	normGrad   func(x, dy, gain, dx []float32, mean, inv, ma, mb float32)
	// gain += dy·x̂, bias += dy, of up to normBlock rows
	addNorm func(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64)
	max     func(x []float32) float32
	expSum  func(shift float32, x, y []float32) float64
	// softmax, unless it is nil, does the softmaxRows rows of a block, of 1 to softmaxCols scores:
	// their maxima, sums, the scores of their classes and, unless y is nil, their gradients.
	softmax func(b *entropyBlock, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)
	// fence, nil where nothing can be written past the caches, makes what has been visible to
	// others.
	fence func()

	// Edges of an attention, by heads (see attention_generic.go).
	pick       func(q, table []float32, ld, pad int, col []int32)
	addPicked  func(q, table []float32, ld, pad int, col []int32, lo, hi int)
	logits     func(q []float32, slope float32, own, top *headLanes)
	weights    func(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes)
	drop       func(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32)
	attend     func(g *attentionGroup, r *room, lo, rows, e, n int)
	attendDots func(g *attentionGroup, r *room, lo, rows, e, n int)
	logitGrads func(n int, slopes, keep, dots, base, out *float32, sum *headLanes)

	gemm  func(g *gemm, s *scratch, i0, i1, j0, j1 int) // the rectangle [i0,i1)×[j0,j1) of C
	tiles tiles                                         // what gemm is made of where it is blocked
	// instead of tiles where C has 33 to 48 columns, if there are any
	wider tiles
	spmm  func(s *spmm, lo, hi int) // rows [lo, hi) of Y
	panel panels                    // unless its run is nil
	spmax func(s *spmax, lo, hi int)
	// gemmBF16, unless it is nil, is gemm of A and B rounded to bfloat16. It takes tilesAllowed.
	gemmBF16 func(g *gemm, s *scratch, i0, i1, j0, j1 int)
}

// tiles is the micro-kernel of a blocked GEMM: rows×cols of C at a time, and the smaller shapes for
// the edges.
type tiles struct {
	rows, cols int           // the largest tile; narrow ones halve the columns, down to 8
	height     func(int) int // how many rows the next tile computes, given how many are left
	// run computes rows×cols of C from k columns of A, element (i,p) at a[i·rs+p·cs], and packed
	// rows of B. height rows of A must be readable, even where fewer are stored. The tile of C that
	// comes next is next values on.
	run func(height, rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer,
		ldc, next int, acc bool)
	// masks is whether run reads no more than cols of each row of B, at any stride ldb. Otherwise B
	// is packed, in rows as wide as the tile.
	masks bool
	// transpose, unless it is nil, lays up to 16 rows x, ldx apart, side by side: y[q·ldy+r] =
	// x[r·ldx+q] for k columns q. A is then packed column by column where it is used often, which
	// run takes at the fastest rate, and Bᵀ too.
	transpose func(rows, k int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)
	// lay, unless it is nil, copies n columns of x's rows, ldx apart, to those of y, ldy apart: B
	// is so packed.
	lay func(rows, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)
}

// env names the variable that overrides the choice of the instruction set.
const env = "HEDDLE_KERNELS"

// active is the set in use, chosen once.
var active, choiceErr = choose(os.Getenv(env), usable())

// choose returns the set called name, or the best of sets (worst first), with an error where name
// is not among them.
func choose(name string, sets []*set) (*set, error) {
	best := sets[len(sets)-1]
	if name == "" {
		return best, nil
	}
	var names []string
	for _, s := range sets {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return best, fmt.Errorf("kernels: %s must be one of %s on this machine (got %q)", env, strings.Join(names, ", "),
		name)
}

// Name returns the name of the instruction set in use: "generic", "avx2", "avx512" or "neon".
func Name() string { return active.name }

// Usable returns the names that HEDDLE_KERNELS may have on this machine, the slowest first.
func Usable() []string {
	var names []string
	for _, s := range usable() {
		names = append(names, s.name)
	}
	return names
}

// Choice returns an error where the environment variable HEDDLE_KERNELS names a set that this
// machine cannot use; the best one is then in use. A program should check it at start-up.
func Choice() error { return choiceErr }
