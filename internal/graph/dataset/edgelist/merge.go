package edgelist

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/heddle-gnn/heddle/mat"
)

// CheckMerge refuses names other than the ways to merge edges.
func CheckMerge(how string) error {
	if !slices.Contains([]string{"", "sum", "count", "max", "mean", "last"}, how) {
		return fmt.Errorf("merge must be sum, count, max, mean or last (got %q)", how)
	}
	return nil
}

// Merge makes one edge of all that connect the same two nodes in either direction. If edges have types (kind), it
// merges those with the same source, target and type. The weight is the sum, count, maximum, mean or last of theirs,
// which are 1 if weight is nil. how "" and max merge nothing: graph.FromEdges keeps the largest weight. first is the
// place of the first edge that each is made of (nil = itself).
func Merge(how string, src, dst, kind []int32,
	weight []float32) (srcs, dsts, kinds []int32, weights []float32, first []int32) {
	if how == "" || how == "max" || len(src) == 0 {
		return src, dst, kind, weight, nil
	}
	for group := range repeats(src, dst, kind) {
		sum, last := 0.0, float32(1)
		for _, k := range group {
			if weight != nil {
				last = weight[k]
			}
			sum += float64(last)
		}
		w := last
		switch how {
		case "sum":
			w = float32(sum)
		case "count":
			w = float32(len(group))
		case "mean":
			w = float32(sum / float64(len(group)))
		}
		one := group[0]
		srcs, dsts, weights, first = append(srcs, src[one]), append(dsts, dst[one]), append(weights, w),
			append(first, one)
		if kind != nil {
			kinds = append(kinds, kind[one])
		}
	}
	return srcs, dsts, kinds, weights, first
}

// repeats gives the places of the edges that Merge makes one, in their order, edge after edge.
func repeats(src, dst, kind []int32) iter.Seq[[]int32] {
	type key struct{ a, b, kind int32 }
	keys, order := make([]key, len(src)), make([]int32, len(src))
	for k := range src {
		keys[k], order[k] = key{src[k], dst[k], 0}, int32(k)
		if kind != nil {
			keys[k].kind = kind[k]
		} else if src[k] > dst[k] {
			keys[k].a, keys[k].b = dst[k], src[k]
		}
	}
	slices.SortStableFunc(order, func(x, y int32) int {
		p, q := keys[x], keys[y]
		return cmp.Or(cmp.Compare(p.a, q.a), cmp.Compare(p.b, q.b), cmp.Compare(p.kind, q.kind))
	})
	return func(yield func([]int32) bool) {
		for at := 0; at < len(order); {
			end := at
			for end < len(order) && keys[order[end]] == keys[order[at]] {
				end++
			}
			if !yield(order[at:end]) {
				return
			}
			at = end
		}
	}
}

// MergeColumns gives edges that Merge makes one a common row of columns. Row k of x, an edge's, becomes the last one's
// if how is last, and the largest value of each column if it is max or "". Otherwise it becomes the mean of each
// column, as a sum or a count of standardised columns would mean nothing.
func MergeColumns(how string, src, dst, kind []int32, x mat.Dense) {
	sum := make([]float64, x.Cols)
	for group := range repeats(src, dst, kind) {
		if len(group) == 1 {
			continue
		}
		clear(sum)
		last := x.Row(int(group[len(group)-1]))
		for n, k := range group {
			for j, v := range x.Row(int(k)) {
				switch {
				case how == "last":
					sum[j] = float64(last[j])
				case how == "" || how == "max":
					if n == 0 || float64(v) > sum[j] {
						sum[j] = float64(v)
					}
				default:
					sum[j] += float64(v) / float64(len(group))
				}
			}
		}
		for _, k := range group {
			for j, v := range sum {
				x.Row(int(k))[j] = float32(v)
			}
		}
	}
}
