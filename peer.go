package heddle

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/privacy/dp"
	"github.com/heddle-gnn/heddle/session"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
	"github.com/heddle-gnn/heddle/train/links"
)

// peer is one peer's part in a run.
type peer struct {
	plan    Plan
	name    string
	at      *session.Session
	shard   *shard.Shard
	edges   *dp.Edges // of private edges; nil until a trainer needs it: all trainers of this process share what it released
	init    *Initial  // (nil = random parameters)
	embed   bool      // hidden rows are kept
	publish int       // figures.Exchange's
	members []string  // names of all sites by rank; nil: they have none

	final *figures.Exchange // of all trainers of this process; made with the first one
}

// trainer is a trainer with what it trains.
type trainer struct {
	plan.Trainer
	config any
	metric eval.Metric                               // as it was asked for
	ranks  func() (val, test links.Figures, ok bool) // of links; nil: nodes have labels
	final  *figures.Exchange                         // nil: of links
	beyond bool                                      // whether leaves have edges
	note   func(Event)
	settle func(context.Context, comm.Reducer) (*trainer, error) // by features of all sites; nil: there is nothing to settle
}

// Run implements session.Trainer. A final model is measured at last.
func (t *trainer) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	if t.settle != nil {
		settled, err := t.settle(ctx, r)
		if err != nil {
			return g.Refuse(ctx, err)
		}
		*t = *settled
	}
	if all, ok := r.(classmeans.Neighbours); ok && t.beyond {
		t.Trainer.(*classmeans.Trainer).Beyond = all
	}
	if err := t.Trainer.Run(ctx, g, r); err != nil {
		return err
	}
	if t.final == nil {
		return nil
	}
	m, err := t.Trained()
	if err != nil {
		return err
	}
	// The figures are of the sites' own nodes.
	if err := t.final.Run(ctx, g, session.OfSites(r), m, t.Logits(), t.Result().Sent); err != nil {
		return err
	}
	text := "figures"
	if told := t.final.Told(); told != nil {
		text = fmt.Sprintf("figures, and this site's own: %s %.0f %% over %d test nodes or more", t.final.Metric,
			100*told.Metric, told.Rows)
		t.note(Event{Kind: train.Note, Text: "the other sites were told " + strings.TrimPrefix(text, "figures, and ")})
	}
	t.note(Event{Kind: train.Trace, Text: text, Sent: t.sent()})
	return nil
}

// sent is what this peer sent in a run that has ended.
func (t *trainer) sent() comm.Counts {
	if t.final == nil {
		return t.Result().Sent
	}
	return t.Result().Sent.Plus(t.final.Used())
}

// trainer makes the trainer of p's plan, for m. If the features of all sites decide on the norm, it has that of the last
// session until it runs.
func (p *peer) trainer(m *session.Session) (session.Trainer, error) {
	if p.init != nil && p.plan.RowNorm == plan.Auto {
		p.plan.RowNorm = p.init.rowNorm()
	}
	if !p.plan.NormByFeatures(p.shard) {
		return p.method(m)
	}
	by := func(norm string) (*trainer, error) {
		p.plan.RowNorm = norm
		defer func() { p.plan.RowNorm = plan.Auto }()
		return p.method(m)
	}
	const note = "row_norm"
	last := "none"
	if kept, err := m.Checkpoints.Note(note); err != nil {
		return nil, err
	} else if kept != nil {
		last = string(kept)
	}
	t, err := by(last)
	if err != nil {
		return nil, err
	}
	t.settle = func(ctx context.Context, r comm.Reducer) (*trainer, error) {
		norm, err := agreedNorm(ctx, r, p.shard)
		if err != nil {
			return nil, err
		}
		if err := m.Checkpoints.KeepNote(note, []byte(norm)); err != nil {
			return nil, err
		}
		if norm != "none" {
			m.Note(Event{Kind: train.Note, Text: "each node's features are divided by their Euclidean length, since no " +
				"value is below 0 and most are 0 (--row-norm sets another norm)"})
		}
		return by(norm)
	}
	return t, nil
}

// agreedNorm returns l2 if no node of any site has a value below 0, and most have two values or more, at most half of
// the columns; else none.
func agreedNorm(ctx context.Context, r comm.Reducer, s *shard.Shard) (string, error) {
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

// method makes the trainer of p's method, for m.
func (p *peer) method(m *session.Session) (*trainer, error) {
	t, err := p.begin(m)
	if err != nil || t.ranks != nil {
		return t, err
	}
	if p.final == nil {
		goal, err := eval.ParseGoal(p.plan.Threshold)
		if err != nil {
			return nil, input(err)
		}
		p.final = &figures.Exchange{Metric: t.metric, Goal: goal, Draw: t.State().Draw, Shard: p.shard, Store: m.Checkpoints, Publish: p.publish}
	}
	t.final = p.final
	return t, nil
}

// begin makes the trainer of p's method, for m, without figures.
func (p *peer) begin(m *session.Session) (*trainer, error) {
	one, config, err := p.plan.Trainer(p.shard, p.init.begin)
	if err != nil {
		return nil, input(err)
	}
	run := one.State()
	t := &trainer{Trainer: one, config: config, metric: run.Metric, note: m.Note}
	run.Checkpoints, run.OnEvent, run.KeepHidden = m.Checkpoints, m.Note, p.embed
	if of, ok := one.(*classmeans.Trainer); ok {
		if err := p.keepPrivate(of, config.(classmeans.Config), m); err != nil {
			return nil, input(err)
		}
		t.beyond = p.plan.LeafEdges
	}
	if p.plan.Task.Links() {
		t.ranks = one.(interface {
			Ranks() (val, test links.Figures, ok bool)
		}).Ranks
	}
	return t, nil
}

// keepPrivate gives t, of configuration c, what keeps edges private, and what phones need.
func (p *peer) keepPrivate(t *classmeans.Trainer, c classmeans.Config, m *session.Session) (err error) {
	if p.edges == nil && c.Epsilon > 0 {
		var secret [32]byte
		rand.Read(secret[:])
		if p.edges, err = c.Edges(secret); err != nil {
			return err
		}
		p.edges.Spend = m.Spend
	}
	t.Edges = p.edges
	if t.Leaves = p.plan.Leaves > 0; t.Leaves {
		t.Checkpoints = nil // sums are kept in place of states: leaf.Journal
	}
	return nil
}

// train trains by p in at, with checkpoints in state (empty = none). final, if any, is called as soon as the model is
// final, when others may still need this peer.
func (p *peer) train(ctx context.Context, at *session.Session, state string, final func(*Result) error) (*Result, error) {
	if p.at, at.New = at, p.trainer; state != "" {
		at.Checkpoints = &checkpoint.Store{Dir: state}
	}
	if final != nil {
		at.Final = func(t session.Trainer, u session.Usage) error {
			r, err := p.result(t, u)
			if err != nil {
				return err
			}
			return final(r)
		}
	}
	t, usage, err := at.Run(ctx)
	if err != nil {
		return nil, err
	}
	return p.result(t, usage) // with what happened since the model was final
}

// result is what a run gave that used so much.
func (p *peer) result(of session.Trainer, u session.Usage) (*Result, error) {
	t := of.(*trainer)
	measured := t.Result()
	measured.Sent = t.sent()
	model, err := t.Trained()
	if err != nil {
		return nil, err
	}
	r, err := resultOf(p.plan, p.shard, model, t.config, t.metric, measured)
	if err != nil {
		return nil, err
	}
	r.Hidden = []mat.Dense{t.Hidden()}
	if t.ranks == nil {
		err = p.measured(r, t, model)
	} else {
		r.Own = []Predictions{{kind: target.Links}}
		if p.embed {
			r.Hidden = []mat.Dense{t.Logits()} // what the decoder reads
		}
		if val, test, ok := t.ranks(); ok {
			r.Links = links.NewRanked(val, test, model.Decoder.Spec.Relations, p.name)
		}
	}
	if err != nil {
		return nil, err
	}
	if s := p.statement(); s != nil {
		if err := r.keeps(*s); err != nil {
			return nil, err
		}
	}
	r.Members, r.Link = p.members, p.at.Link
	if r.Figures != nil && p.members != nil {
		for k, one := range r.Figures.Published {
			r.Figures.Published[k].Name = r.Members[one.Rank]
		}
		if told := r.Figures.Told; told != nil {
			told.Name = r.Members[told.Rank]
		}
	}
	r.Peers = []Traffic{{Name: p.name, Counts: r.Sent, Wire: u.Wire, Messages: u.Messages}}
	took := time.Duration(u.Seconds * float64(time.Second))
	r.Seconds, r.Waited, r.Load = u.Seconds, u.Waited.Seconds(), netsim.Load{Busy: max(0, took-u.Waited), Trips: u.Trips, Bytes: u.Sent.Total()}
	return r, nil
}

// statement is what the run kept private; nil: nothing.
func (p *peer) statement() *dp.Statement {
	if p.edges == nil {
		return nil
	}
	s := p.edges.Statement()
	return &s
}

// measured adds to r predictions of own nodes, and what they are worth.
func (p *peer) measured(r *Result, t *trainer, model *nn.Model) error {
	if t.final == nil { // of a phone
		r.Own = []Predictions{predictionsOf(model, t.Logits()).By(r.Card)}
		return nil
	}
	t.final.Take(t.Logits())
	r.Own = []Predictions{predictionsOf(model, t.final.Logits()).By(r.Card)}
	f, err := t.final.Figures(p.name, model)
	if err != nil {
		return err
	}
	r.measure(f)
	if f != nil && !t.Logits().Empty() {
		for k, split := range []graph.Split{graph.Val, graph.Test} {
			r.scored[k] = []eval.Scored{t.final.Scored(split)}
		}
	}
	if fault := t.final.Fault(); f == nil && fault != nil {
		r.unmeasured = fault.Error()
	}
	return nil
}

// advise says what of a plan is allowed and hardly meant.
func advise(p Plan, own *shard.Shard) (advice []string) {
	f := own.X.Cols()
	if most := p.Halved(f); most > 0 {
		advice = append(advice, fmt.Sprintf("encoder %s keeps %d components, half of the %d columns: more would give back features", p.Encoder, most, f))
	}
	conv, _ := nn.ConvolutionNamed(p.Model)
	if n := own.EdgeX.Cols; n > 0 && !conv.EdgeColumns {
		readers := nn.Convolutions(func(c nn.Convolution) bool { return c.EdgeColumns })
		advice = append(advice, fmt.Sprintf("the %d columns of the edges of %s are not read: method full-batch with model %s reads them", n, own.Name, strings.Join(readers, " or ")))
	}
	if own.Typed.Count() > 0 && !conv.Typed {
		advice = append(advice, fmt.Sprintf("the %d relations of the edges of %s are taken for one: method full-batch with model rgcn tells them apart",
			own.Typed.Count(), own.Name))
	}
	if _, bare := own.X.Numbers(); bare && int64(f) == own.Nodes && own.Parts > 1 && p.Method == plan.FullBatch && p.Encoder.Kind == "raw" && !p.Task.Links() {
		advice = append(advice, fmt.Sprintf("nodes have no features, so each step sums weights for %d nodes over all sites: "+
			"with --encoder embedding:16 each site keeps the rows of its nodes", own.Nodes))
	}
	if p.Method == plan.LayerWise && !p.Task.Links() {
		means := plan.Defaults(plan.Plan{Method: plan.ClassMeans})
		means.SecureSums, means.Inductive = p.SecureSums, p.Inductive
		of, err := disclosure.Of(means, own)
		this, fault := disclosure.Of(p, own)
		if err == nil && fault == nil && 0 < of.Bytes && of.Bytes < this.Bytes/50 {
			advice = append(advice, fmt.Sprintf("this site sends up to %.0f MB; with --method class-means it would send up to %.2g MB",
				float64(this.Bytes)/1e6, float64(of.Bytes)/1e6))
		}
	}
	if own.Labels.Kind() == target.Numbers && !p.Task.Links() && conv.Aggregates && !conv.OwnRow && !p.Residual && p.Method != plan.ClassMeans {
		keep := nn.Convolutions(func(c nn.Convolution) bool {
			return c.Aggregates && c.OwnRow && (c.LayerWise || p.Method != plan.LayerWise) && (!c.Typed || own.Typed.Count() > 0)
		})
		advice = append(advice, fmt.Sprintf("model %s mixes the features of a node with its neighbours', which costs most with a numeric target: "+
			"%s keep them apart (--model)", p.Model, strings.Join(keep, ", ")))
	}
	return advice
}
