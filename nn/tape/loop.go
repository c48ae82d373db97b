package tape

import (
	"sync"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// loop is a loop over rows that the kernels' pool shares between cores: bands of rows, cut by their
// width alone, so that the bits are the same for any number of cores. The other fields are what a
// body reads and writes.
type loop struct {
	body  func(w *loop, lo, hi int)
	rows  int
	width int // values of a row, for estimating the work

	y, x   mat.Dense
	add    bool
	p      float32
	key    rng.Key
	nodes  []int64
	sparse *mat.Sparse
	first  int // row of sparse that is row 0 of the loop
	val    []float32
	ends   []int64
	places []int32
	mask   kernels.Mask

	dropped *dropped
	turned  []kernels.Turned
}

// BandLen is how many values the bands have that cores share, if they have more than one row: some
// 20 µs of work.
const BandLen = 1 << 14

func (w *loop) band() int { return max(1, BandLen/max(w.width, 1)) }

// Run processes one band.
func (w *loop) Run(part int) {
	n := w.band()
	w.body(w, part*n, min((part+1)*n, w.rows))
}

var loops = sync.Pool{New: func() any { return new(loop) }}

// each processes all bands of l.
func each(l loop) {
	w := loops.Get().(*loop)
	*w = l
	kernels.Parallel(w, (w.rows+w.band()-1)/w.band())
	*w = loop{}
	loops.Put(w)
}
