package train

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// AgreedNorm returns l2 if no node of any site has a value below 0, and most have two values or more, at most half of
// the columns; else none.
func AgreedNorm(ctx context.Context, r comm.Reducer, s *shard.Shard) (string, error) {
	counts := []int64{0, 0} // nodes with a value below 0, and with few values
	for i := range s.Owned {
		row := s.X.Dense.Row
		if s.X.Sparse != nil {
			row = func(i int) []float32 { _, values := s.X.Sparse.Row(i); return values }
		}
		values := 0
		for _, v := range row(i) {
			if v < 0 {
				counts[0]++
				break
			}
			if v > 0 {
				values++
			}
		}
		if values > 1 && 2*values <= s.X.Cols() {
			counts[1]++
		}
	}
	most := float64(s.Nodes) - float64(s.Owned)
	_, err := r.Reduce(ctx, &comm.Contribution{ID: comm.ReduceID{Kind: "features"}, Counts: counts,
		CountBits:  comm.CountBits(s.Nodes),
		CountLimit: func(int) comm.Limit { return comm.Limit{What: "a number of nodes", Most: most} }})
	if err != nil || counts[0] > 0 || 2*counts[1] < s.Nodes {
		return "none", err
	}
	return "l2", nil
}
