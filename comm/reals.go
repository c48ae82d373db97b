package comm

import "context"

// SumReals replaces the few numbers of x by their sums over all peers, to about the precision of float64.
func SumReals(ctx context.Context, r Reducer, id ReduceID, x []float64) error {
	parts := make([]float32, 0, 2*len(x)) // each value and what rounding leaves of it
	for _, v := range x {
		parts = append(parts, float32(v), float32(v-float64(float32(v))))
	}
	if _, err := r.Reduce(ctx, &Contribution{ID: id, Update: parts}); err != nil {
		return err
	}
	for k := range x {
		x[k] = float64(parts[2*k]) + float64(parts[2*k+1])
	}
	return nil
}
