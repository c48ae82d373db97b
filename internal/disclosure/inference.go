package disclosure

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
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/train"
)

// modelSetting is what predictions need of the configuration of a model's trainer.
type modelSetting struct {
	Seed      uint64      `json:"seed"`
	Rows      comm.Coding `json:"rows"`
	Exchange  string      `json:"exchange"`
	Rounds    int         `json:"rounds"`
	EvalEvery int         `json:"eval_every"` // (0 = not a trainer of rounds)
	KeepLast  bool        `json:"keep_last"`
}

// draw returns which nodes validated in training if none were marked for it.
func (s modelSetting) draw(layerwise bool) train.Draw {
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
func Inference(p plan.Plan, m *nn.Model, card modelfile.Card) (plan.Plan, infer.Config, error) {
	var setting modelSetting
	setting.Seed, setting.Rows, setting.Exchange = p.Seed, p.Coding(),
		cmp.Or(p.Federation().Exchange, p.FullBatch.Exchange, plan.Auto)
	var errs []error
	if card.Setting != nil {
		setting.Rows = comm.Coding{}
		if err := json.Unmarshal(card.Setting, &setting); err != nil {
			return p, infer.Config{}, fmt.Errorf("the model's setting: %w", err)
		}
	}
	layerwise := card.Method == plan.ClassMeans || card.Method == plan.LayerWise
	errs = append(errs, setting.Rows.Validate())
	if !slices.Contains(train.Exchanges, setting.Exchange) {
		errs = append(errs, fmt.Errorf("the model's exchange must be one of %q (got %q)", train.Exchanges,
			setting.Exchange))
	}
	c := infer.Config{Draw: setting.draw(layerwise), Rows: setting.Rows, Exchange: setting.Exchange,
		Layerwise: layerwise, Metric: eval.Metric(card.Metric),
		Calibration: card.Calibration(), Cuts: card.Cuts(), Ordered: card.Ordered, First: card.First()}
	if card.Metric == "" {
		c.Metric = p.MetricOf(m.Spec.Kind())
	}
	errs = append(errs, c.Metric.Validate())
	method := plan.FullBatch
	switch {
	case m.Spec.Closed != nil:
		method = plan.ClassMeans
	case c.Layerwise:
		method = plan.LayerWise
	}
	q := judgedBy(p, method, c.Exchange, m.Spec)
	q.Rows, q.Compress = cmp.Or(setting.Rows.Values, "float32"), cmp.Or(setting.Rows.Compress, "none")
	return q, c, errors.Join(errs...)
}

// judgedBy returns p with those settings that a policy judges as a model of s has them, for this method and exchange.
func judgedBy(p plan.Plan, method, exchange string, s nn.Spec) plan.Plan {
	q, usual := p, plan.Defaults(method, "")
	q.ClassMeans, q.LayerWise, q.FullBatch, q.MiniBatch = usual.ClassMeans, usual.LayerWise, usual.FullBatch,
		usual.MiniBatch
	q.Method, q.Runs = method, 1
	q.Federation().SecureSums, q.Federation().Exchange = cmp.Or(p.Federation().SecureSums, plan.Auto), exchange
	if s.Closed != nil {
		q.ClassMeans.Hops, q.ClassMeans.ClassRounds = s.Closed.Hops, s.Closed.Rounds
		q.ClassMeans.LeaveOneOut = strconv.FormatBool(s.Closed.LeaveOut)
		return q
	}
	encoder := plan.Encoder{Kind: s.Encoder.Kind}
	switch encoder.Kind {
	case "pca":
		encoder.K, encoder.Classes = s.Encoder.Components(s.Classes), s.Encoder.Classes != nil
	case "sign":
		encoder.Kind = "raw"
	}
	if method == plan.LayerWise {
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
