package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/train"
)

// setting is what predictions need of the configuration of a model's trainer.
type setting struct {
	Seed      uint64      `json:"seed"`
	Rows      comm.Coding `json:"rows"`
	Exchange  string      `json:"exchange"`
	Rounds    int         `json:"rounds"`
	EvalEvery int         `json:"eval_every"` // (0 = not a trainer of rounds)
	KeepLast  bool        `json:"keep_last"`
}

// draw returns which nodes validated in training if none were marked for it.
func (s setting) draw(layerwise bool) train.Draw {
	c := retexo.Config{KeepLast: s.KeepLast}
	c.Seed, c.Rounds, c.EvalEvery = s.Seed, s.Rounds, s.EvalEvery
	if layerwise {
		return c.Draw()
	}
	return train.Draw{Seed: s.Seed, LastRound: s.EvalEvery > 0 && c.Config.LastRound()}
}

// Inference returns how the members of p compute predictions by m together, and p with the settings for that: what the
// policy of a site judges. Rows are sent in the format of training, which the model's card records, so that predictions
// are the run's; if the card does not record it, p's format is used. Members, secure sums, relays and timeouts are p's.
func (p Plan) Inference(m *nn.Model, card modelfile.Card) (Plan, infer.Config, error) {
	var setting setting
	setting.Seed, setting.Rows, setting.Exchange = p.Seed, p.coding(),
		cmp.Or(p.Federation().Exchange, p.FullBatch.Exchange, Auto)
	var errs faults
	if card.Setting != nil {
		setting.Rows = comm.Coding{}
		if err := json.Unmarshal(card.Setting, &setting); err != nil {
			return p, infer.Config{}, fmt.Errorf("the model's setting: %w", err)
		}
	}
	layerwise := card.Method == ClassMeans || card.Method == LayerWise
	errs = append(errs, setting.Rows.Validate())
	if !slices.Contains(train.Exchanges, setting.Exchange) {
		errs.add("the model's exchange must be one of %q (got %q)", train.Exchanges, setting.Exchange)
	}
	c := infer.Config{Draw: setting.draw(layerwise), Rows: setting.Rows, Exchange: setting.Exchange,
		Layerwise: layerwise, Metric: eval.Metric(card.Metric),
		Calibration: card.Calibration(), Cuts: card.Cuts(), Ordered: card.Ordered, First: card.First()}
	if card.Metric == "" {
		c.Metric = p.metric(task{Kind: m.Spec.Kind()})
	}
	errs = append(errs, c.Metric.Validate())
	method := FullBatch
	switch {
	case m.Spec.Closed != nil:
		method = ClassMeans
	case c.Layerwise:
		method = LayerWise
	}
	q := p.judgedBy(method, c.Exchange, m.Spec)
	q.Rows, q.Compress = cmp.Or(setting.Rows.Values, "float32"), cmp.Or(setting.Rows.Compress, "none")
	return q, c, errors.Join(errs...)
}

// judgedBy returns p with those settings that a policy judges as a model of s has them, for this method and exchange.
func (p Plan) judgedBy(method, exchange string, s nn.Spec) Plan {
	q, usual := p, Defaults(method, "")
	q.ClassMeans, q.LayerWise, q.FullBatch, q.MiniBatch = usual.ClassMeans, usual.LayerWise, usual.FullBatch,
		usual.MiniBatch
	q.Method, q.Runs = method, 1
	q.Federation().SecureSums, q.Federation().Exchange = cmp.Or(p.Federation().SecureSums, Auto), exchange
	if s.Closed != nil {
		q.ClassMeans.Hops, q.ClassMeans.ClassRounds = s.Closed.Hops, s.Closed.Rounds
		q.ClassMeans.LeaveOneOut = strconv.FormatBool(s.Closed.LeaveOut)
		return q
	}
	encoder := Encoder{Kind: s.Encoder.Kind}
	switch encoder.Kind {
	case "pca":
		encoder.K, encoder.Classes = s.Encoder.Components(s.Classes), s.Encoder.Classes != nil
	case "sign":
		encoder.Kind = "raw"
	}
	if method == LayerWise {
		q.LayerWise.Encoder, q.LayerWise.LayerOutput, q.LayerWise.PCAPasses = encoder, string(s.LayerOutput), 0
	} else {
		q.FullBatch.Encoder, q.FullBatch.Exchange = encoder, exchange
	}
	g := q.Gradient()
	g.Rounds, g.Layers, g.Hops = 1, max(1, len(s.Layers)), max(1, s.Encoder.Hops)
	for _, l := range s.Layers {
		g.Hops = max(g.Hops, l.Hops)
	}
	return q
}
