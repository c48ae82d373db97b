package links

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
)

// Wanted is an own node that gets new links under a relation of the decoder.
type Wanted struct{ Node, Relation int32 }

// Recommend returns the k best new links of each of wanted, in its order, best first, where z are own rows. The other
// ends are all nodes, or near ones, of the types that links of the relation join at any peer. All peers call it; a peer
// may want nothing.
func Recommend(ctx context.Context, c train.LinkTask, s *shard.Shard, d *nn.Decoder, g *comm.Group,
	sender *train.Sender, r comm.Reducer, z mat.Dense, wanted []Wanted, k int) ([]shard.NewLink, error) {
	c.HeldOut, c.Time = [2]float64{}, nil // all links are known
	t, err := New(c, 0, s)
	if err != nil {
		return nil, err
	}
	t.group, t.sender = g, sender
	if err := t.learn(ctx); err != nil {
		return nil, err
	}
	types := max(s.Types.Count(), 1)
	ends := make([]int64, len(t.cut.Relations)*types*types)
	place := func(l Link) int {
		return (int(l.Relation)*types+int(t.dir.Mark[s.Global[l.At]]))*types + int(t.dir.Mark[s.Global[l.Other]])
	}
	for _, l := range t.cut.Links {
		ends[place(l)]++
	}
	if _, err := r.Reduce(ctx, &comm.Contribution{ID: comm.ReduceID{Kind: "types of ends"}, Counts: ends}); err != nil {
		return nil, err
	}
	fresh, all, at := make([][]int64, len(wanted)), []askedPair(nil), make(map[int64]int)
	for i, w := range wanted {
		joined := make([]bool, types)
		first := (int(w.Relation)*types + int(t.dir.Mark[s.Global[w.Node]])) * types
		for kind := range joined {
			joined[kind] = ends[first+kind] > 0
		}
		fresh[i] = t.drawer.Fresh(nil, w.Node, w.Relation, joined)
		for _, id := range fresh[i] {
			if _, is := at[id]; !is {
				at[id] = len(all)
				all = append(all, askedPair{other: id})
			}
		}
	}
	const what = "ends of new links"
	e, err := t.meet(ctx, all, what)
	if err != nil {
		return nil, err
	}
	x, err := t.table(ctx, e, z, what)
	if err != nil {
		return nil, err
	}
	var found []shard.NewLink
	for i, w := range wanted {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		of := make([]nn.Pair, len(fresh[i]))
		for j, id := range fresh[i] {
			of[j] = nn.Pair{U: w.Node, V: e.of[at[id]].V, Relation: w.Relation}
		}
		scores := d.Scores(x, of)
		for _, j := range nn.BestScores(scores, k) {
			id := fresh[i][j]
			found = append(found, shard.NewLink{Node: w.Node, Relation: w.Relation, Other: id,
				Owner: int(t.dir.Peer[id]), Score: scores[j]})
		}
	}
	return found, nil
}
