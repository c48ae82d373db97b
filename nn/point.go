package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/rows"
)

// Point sets the first columns of the weights of l's Maps to the directions of s, D×C, one per class. A layer of more than
// C columns gets their negatives too, since an activation passes only one side of a direction. The columns keep the
// length that they had when they were drawn (tape.Glorot). The other columns, and those of a class without a direction,
// do not change. Rows of s are those of the maps, the layer's own rows first; further rows are not read.
func (l *Layer) Point(s mat.Dense) {
	self, nbr, _ := l.Maps()
	length, at := 0.0, 0 // squared
	for _, m := range []*rows.Linear{self, nbr} {
		if m != nil {
			in, out := m.Dims()
			length += 2 * float64(in) / float64(in+out)
			at += in
		}
	}
	norm := make([]float64, s.Cols) // squared
	for i := range at {
		for c, v := range s.Row(i) {
			norm[c] += float64(v) * float64(v)
		}
	}
	at = 0
	for _, m := range []*rows.Linear{self, nbr} {
		if m == nil {
			continue
		}
		in, out := m.Dims()
		for i := range in {
			row := m.W.Value.Row(i)
			for j := range min(2*s.Cols, out) {
				c := j % s.Cols
				if norm[c] == 0 {
					continue
				}
				f := math.Sqrt(length / norm[c])
				if j >= s.Cols {
					f = -f
				}
				row[j] = float32(f * float64(s.At(at+i, c)))
			}
		}
		at += in
	}
}
