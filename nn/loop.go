package nn

import (
	"sync"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// loop is a loop over rows that the kernels' pool shares between cores: bands of rows, cut by their
// width alone, so that a sum over bands has the same bits for any number of cores. The other fields
// are what a body reads and writes.
type loop struct {
	body  func(w *loop, band, lo, hi int)
	rows  int
	width int // values of a row; a measure of its work

	y, d   mat.Dense
	p      float32
	key    rng.Key
	nodes  []int64
	sparse *mat.Sparse
	first  int // row of sparse that is row 0 here
	val    []float32
	keys   []uint64

	attention *attention
	acc, dacc *Acc
	weight    []float32
	trans     *transpose
}

// bandLen is how many values a band has, if it has more than one row: some 20 µs of work.
const bandLen = 1 << 14

func (w *loop) band() int  { return max(1, bandLen/max(w.width, 1)) }
func (w *loop) bands() int { return (w.rows + w.band() - 1) / w.band() }

// Run does one band.
func (w *loop) Run(part int) {
	n := w.band()
	w.body(w, part, part*n, min((part+1)*n, w.rows))
}

var loops = sync.Pool{New: func() any { return new(loop) }}

// each does all bands of l.
func each(l loop) {
	w := loops.Get().(*loop)
	*w = l
	kernels.Parallel(w, w.bands())
	*w = loop{}
	loops.Put(w)
}
