package recorded

import (
	"encoding/binary"
	"errors"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
)

// Ends returns the rows of ends of links that the attacker received from the victim in the last step, and the victim's
// nodes that they belong to. With method "layer-wise" it computes them from what it has received. A question is a
// message of u32 places among the victim's nodes; the rows come by the operation after it.
func (run *Run) Ends(victim int) (nodes []int32, rows mat.Dense, err error) {
	if run.Plan.Method == plan.LayerWise {
		own := run.Shards[run.Attacker]
		rows = run.far.RowRange(own.HaloPtr[victim]-own.Owned, own.HaloPtr[victim+1]-own.Owned)
		return run.Shards[victim].Boundary[run.Attacker], rows, nil
	}
	came := make(map[uint32]Message)
	for _, m := range run.Record.Received(victim, comm.Halo) {
		if !m.Dup {
			came[m.Seq] = m
		}
	}
	asked := run.Record.Sent(victim, comm.Control)
	for k := len(asked) - 1; k >= 0; k-- {
		q := asked[k]
		m, is := came[q.Seq+1]
		if q.Dup || q.Op != "sendrecv" || !is || len(q.Payload) == 0 || len(q.Payload)%4 != 0 {
			continue
		}
		n := len(q.Payload) / 4
		all, err := run.RowsIn([]Message{m}, n, run.Model.Spec.Classes)
		if err != nil {
			continue // it asked for something else
		}
		for at := 0; at < 4*n; at += 4 {
			nodes = append(nodes, int32(binary.LittleEndian.Uint32(q.Payload[at:])))
		}
		return nodes, all[0], nil
	}
	return nil, mat.Dense{}, errors.New("no rows of ends of links came")
}
