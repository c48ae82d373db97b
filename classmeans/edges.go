package classmeans

import "github.com/heddle-gnn/heddle/comm"

// asksForEdges reports whether this peer counts whether edges connect it to others (Config.AsksForEdges). Edges of
// leaves are not in its shard, and columns of classes have the layout of the layers that see them.
func (t *Trainer) asksForEdges() bool {
	return !t.Leaves && !t.within && t.config.AsksForEdges(t.shard.Parts)
}

// agreeEdges takes how many peers have edges to others. What a site has to round it rounds, whatever the others say.
func (t *Trainer) agreeEdges(connected int64) error {
	if connected == 0 && t.shard.Connected() {
		return comm.Refused("the peers with edges to others must be at least 1, as this one has some (got 0)")
	}
	if connected == 0 {
		t.withoutEdges()
	}
	return nil
}

// withoutEdges makes the model one of sites that no edge connects.
func (t *Trainer) withoutEdges() {
	spec := &t.model.Closed.Spec
	*spec = spec.WithoutEdges()
	t.model.Spec.Closed = spec
}

// statisticsCountLimit is the limit of the counts that are sent with the column statistics.
func (t *Trainer) statisticsCountLimit(i int) comm.Limit {
	if i > 0 {
		return comm.Limit{What: "the number of peers with edges to others", Least: 0, Most: float64(t.shard.Parts - 1)}
	}
	return comm.Limit{What: "the number of nodes", Least: 0, Most: t.unknown().Rows}
}
