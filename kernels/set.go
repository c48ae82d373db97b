package kernels

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// set is one implementation of every loop. Its functions do not check their arguments: exported functions have checked
// them.
type set struct {
	name string

	axpy        func(a float32, x, y []float32)
	dot         func(x, y []float32) float32
	add         func(x, y []float32)
	scale       func(a float32, x []float32)
	relu        func(x, y []float32)
	reluGrad    func(y, dy, dx []float32)
	where       func(e int32, arg []int32, x, y []float32) // y = x if arg is e, else 0
	elu         func(x, y []float32)
	eluGrad     func(y, dy, dx []float32)
	leakyDot    func(slope float32, v, x, y []float32) float32
	leakyGrad   func(d, slope float32, v, x, y, dv, dy []float32)
	leakySource func(p, d, slope float32, dh, v, x, y, dx []float32)
	waves       func(phase, y []float32)
	adam        func(p, g, m, v []float32, c adam)
	// past the caches if past is set, for whole lines, unless add is set
	dropout func(lo, hi, limit uint32, up float32, x, y []float32, add, past bool)
	// kept sets the bits of values of x that dropout leaves other than 0 in mask, and counts them. packKept writes
	// these values, times up, and their columns. turnKept does so for values whose bit index and row are packed in
	// place, and writes which ones it keeps to bits. Both may write 16 values more than they count.
	kept     func(lo, hi, limit uint32, col []int32, x []float32, mask *uint16) int
	packKept func(mask *uint16, up float32, col []int32, x []float32, at []int32, y []float32) int
	turnKept func(mask *uint16, up float32, place []uint32, x []float32, at []int32, y []float32, bits *uint16) int

	addWide  func(x []float32, sum []float64)        // sum += x
	sumWide  func(dst []float32, terms [][]float32)  // dst = Σ terms in float64
	integers func(bits int, x, y []byte, minus bool) // y ± x, packed integers modulo 2^bits
	// round keys, and y ± the stream from byte `at` on; if it is nil or returns false, crypto/cipher is used
	expandKey func(key *[32]byte, rounds *[15][16]byte) bool
	keystream func(k *Keystream, bits, at int, y []byte, minus bool)
	maxIndex  func(col []int32) uint32 // greatest as unsigned integer, so that a negative one is the greatest

	toBF16   func(x []float32, y []uint16)
	fromBF16 func(x []uint16, y []float32)
	maxAbs   func(x []float32) float32
	toInt8   func(up float32, x []float32, y []int8)
	fromInt8 func(scale float32, x []int8, y []float32)
	toFixed  func(x []float32, up []float64, b []byte)    // b = x·up as integers of 32 bits
	fixed    func(b []byte, steps []float64, x []float32) // x = integers of 32 bits times steps

	// Rows of LayerNorm and softmax; sums have the order of type lanes.
	sum        func(x []float32) float64
	sumSquares func(x []float32, mean float32) float64                        // squared deviations of x from the mean
	normalise  func(x, gain, bias, y []float32, mean, inv float32, past bool) // past writes whole lines past the caches
	normSums   func(x, dy, gain []float32, mean, inv float32) (a, b float64)  // Σ dy·gain, Σ dy·gain·x̂
	normGrad   func(x, dy, gain, dx []float32, mean, inv, ma, mb float32)
	// gain += dy·x̂, bias += dy, over up to normBlock rows
	addNorm func(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64)
	max     func(x []float32) float32
	expSum  func(shift float32, x, y []float32) float64
	// softmax (nil = none) processes the softmaxRows rows of a block, with 1 to softmaxCols scores each. It computes
	// their maxima, sums, the scores of their classes and, unless y is nil, their gradients.
	softmax func(b *entropyBlock, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)
	// fence makes writes past the caches visible to other threads; nil if the set has no such writes.
	fence func()

	// Edges of an attention, by head (see attention_generic.go).
	pick       func(q, table []float32, ld, pad int, col []int32)
	addPicked  func(q, table []float32, ld, pad int, col []int32, lo, hi int)
	logits     func(q []float32, slope float32, own, top *headLanes)
	weights    func(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes)
	drop       func(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32)
	attend     func(g *attentionGroup, r *room, lo, rows, e, n int)
	attendDots func(g *attentionGroup, r *room, lo, rows, e, n int)
	logitGrads func(n int, slopes, keep, dots, base, out *float32, sum *headLanes)

	gemm  func(g *gemm, s *scratch, i0, i1, j0, j1 int) // the rectangle [i0,i1)×[j0,j1) of C
	tiles tiles                                         // micro-kernel of gemm, if it is blocked
	// used instead of tiles if C has 33 to 48 columns (zero = none)
	wider tiles
	spmm  func(s *spmm, lo, hi int) // rows [lo, hi) of Y
	panel panels                    // (run nil = none)
	spmax func(s *spmax, lo, hi int)
	// gemmBF16 (nil = none) is gemm with A and B rounded to bfloat16. It needs tilesAllowed.
	gemmBF16 func(g *gemm, s *scratch, i0, i1, j0, j1 int)
}

// tiles is the micro-kernel of a blocked GEMM: rows×cols of C at a time, and the smaller shapes for the edges.
type tiles struct {
	rows, cols int           // the largest tile; narrow ones halve the columns, down to 8
	height     func(int) int // rows of the next tile, given how many are left
	// run computes rows×cols of C from k columns of A, element (i,p) at a[i·rs+p·cs], and packed rows of B. height rows
	// of A must be readable, even if fewer are stored. The next tile of C begins next values after this one.
	run func(height, rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer,
		ldc, next int, acc bool)
	// masks reports whether run reads at most cols values of each row of B, at any stride ldb. Otherwise B is packed,
	// in rows as wide as the tile.
	masks bool
	// transpose (nil = none) transposes up to 16 rows x, ldx apart: y[q·ldy+r] = x[r·ldx+q] for k columns q. If A is
	// used often, it is then packed by columns, which run reads at the highest rate. Bᵀ is packed so, too.
	transpose func(rows, k int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)
	// lay (nil = none) copies n columns of x's rows, ldx apart, to rows of y, ldy apart. It packs B.
	lay func(rows, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)
}

// env names the variable that overrides the choice of the instruction set.
const env = "HEDDLE_KERNELS"

// active is the set in use, chosen once.
var active, choiceErr = choose(os.Getenv(env), usable())

// choose returns the set with that name, or the best of sets (worst first) and an error if the name is unknown.
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

// Usable returns the values of HEDDLE_KERNELS that work on this machine, the slowest first.
func Usable() []string {
	var names []string
	for _, s := range usable() {
		names = append(names, s.name)
	}
	return names
}

// Choice returns an error if the environment variable HEDDLE_KERNELS names a set that this machine cannot use; the best
// one is then in use. A program should check it at start-up.
func Choice() error { return choiceErr }
