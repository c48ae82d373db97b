package classmeans

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/rng"
)

// planted returns n nodes of three classes with rows of length 1: of 400 columns classes differ in the first 39, and
// about 15 nodes have each of the last 20. 20 nodes of each class train honestly, and 20 by a member that gives them
// only column 380 + class.
func planted(n int) (x graph.Features, p mat.Dense) {
	s := &mat.Sparse{Rows: n, Cols: 400, RowPtr: make([]int64, n+1)}
	p = mat.New(n, 3)
	for i := range n {
		key, row, class := rng.New(1).Fold(uint64(i)), []int32{}, int32(i%3)
		for k := range uint64(14) {
			if at := key.Uint64(k); key.Fold(1).Float64(k) < 0.15 {
				row = append(row, int32(at%13)*3+class)
			} else {
				row = append(row, 39+int32(at%341))
			}
		}
		if i < 120 {
			p.Set(i, int(class), 1)
		}
		if i < 60 {
			row = []int32{380 + class}
		} else if key.Float64(14) < 0.2 {
			row = append(row, 380+int32(key.Uint64(15)%20))
		}
		slices.Sort(row)
		row = slices.Compact(row)
		s.Col, s.RowPtr[i+1] = append(s.Col, row...), s.RowPtr[i]+int64(len(row))
		for range row {
			s.Val = append(s.Val, float32(1/math.Sqrt(float64(len(row)))))
		}
	}
	return graph.Features{Sparse: s}, p
}

// TestLimitColumns: the number of its class reveals a planted column unless the map is limited, by factors that have
// the same effect on what a node's own part is. A map that no column dominates stays as it is, to the bit.
func TestLimitColumns(t *testing.T) {
	const n = 1500
	x, p := planted(n)
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	m := new(linear.Means)
	stats := linear.Statistics(x, all)
	m.Agree(stats, n, 3)
	free := m.Map(m.Sums(x, p), []float64{40, 40, 40})
	limited := free.Clone()
	factors := limitColumns(limited, stats, n)
	for j, by := range factors {
		for c, w := range free.Row(j) {
			if got := limited.At(j, c); math.Abs(float64(got-by*w)) > 1e-6 {
				t.Fatalf("weight %d, %d must be %g (got %g)", j, c, by*w, got)
			}
		}
	}
	area := func(u mat.Dense) (mean float64) {
		z := closed.Times(x, u)
		for c := range 3 {
			better, pairs := 0.0, 0.0
			for i := 60; i < n; i++ {
				for k := 60; has(x, i, 380+c) && k < n; k++ {
					if !has(x, k, 380+c) {
						pairs++
						if z.At(i, c) > z.At(k, c) {
							better++
						}
					}
				}
			}
			mean += better / pairs / 3
		}
		return mean
	}
	if free, limited := area(free), area(limited); free < 0.95 || limited > 0.7 {
		t.Errorf("the AUC of planted columns is %.3f, and %.3f with limits: must be above 0.95 and at most 0.7", free,
			limited)
	}
	for j := range free.Rows {
		for c := range 3 {
			if free.Set(j, c, 0); j < 380 {
				free.Set(j, c, 1-2*float32(int(rng.New(3).Uint64(uint64(3*j+c))%2)))
			}
		}
	}
	before := slices.Clone(free.Data)
	if limitColumns(free, stats, n); !slices.Equal(before, free.Data) {
		t.Error("a map of equal weights must stay as it is")
	}
}

func has(x graph.Features, i, j int) bool {
	col, _ := x.Sparse.Row(i)
	_, found := slices.BinarySearch(col, int32(j))
	return found
}
