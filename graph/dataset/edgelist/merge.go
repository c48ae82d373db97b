package edgelist

import (
	"cmp"
	"fmt"
	"slices"
)

// CheckMerge refuses what is no way to merge edges.
func CheckMerge(how string) error {
	if !slices.Contains([]string{"", "sum", "count", "max", "mean", "last"}, how) {
		return fmt.Errorf("edgelist: merge must be sum, count, max, mean or last (got %q)", how)
	}
	return nil
}

// Merge makes one edge of all that join the same two nodes, in either direction, or where edges
// have types (kind) of those with the same source, target and type. Its weight is the sum, count,
// maximum, mean or last of theirs, which are 1 where weight is nil. how "" and max merge nothing:
// graph.FromEdges keeps the largest weight.
func Merge(how string, src, dst, kind []int32, weight []float32) (srcs, dsts, kinds []int32, weights []float32) {
	if how == "" || how == "max" || len(src) == 0 {
		return src, dst, kind, weight
	}
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
	for at := 0; at < len(order); {
		end := at
		sum, last := 0.0, float32(1)
		for ; end < len(order) && keys[order[end]] == keys[order[at]]; end++ {
			if weight != nil {
				last = weight[order[end]]
			}
			sum += float64(last)
		}
		w := last
		switch how {
		case "sum":
			w = float32(sum)
		case "count":
			w = float32(end - at)
		case "mean":
			w = float32(sum / float64(end-at))
		}
		one := order[at]
		srcs, dsts, weights = append(srcs, src[one]), append(dsts, dst[one]), append(weights, w)
		if kind != nil {
			kinds = append(kinds, kind[one])
		}
		at = end
	}
	return srcs, dsts, kinds, weights
}
