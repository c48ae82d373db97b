package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/train"
)

// setting is what predictions need of the configuration of a model's trainer.
type setting struct {
	Seed      uint64      `json:"seed"`
	Rows      wire.Coding `json:"rows"`
	Exchange  string      `json:"exchange"`
	Rounds    int         `json:"rounds"`
	EvalEvery int         `json:"eval_every"` // 0: not a trainer of rounds
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

// Inference returns how the members of p compute predictions by m together, and p with those settings as they are for that:
// what the policy of a site judges. How rows travel is what the model's card says of its training, so that predictions are
// those of the run; where the card does not say, it is p's. Members, secure sums, relays and timeouts are p's.
func (p Plan) Inference(m *nn.Model, card modelfile.Card) (Plan, infer.Config, error) {
	var setting setting
	setting.Seed, setting.Rows, setting.Exchange = p.Seed, p.coding(), p.Exchange
	var errs faults
	if card.Setting != nil {
		setting.Rows = wire.Coding{}
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
	q := p.judgedBy(m.Spec)
	q.Exchange, q.Rows, q.Compress = c.Exchange, setting.Rows.Values, setting.Rows.Compress
	if q.Rows == "" {
		q.Rows = "float32"
	}
	if q.Compress == "" {
		q.Compress = "none"
	}
	switch {
	case m.Spec.Closed != nil:
		q.Method = ClassMeans
	case c.Layerwise:
		q.Method = LayerWise
	default:
		q.Method = FullBatch
	}
	return q, c, errors.Join(errs...)
}

// judgedBy returns p with those settings that a policy judges as a model of s has them.
func (p Plan) judgedBy(s nn.Spec) Plan {
	q := p
	q.Epsilon, q.Rounds, q.ClassRounds, q.Runs = 0, 1, 1, 1
	q.Encoder = Encoder{Kind: s.Encoder.Kind}
	if q.LayerOutput = string(s.LayerOutput); s.Encoder.Kind == "pca" {
		q.Encoder.K, q.Encoder.Classes = s.Encoder.Components(s.Classes), s.Encoder.Classes != nil
	}
	q.PCAPasses, q.Hops, q.Layers = 0, 1, max(1, len(s.Layers))
	for _, l := range s.Layers {
		q.Hops = max(q.Hops, l.Hops)
	}
	q.Hops = max(q.Hops, s.Encoder.Hops)
	switch {
	case s.Closed != nil:
		q.Encoder, q.Hops = Encoder{Kind: "classes"}, s.Closed.Hops
		q.ClassRounds, q.LeaveOneOut = s.Closed.Rounds, strconv.FormatBool(s.Closed.LeaveOut)
	case s.Encoder.Kind == "sign":
		q.Encoder.Kind = "raw"
	}
	return q
}
