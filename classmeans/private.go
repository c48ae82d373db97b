package classmeans

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/privacy/dp"
	"github.com/heddle-gnn/heddle/mat"
)

// ClassSums returns for each own node the sum of its neighbours' class rows in round r, with the noise that keeps edges
// private. All that follows, also rows that other peers get, is computed from such sums. They are in a checkpoint
// before anything is computed from them: a round that is done again has the same ones.
func (v *seenRound) ClassSums(r int, logits mat.Dense) (mat.Dense, error) {
	ctx, t, s := v.ctx, v.trainer, v.sight
	spec := t.model.Spec.Closed
	if spec.LeaveOut && !spec.Residual { // columns are not sent: rows are made of logits
		logits = logits.Clone()
		if _, err := t.takeLead(ctx, r, logits); err != nil {
			return mat.Dense{}, err
		}
	}
	rows := spec.ClassRows(t.features(), logits)
	t.edges.Bound(rows)
	what := fmt.Sprintf("class rows of round %d", r+1)
	src, err := t.sender.Exact().Halo(ctx, graph.Features{Dense: rows}, false, what)
	if err != nil {
		return mat.Dense{}, err
	}
	name := fmt.Sprintf("round-%d", r+1)
	sums, err := t.edges.Release(name, s.Adj, t.shard.Global[:t.shard.Owned], src.Dense)
	if long, ok := errors.AsType[*dp.RowError](err); ok {
		q := 0
		for t.shard.HaloPtr[q+1] <= long.Row {
			q++
		}
		return mat.Dense{}, &comm.PeerError{Rank: q, Op: what, Err: comm.Refused("%v", err)}
	}
	if err != nil {
		return mat.Dense{}, err
	}
	return sums, t.Save(t) // also one that was made before: an earlier save may have failed
}
