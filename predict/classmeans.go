package predict

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// form is a model in closed form, or the columns in closed form of another model, as stages.
type form struct {
	*closed.Form
	leaveOut bool
	rounds   []formRound
}

// formRound has the stages of a round. The source has the columns that heads read and then, if they differ, those that
// are aggregated.
type formRound struct {
	source    *stage
	logitHops []*stage
	hops      []*stage
	sums      *stage
	logits    *stage // nil if no stage reads them
}

// addClosed adds the stages of a closed form and returns its last logits.
func (p *rows) addClosed(m *closed.Form) *stage {
	f := &form{Form: m, leaveOut: m.Spec.LeaveOut && p.trained}
	norm, spec := m.Spec.Edges(), m.Spec
	whole := func(x mat.Dense) mat.Dense { return x }
	for r := range m.Heads {
		var one formRound
		source := &stage{own: []*stage{p.input}, compute: func(c *call, nodes []int32) (mat.Dense, error) {
			own, z, err := f.source(c, r, nodes)
			if err != nil || !spec.OwnExact {
				return own, err
			}
			return graph.Columns([]graph.Features{{Dense: own}, {Dense: z}}).Dense, nil
		}}
		var before *stage
		if r > 0 {
			before = f.rounds[r-1].logits
		}
		// With leave-one-out a node's targets follow from its logits after the round before, so its source depends on
		// them.
		if before != nil && f.leaveOut {
			source.own = append(source.own, before)
		}
		one.source = p.add(source)
		reads := []*stage{p.input}
		// In the order in which closed.Form aggregates, hops of logits first: keptRows returns them one by one in this
		// order.
		for hop := range spec.LogitHopsOf(r) {
			from, pick := before, spec.Before
			if hop > 0 {
				from, pick = one.logitHops[hop-1], whole
			}
			one.logitHops = append(one.logitHops, p.addSum(from, norm, pick))
		}
		for hop := range spec.HopsOf(r) {
			from, pick := one.source, func(x mat.Dense) mat.Dense { _, z := f.cut(r, x); return z }
			if hop > 0 {
				from, pick = one.hops[hop-1], whole
			}
			one.hops = append(one.hops, p.addSum(from, norm, pick))
		}
		if spec.Sums(r) {
			rows := p.add(&stage{own: []*stage{p.input, before},
				compute: func(c *call, nodes []int32) (mat.Dense, error) {
					logits, err := c.get(before, nodes)
					if err != nil {
						return logits, err
					}
					return spec.ClassRows(f.features(c, nodes), logits), nil
				}})
			one.sums = p.addSum(rows, neighbours, whole)
			reads = append(reads, one.sums)
		}
		f.rounds = append(f.rounds, one)
		// Only these cases read the logits between rounds; otherwise the stage would be computed and kept for nothing.
		if !f.leaveOut && spec.Own == 0 && spec.LogitHops == 0 && r < len(m.Heads)-1 {
			continue
		}
		// A head reads the columns of all rounds so far, so that a change in any of them makes its logits invalid.
		for _, of := range f.rounds {
			reads = append(append(append(reads, of.source), of.logitHops...), of.hops...)
			if of.sums != nil {
				reads = append(reads, of.sums)
			}
			if of.logits != nil {
				reads = append(reads, of.logits)
			}
		}
		f.rounds[r].logits = p.add(&stage{own: reads, degrees: spec.Degree,
			compute: func(c *call, nodes []int32) (mat.Dense, error) { return f.logits(c, r, nodes) }})
	}
	return f.rounds[len(m.Heads)-1].logits
}

func (f *form) features(c *call, nodes []int32) graph.Features {
	return c.model.Encoder.Input(c.features(nodes))
}

// cut splits the source of round r into own columns and aggregated columns.
func (f *form) cut(r int, x mat.Dense) (own, z mat.Dense) {
	if w := f.Means[r].Value.Cols; x.Cols > w {
		return x.ColRange(0, w), x.ColRange(w, x.Cols)
	}
	return x, x
}

// before returns the logits of nodes before round r, if the round reads them.
func (f *form) before(c *call, r int, nodes []int32) (mat.Dense, error) {
	switch {
	case r > 0 && f.rounds[r-1].logits != nil:
		return c.get(f.rounds[r-1].logits, nodes)
	case r == 0 && f.leaveOut:
		return f.Spec.Prior(len(nodes), f.Counts[0].Value.Row(0)), nil
	}
	return mat.Dense{}, nil
}

// source is closed.Form.Source with targets from the nodes' own labels and logits.
func (f *form) source(c *call, r int, nodes []int32) (own, z mat.Dense, err error) {
	var p mat.Dense
	if f.leaveOut {
		logits, err := f.before(c, r, nodes)
		if err != nil {
			return own, z, err
		}
		labels, split := c.labelled(nodes)
		train, others := f.Spec.Present(split, labels)
		p = f.Spec.Targets(r, train, others, labels.Rows(train), logits)
	}
	own, z = f.Source(r, f.features(c, nodes), p)
	return own, z, nil
}

// logits returns the logits of nodes after round r, from the columns of all rounds so far.
func (f *form) logits(c *call, r int, nodes []int32) (mat.Dense, error) {
	v := &keptRows{c: c, nodes: nodes, x: f.features(c, nodes)}
	columns := closed.NewColumns(len(nodes), f.Heads[r].Inputs())
	for k, of := range f.rounds[:r+1] {
		x, err := c.get(of.source, nodes)
		if err != nil {
			return x, err
		}
		logits, err := f.before(c, k, nodes)
		if err != nil {
			return logits, err
		}
		v.next, v.sums = append(append(v.next[:0], of.logitHops...), of.hops...), of.sums
		own, z := f.cut(k, x)
		if err := f.RoundColumns(v, k, own, z, logits, columns); err != nil {
			return mat.Dense{}, err
		}
		if k == 0 && f.Own != nil {
			columns.Add(f.OwnColumns(v.x))
		}
	}
	return f.Heads[r].Logits(columns.Written()), nil
}

// keptRows implements closed.Surroundings for nodes with hops that are stages: each aggregate is the next hop's rows.
type keptRows struct {
	c     *call
	nodes []int32
	x     graph.Features
	next  []*stage
	sums  *stage
}

func (v *keptRows) Features() graph.Features { return v.x }

func (v *keptRows) Degrees() []float32 {
	d := make([]float32, len(v.nodes))
	for k, i := range v.nodes {
		d[k] = v.c.degree[i]
	}
	return d
}

func (v *keptRows) Aggregate(y, _ mat.Dense, _ string) error {
	// The first stage that is left: RoundColumns asks in the order in which addClosed made the stages. Its argument is
	// not read, because the stage has summed it already.
	s := v.next[0]
	v.next = v.next[1:]
	x, err := v.c.get(s, v.nodes)
	if err == nil {
		y.CopyFrom(x)
	}
	return err
}

func (v *keptRows) ClassSums(int, mat.Dense) (mat.Dense, error) { return v.c.get(v.sums, v.nodes) }
