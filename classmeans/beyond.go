package classmeans

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

// Neighbours sums rows over edges to nodes of other members that this one does not see: leaf.Collector at a site,
// leaf.Contributor at a leaf. All members of a run have one, or none.
type Neighbours interface {
	// Boundary returns which of own nodes have such edges, and how many.
	Boundary() shard.BorderNodes
	// Gather returns for each node of the boundary the sum of its neighbours' rows; x has the rows of the boundary
	// [boundary × D]. An absent neighbour counts as 0.
	Gather(ctx context.Context, id comm.ReduceID, x mat.Dense) (mat.Dense, error)
}

// fitsBeyond returns what keeps this run from having edges to nodes of other members, or nil.
func (t *Trainer) fitsBeyond() error {
	switch c := t.config; {
	case t.Beyond == nil:
		return nil
	case !t.Leaves:
		return errors.New("only a run with phones has edges that members do not see")
	case c.Inductive:
		return errors.New("inductive must be false where phones have edges: nobody knows which neighbours train")
	}
	return nil
}

// seenFrom adds the edges to nodes of other members to degrees that count all own edges.
func (t *Trainer) seenFrom(degree []float32) {
	if t.Beyond == nil {
		return
	}
	b := t.Beyond.Boundary()
	for k, i := range b.Rows {
		degree[i] += b.Degree[k]
	}
}

// beyond adds to z, the aggregate of x over own edges, what the edges to nodes of other members bring.
func (t *Trainer) beyond(ctx context.Context, s *sight, x, z mat.Dense, what string) error {
	b := t.Beyond.Boundary()
	norm := t.model.Spec.Closed.Edges()
	toDst, _ := s.Factors(norm)
	rows := s.Weigh(x, norm).Select(b.Rows).Clone()
	for i, v := range rows.Data {
		rows.Data[i] = min(max(v, -train.MostCrossing), train.MostCrossing)
	}
	sums, err := t.Beyond.Gather(ctx, t.id("neighbours: "+what, 0, 0), rows)
	if err != nil {
		return err
	}
	for k, i := range b.Rows {
		most, f := float32(train.MostCrossing)*b.Degree[k], 1.0
		if toDst != nil {
			f = toDst[i]
		}
		row := z.Row(int(i))
		for j, v := range sums.Row(k) {
			row[j] += float32(f * float64(min(max(v, -most), most)))
		}
	}
	return nil
}
