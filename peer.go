package heddle

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/predict"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
	"github.com/heddle-gnn/heddle/train/figures"
)

// peer is one peer's part in a run.
type peer struct {
	plan    Plan
	name    string
	at      *session.Session
	shard   *shard.Shard
	init    *Initial // (nil = random parameters)
	embed   bool     // hidden rows are kept
	publish int      // figures.Exchange's
	members []string // names of all sites by rank (nil = they have none)
	phone   bool     // which measures no figures

	method train.Method      // by plan
	final  *figures.Exchange // of all connections of this process (nil = no model is final, or there are no figures)
}

// train trains by p in at, with checkpoints in state (empty = none). final, if any, is called as soon as the model is
// final, when others may still need this peer.
func (p *peer) train(ctx context.Context, at *session.Session, state string,
	final func(*Result) error) (*Result, error) {
	if p.at = at; state != "" {
		at.Checkpoints = &checkpoint.Store{Dir: state}
	}
	at.KeepHidden, at.Init = p.embed, p.init.copyParams
	if final != nil {
		at.Final = func(t *train.Trained, u session.Usage) error {
			r, err := p.result(t, u)
			if err != nil {
				return err
			}
			return final(r)
		}
	}
	t, usage, err := at.Run(ctx, p.connected)
	if err != nil {
		return nil, err
	}
	return p.result(t, usage) // with what happened since the model was final
}

// connected implements session.Training: it trains by p's method, and measures a final model at last.
func (p *peer) connected(ctx context.Context, s *session.Session) (*train.Trained, error) {
	if err := p.configure(ctx, s); err != nil {
		return nil, err
	}
	t, err := p.method.Train(ctx, &s.Place, p.shard)
	if t == nil || p.phone || p.plan.Task.Links() {
		return t, err
	}
	if p.final == nil {
		goal, fault := eval.ParseGoal(p.plan.Threshold)
		if fault != nil {
			return nil, input(fault)
		}
		var by *figures.Groups
		if p.plan.FiguresBy != "" {
			if by, fault = figures.GroupsOf(p.plan.FiguresBy, p.shard); fault != nil {
				return nil, input(fault)
			}
		}
		p.final = &figures.Exchange{Metric: t.Metric, Goal: goal, Draw: t.Draw, Shard: p.shard, Store: s.Checkpoints,
			Publish: p.publish, By: by}
	}
	if err != nil || s.Group == nil {
		return t, err
	}
	// The figures are of the sites' own nodes.
	if err := p.final.Run(ctx, s.Group, session.OfSites(s.Sums), t.Model, t.Logits, t.Sent); err != nil {
		return t, err
	}
	text := "figures"
	if told := p.final.Told(); told != nil {
		text = fmt.Sprintf("figures, and this site's own: %s %.0f %% over %d test nodes or more", p.final.Metric,
			100*told.Metric, told.Rows)
		s.Note(Event{Kind: train.Note, Text: "this site sent the others its figures: " +
			strings.TrimPrefix(text, "figures, and this site's own: ")})
	}
	s.Note(Event{Kind: train.Trace, Text: text, Sent: p.sent(t)})
	return t, nil
}

// sent is what this peer sent in a run that gave t.
func (p *peer) sent(t *train.Trained) comm.Counts {
	if p.final == nil {
		return t.Sent
	}
	return t.Sent.Plus(p.final.Used())
}

// configure makes the method of p's plan. If the features of all sites decide on the norm, the last connection's norm
// is used until the sites have met.
func (p *peer) configure(ctx context.Context, s *session.Session) (err error) {
	if p.init != nil && p.init.Layers == nil && p.plan.RowNorm == plan.Auto {
		p.plan.RowNorm = p.init.rowNorm()
	}
	q := p.plan
	if q.NormByFeatures(p.shard) {
		if q.RowNorm, err = p.norm(ctx, s); err != nil {
			return err
		}
	} else if p.method != nil {
		return nil
	}
	p.method, err = q.Configure(p.shard)
	return input(err)
}

// norm returns the norm that divides each node's features, by the features of all sites.
func (p *peer) norm(ctx context.Context, s *session.Session) (string, error) {
	const note = "row_norm"
	if s.Group == nil {
		kept, err := s.Checkpoints.Note(note)
		return cmp.Or(string(kept), "none"), err
	}
	norm, err := train.AgreedNorm(ctx, s.Sums, p.shard)
	if err != nil {
		return "", err
	}
	if norm != "none" {
		s.Note(Event{Kind: train.Note, Text: "each node's features are divided by their Euclidean length, since no " +
			"value is below 0 and most are 0 (row_norm sets another)"})
	}
	return norm, s.Checkpoints.KeepNote(note, []byte(norm))
}

// result returns the result of a run, with the traffic and time that it used.
func (p *peer) result(t *train.Trained, u session.Usage) (*Result, error) {
	measured := t.Result
	measured.Sent = p.sent(t)
	r, err := resultOf(p.plan, p.shard, t.Model, t.Config, t.Metric, measured)
	if err != nil {
		return nil, err
	}
	r.Hidden = []mat.Dense{t.Hidden}
	if p.plan.Task.Links() {
		r.Own = []Predictions{predict.PredictionsOf(t.Model, mat.Dense{})}
		if p.embed {
			r.Hidden = []mat.Dense{t.Logits} // what the decoder reads
		}
		if test, ok := t.Links[graph.Test]; ok {
			r.Links = links.NewRanked(t.Links[graph.Val], test, t.Model.Decoder.Spec.Relations, p.name)
		}
	} else {
		err = p.measured(r, t)
	}
	if err != nil {
		return nil, err
	}
	if t.Privacy != nil {
		if err := r.keeps(*t.Privacy); err != nil {
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
	r.Seconds, r.Waited, r.Load = u.Seconds, u.Waited.Seconds(),
		comm.Load{Busy: max(0, took-u.Waited), Trips: u.Trips, Bytes: u.Sent.Total()}
	return r, nil
}

// measured adds to r predictions of own nodes, and their figures.
func (p *peer) measured(r *Result, t *train.Trained) error {
	if p.phone {
		r.Own = []Predictions{predict.PredictionsOf(t.Model, t.Logits).By(r.Card)}
		return nil
	}
	p.final.Take(t.Logits)
	r.Own = []Predictions{predict.PredictionsOf(t.Model, p.final.Logits()).By(r.Card)}
	f, err := p.final.Figures(p.name, t.Model)
	if err != nil {
		return err
	}
	r.measure(f)
	if f != nil && !t.Logits.Empty() {
		for k, split := range []graph.Split{graph.Val, graph.Test} {
			r.scored[k] = []eval.Scored{p.final.Scored(split)}
		}
	}
	if fault := p.final.Fault(); f == nil && fault != nil {
		r.unmeasured = fault.Error()
	}
	return nil
}

// Initial is a model from whose parameters training starts: the content of a file whose SHA-256 is Plan.Init.
type Initial struct {
	Model  *nn.Model
	Card   modelfile.Card
	Layers *modelfile.PyG // instead of Model: layers of a state dict, without a card
}

// Fingerprint returns the SHA-256 of i's file, as Plan.Init has it.
func (i *Initial) Fingerprint() (string, error) {
	if i.Layers != nil {
		return hex.EncodeToString(i.Layers.Print[:]), nil
	}
	print, err := modelfile.Fingerprint(i.Model, i.Card)
	return hex.EncodeToString(print[:]), err
}

// checkPlan returns why training by p over own cannot start from i, which may be nil. It returns nil if it can, or if p
// does not ask for it.
func (i *Initial) checkPlan(p Plan, own *shard.Shard) error {
	switch {
	case p.Gradient().Init == "" && i != nil:
		return errors.New("the plan must name the model file that training starts from (init)")
	case p.Gradient().Init == "":
		return nil
	case i == nil:
		return fmt.Errorf("the plan starts from a model file: the file of SHA-256 %s must be given",
			p.Gradient().Init)
	}
	if i.Layers == nil { // layers of a state dict are whole if Fill takes them
		if err := i.Model.Whole(); err != nil {
			return err
		}
	}
	print, err := i.Fingerprint()
	if err != nil {
		return err
	}
	if print != p.Gradient().Init {
		return fmt.Errorf("the model file that training starts from must have SHA-256 %s (got %s)",
			p.Gradient().Init, print)
	}
	if i.Layers != nil { // it has no names of classes or columns; Fill compares their number
		return nil
	}
	return errors.Join(modelfile.SameClasses(i.Card.Classes, own.Labels.Names),
		modelfile.SameColumns(i.Model.Spec, i.Card.Encoding, own.Encoding))
}

// rowNorm returns the row_norm of i.
func (i *Initial) rowNorm() string {
	switch e := i.Model.Spec.Encoder; {
	case e.L1Norm:
		return "l1"
	case e.L2Norm:
		return "l2"
	}
	return "none"
}

// copyParams copies the parameters of i to a model that is to be trained, unless i is nil.
func (i *Initial) copyParams(m *nn.Model) error {
	if i == nil {
		return nil
	}
	if i.Layers != nil {
		return i.Layers.Fill(m)
	}
	if err := modelfile.SameArchitecture(i.Model.Spec, m.Spec); err != nil {
		return fmt.Errorf("the model file that training starts from does not fit the plan: %w", err)
	}
	from := i.Model.Params()
	for k, p := range m.Params() {
		p.Value.CopyFrom(from[k].Value)
	}
	return nil
}
