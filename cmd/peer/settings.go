package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/retexo"
)

// Settings say how a model is trained: what the peers of a run must agree on. A YAML file gives them by these names,
// and a flag of the same name (with dashes) overrides it. A field that neither gives has the preset's value.
type Settings struct {
	Preset string `yaml:"preset"` // retexo (the paper's setting), frugal (fewest bytes), or none: retexo with encoder pca:128
	Mode   string `yaml:"mode"`   // retexo (layer by layer over peers), fullbatch (all layers at once over peers) or standalone (the same at one)
	Seed   uint64 `yaml:"seed"`   // of everything that is drawn

	Model            string  `yaml:"model"`             // gcn, sage, sage-pool, gat, gin; appnp, sign, rgcn (typed edges) and mlp (no edges) not in retexo
	Encoder          string  `yaml:"encoder"`           // raw (features travel), pca:K (their K leading components, at most all) or mlp (trained hidden rows)
	Carry            string  `yaml:"carry"`             // what a layer hands on: hidden rows, or class scores
	Layers           int     `yaml:"layers"`            // graph layers, at least 1
	Hidden           int     `yaml:"hidden"`            // width of hidden rows, at least 1; of all heads together for gat
	Hops             int     `yaml:"hops"`              // aggregations before a layer, at least 1; more than 1: gcn, sage, gin
	Teleport         float32 `yaml:"teleport"`          // appnp: share of a node's own row in what each hop puts out, in (0, 1]
	Bases            int     `yaml:"bases"`             // of the matrices of rgcn's relations, at most as many as these; 0: a matrix each
	Heads            int     `yaml:"heads"`             // of attention, at least 1; gat only
	Dropout          float32 `yaml:"dropout"`           // share of a layer's input, in [0, 1)
	AttentionDropout float32 `yaml:"attention_dropout"` // share of the attention weights, in [0, 1); gat only
	Norm             string  `yaml:"norm"`              // after each layer but the last: none, layer (of each row) or batch (over all nodes; not retexo); empty: layer in retexo, else none
	Residual         bool    `yaml:"residual"`          // add a layer's input to its output
	UnitSum          bool    `yaml:"unit_sum"`          // divide a node's features by the sum of their magnitudes first

	LabelAugmentation float32 `yaml:"label_augmentation"` // fullbatch, standalone: share of the training labels that a step takes as input and does not learn, in [0, 1); 0: none are inputs
	CorrectSmooth     int     `yaml:"correct_smooth"`     // fullbatch, standalone: steps by which training labels correct and smooth the trained model's scores; 0: none
	CorrectAlpha      float32 `yaml:"correct_alpha"`      // how far errors spread, in [0, 1)
	SmoothAlpha       float32 `yaml:"smooth_alpha"`       // how far scores spread, in [0, 1)

	Rounds          int       `yaml:"rounds"`           // of a layer at most (fullbatch, standalone: epochs), at least 1
	LocalSteps      int       `yaml:"local_steps"`      // optimiser steps between two reductions, at least 1; 1 is exact
	Patience        int       `yaml:"patience"`         // rounds without a better validation metric that end a layer; 0: none
	EvalEvery       int       `yaml:"eval_every"`       // rounds between two looks at the validation nodes, at least 1
	Metric          string    `yaml:"metric"`           // accuracy, micro-f1, macro-f1, auc, ap; empty: accuracy, or micro-f1 of many labels
	Solver          string    `yaml:"solver"`           // adam, adamw, sgd, or ridge (closed form, one round)
	LR              float32   `yaml:"lr"`               // step size, above 0
	Decay           float32   `yaml:"decay"`            // weight decay, at least 0
	Momentum        float32   `yaml:"momentum"`         // of sgd, in [0, 1)
	Schedule        string    `yaml:"schedule"`         // of the step size: constant, linear, cosine
	Warmup          int       `yaml:"warmup"`           // steps of rising step size, at least 0
	Lambdas         []float64 `yaml:"lambdas"`          // ridge: penalties to choose from, each above 0
	Balanced        bool      `yaml:"balanced"`         // weigh classes by the inverse of their share of the training labels
	Inductive       bool      `yaml:"inductive"`        // validation and test nodes are absent while training
	Neighbours      int       `yaml:"neighbours"`       // in-edges kept of a node while a layer trains; 0: all
	PCAPasses       int       `yaml:"pca_passes"`       // encoder pca: passes over the features, at least 1
	CheckpointEvery int       `yaml:"checkpoint_every"` // rounds between two checkpoints; 0: at the ends of layers only

	Rows     string `yaml:"rows"`     // values of halo rows on the wire: float32 (exact), bf16 or int8 (a scale a row)
	Compress string `yaml:"compress"` // halo rows on the wire: none or zstd
	Exchange string `yaml:"exchange"` // what travels where a layer sums rows: halo (rows), cover (the fewest rows and sums) or auto (that if it takes fewer bytes)

	Survival `yaml:",inline"` // mode retexo

	Fetch    string `yaml:"fetch"`    // fullbatch: how a layer's halo rows come: sar, sa, oneshot or auto
	Boundary string `yaml:"boundary"` // fullbatch: halo rows and gradients while training: exact, sample:P (a share of them, drawn at every step), stale:1[:G] (those of the step before) or none
	Order    string `yaml:"order"`    // fullbatch: in which they are added up: any, or fixed (the same bits at every run)
	Prefetch int    `yaml:"prefetch"` // fullbatch: peers' rows on their way while others are added up, at least 0
	Memory   int64  `yaml:"memory"`   // fullbatch: MiB that a peer may hold of rows that it could fetch again; 0: any number
}

var (
	modes   = []string{"retexo", "fullbatch", "standalone"}
	later   = []string{"minibatch"} // modes that will come and do not exist yet
	presets = []string{"retexo", "frugal"}
	models  = []string{"gcn", "sage", "sage-pool", "gat", "gin", "appnp", "sign", "rgcn", "mlp"}
)

// base returns the settings that a file and flags start from.
func base(mode, preset, model string) (Settings, error) {
	s := Settings{
		Preset: preset, Mode: mode, Seed: 1,
		Model: model, Encoder: "pca:128", Carry: "hidden", Layers: 2, Hidden: 256, Hops: 1, Heads: 8, Dropout: 0.3,
		CorrectAlpha: 0.9, SmoothAlpha: 0.8, Rounds: 200, LocalSteps: 1, EvalEvery: 1, Solver: "adam", LR: 0.003, Decay: 5e-4, Schedule: "constant",
		Lambdas: retexo.Defaults(nn.Spec{}).Lambdas, PCAPasses: 1, CheckpointEvery: 20, Rows: "float32", Compress: "none", Exchange: "auto",
		Fetch: "auto", Boundary: "exact", Order: "any", Prefetch: 1,
		Survival: Survival{LostWait: 30 * time.Second, Linger: 5 * time.Minute, LostRows: "wait", Straggler: "wait"},
	}
	if slices.Contains(later, mode) {
		return s, fmt.Errorf("mode: %q is planned and does not exist yet, use one of %s", mode, strings.Join(modes, ", "))
	}
	if !slices.Contains(modes, mode) {
		return s, fmt.Errorf("mode: %q, want one of %s", mode, strings.Join(modes, ", "))
	}
	if !slices.Contains(models, model) {
		return s, fmt.Errorf("model: %q, want one of %s", model, strings.Join(models, ", "))
	}
	if preset != "" && !slices.Contains(presets, preset) {
		return s, fmt.Errorf("preset: %q, want one of %s", preset, strings.Join(presets, ", "))
	}
	switch {
	case mode != "retexo" && preset != "":
		return s, fmt.Errorf("preset: %q is one of mode retexo, %s has none", preset, mode)
	case mode != "retexo": // Kipf and Welling, ICLR 2017, §5.2; Veličković et al., ICLR 2018, §3.3
		s.Encoder, s.Hidden, s.LR, s.Dropout = "raw", 64, 0.01, 0.5
		if model == "gat" {
			s.LR, s.Dropout, s.AttentionDropout = 0.005, 0.6, 0.6
		}
		switch model {
		case "appnp": // Klicpera, Bojchevski and Günnemann, ICLR 2019, §5
			s.Hops, s.Teleport = 10, 0.1
		case "sign":
			s.Hops = 3
		case "rgcn": // Schlichtkrull et al., ESWC 2018, §5.1
			s.Hidden, s.Dropout, s.Decay, s.Rounds = 16, 0, 0, 50
		}
	case preset == "retexo": // github.com/aashishkolluri/retexo-distributed
		s.Encoder, s.LR, s.Decay, s.UnitSum = "raw", 0.01, 5e-3, true // the step size and decay of docs/results.md
		s.Exchange = "halo"                                           // its bytes are the yardstick
	case preset == "frugal": // simplified graph convolution (Wu et al., ICML 2019) on projected rows; tuned in docs/results.md
		s.Layers, s.Hops, s.Dropout, s.Solver, s.UnitSum = 1, 4, 0, "ridge", true
	}
	return s, nil
}

// bind adds a flag for every setting; a flag that is given changes s.
func (s *Settings) bind(f *pflag.FlagSet) {
	f.StringVar(&s.Preset, "preset", s.Preset, "settings to start from: retexo (the paper's) or frugal (fewest bytes)")
	f.StringVar(&s.Mode, "mode", s.Mode, "retexo (layer by layer over peers), fullbatch (all layers at once over peers) or standalone (the same at one)")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "of everything that is drawn: same seed, same model")
	f.StringVar(&s.Model, "model", s.Model, "gcn, sage, sage-pool, gat, gin; not retexo: appnp, sign, rgcn (typed edges), mlp (no edges)")
	f.StringVar(&s.Encoder, "encoder", s.Encoder, "what of a node's own features travels: raw, pca:K or mlp")
	f.StringVar(&s.Carry, "carry", s.Carry, "what a layer hands on: hidden or scores")
	f.IntVar(&s.Layers, "layers", s.Layers, "graph layers")
	f.IntVar(&s.Hidden, "hidden", s.Hidden, "width of hidden rows (gat: of all heads together)")
	f.IntVar(&s.Hops, "hops", s.Hops, "aggregations before a layer")
	f.Float32Var(&s.Teleport, "teleport", s.Teleport, "appnp: share of a node's own row in what each hop puts out")
	f.IntVar(&s.Bases, "bases", s.Bases, "rgcn: bases of the relations' matrices; 0: a matrix each")
	f.IntVar(&s.Heads, "heads", s.Heads, "gat: attention heads")
	f.Float32Var(&s.Dropout, "dropout", s.Dropout, "share of a layer's input that is dropped")
	f.Float32Var(&s.AttentionDropout, "attention-dropout", s.AttentionDropout, "gat: share of the attention weights that is dropped")
	f.StringVar(&s.Norm, "norm", s.Norm, "after each layer but the last: none, layer (of each row) or batch (over all nodes; fullbatch, standalone) (default layer in retexo, else none)")
	f.BoolVar(&s.Residual, "residual", s.Residual, "add a layer's input to its output")
	f.BoolVar(&s.UnitSum, "unit-sum", s.UnitSum, "divide a node's features by the sum of their magnitudes first")
	f.Float32Var(&s.LabelAugmentation, "label-augmentation", s.LabelAugmentation, "fullbatch, standalone: share of the training labels that a step takes as input and does not learn; 0: none are inputs")
	f.IntVar(&s.CorrectSmooth, "correct-smooth", s.CorrectSmooth, "fullbatch, standalone: steps by which training labels correct and smooth the scores (Correct & Smooth); 0: none")
	f.Float32Var(&s.CorrectAlpha, "correct-alpha", s.CorrectAlpha, "how far errors spread")
	f.Float32Var(&s.SmoothAlpha, "smooth-alpha", s.SmoothAlpha, "how far scores spread")
	f.IntVar(&s.Rounds, "rounds", s.Rounds, "rounds of a layer at most (fullbatch, standalone: epochs)")
	f.IntVar(&s.LocalSteps, "local-steps", s.LocalSteps, "optimiser steps between two reductions; 1 is exact")
	f.IntVar(&s.Patience, "patience", s.Patience, "rounds without a better validation metric that end a layer; 0: none")
	f.IntVar(&s.EvalEvery, "eval-every", s.EvalEvery, "rounds between two looks at the validation nodes")
	f.StringVar(&s.Metric, "metric", s.Metric, "accuracy, micro-f1, macro-f1, auc or ap (default accuracy; micro-f1 of many labels)")
	f.StringVar(&s.Solver, "solver", s.Solver, "adam, adamw, sgd or ridge (closed form, one round)")
	f.Float32Var(&s.LR, "lr", s.LR, "step size")
	f.Float32Var(&s.Decay, "decay", s.Decay, "weight decay")
	f.Float32Var(&s.Momentum, "momentum", s.Momentum, "of sgd")
	f.StringVar(&s.Schedule, "schedule", s.Schedule, "of the step size: constant, linear or cosine")
	f.IntVar(&s.Warmup, "warmup", s.Warmup, "steps of rising step size")
	f.Float64SliceVar(&s.Lambdas, "lambdas", s.Lambdas, "ridge: penalties to choose from")
	f.BoolVar(&s.Balanced, "balanced", s.Balanced, "weigh classes by the inverse of their share of the training labels")
	f.BoolVar(&s.Inductive, "inductive", s.Inductive, "validation and test nodes are absent while training")
	f.IntVar(&s.Neighbours, "neighbours", s.Neighbours, "in-edges kept of a node while a layer trains; 0: all")
	f.IntVar(&s.PCAPasses, "pca-passes", s.PCAPasses, "encoder pca: passes over the features")
	f.IntVar(&s.CheckpointEvery, "checkpoint-every", s.CheckpointEvery, "rounds between two checkpoints; 0: at the ends of layers only")
	f.StringVar(&s.Rows, "rows", s.Rows, "values of halo rows on the wire: float32 (exact), bf16 or int8 (a scale a row)")
	f.StringVar(&s.Compress, "compress", s.Compress, "halo rows on the wire: none or zstd")
	f.StringVar(&s.Exchange, "exchange", s.Exchange, "what travels where a layer sums rows: halo (rows), cover (the fewest rows and sums) or auto (that if it takes fewer bytes)")
	s.Survival.bind(f)
	f.StringVar(&s.Fetch, "fetch", s.Fetch, "fullbatch: how halo rows come: sar (dropped and fetched again), sa (kept), oneshot or auto")
	f.StringVar(&s.Boundary, "boundary", s.Boundary, "fullbatch: halo rows while training: exact, sample:P (a share of them), stale:1 (those of the step before) or none")
	f.StringVar(&s.Order, "order", s.Order, "fullbatch: in which halo rows are added up: any, or fixed (the same bits at every run)")
	f.IntVar(&s.Prefetch, "prefetch", s.Prefetch, "fullbatch: peers' rows on their way while others are added up")
	f.Int64Var(&s.Memory, "memory", s.Memory, "fullbatch: MiB that a peer may hold of rows that it could fetch again; 0: any number")
}

// file is what a YAML file may hold: Settings at its top level, and fields of its own.
type file[T any] struct {
	settings func(*T) *Settings
	bind     func(*T, *pflag.FlagSet)
}

// load puts T together: defaults of the mode, preset and model that are asked for, then the file at path (none where
// empty), then the flags that were given. fresh returns a T with all other defaults.
func (f file[T]) load(path string, given *pflag.FlagSet, fresh func() *T) (*T, error) {
	var text []byte
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, badInput{fmt.Errorf("config: %w", err)}
		}
	}
	return f.parse(path, text, given, fresh)
}

// parse is load of a file that was read from path.
func (f file[T]) parse(path string, text []byte, given *pflag.FlagSet, fresh func() *T) (*T, error) {
	// The text is read twice: what it says of mode, preset and model decides what its other fields default to.
	probe := fresh()
	*f.settings(probe) = Settings{Mode: "retexo", Model: "gcn"}
	if err := f.overlay(probe, path, text, given); err != nil {
		return nil, err
	}
	ask := f.settings(probe)
	t := fresh()
	s, err := base(ask.Mode, ask.Preset, ask.Model)
	if err != nil {
		return nil, badInput{err}
	}
	*f.settings(t) = s
	return t, f.overlay(t, path, text, given)
}

func (f file[T]) overlay(t *T, path string, text []byte, given *pflag.FlagSet) error {
	if len(text) > 0 {
		// Lists in the file replace the defaults, they are not appended to them.
		if err := unmarshal(text, t); err != nil {
			return badInput{fmt.Errorf("%s: %w", path, err)}
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.bind(t, flags)
	var errs []error
	given.Visit(func(g *pflag.Flag) {
		to := flags.Lookup(g.Name)
		if to == nil {
			return // of the command, not of T
		}
		if list, ok := g.Value.(pflag.SliceValue); ok {
			errs = append(errs, to.Value.(pflag.SliceValue).Replace(list.GetSlice()))
			return
		}
		errs = append(errs, to.Value.Set(g.Value.String()))
	})
	if err := errors.Join(errs...); err != nil {
		return badInput{err}
	}
	return nil
}

// task describes the data that a model is for.
type task struct {
	Kind      string // "single" or "multi"
	Features  int    // F
	Classes   int    // C
	Relations int    // of typed edges
}

func taskOf(s *partition.Shard) task {
	t := task{Kind: "single", Features: s.X.Cols(), Classes: s.Labels.Classes, Relations: s.Typed.Count()}
	if s.Labels.Multi() {
		t.Kind = "multi"
	}
	return t
}

func (s Settings) metric(t task) eval.Metric {
	switch {
	case s.Metric != "":
		return eval.Metric(s.Metric)
	case t.Kind == "multi":
		return "micro-f1"
	}
	return "accuracy"
}

func (s Settings) optimizer() optim.Config {
	return optim.Config{Name: s.Solver, LR: s.LR, Decay: s.Decay, Momentum: s.Momentum}
}

func (s Settings) schedule(steps int) optim.Schedule {
	return optim.Schedule{Kind: s.Schedule, Warmup: s.Warmup, Total: steps}
}

// plan returns the config of layer-wise training of t, or all faults of s.
func (s Settings) plan(t task) (retexo.Config, error) {
	if s.Model == "mlp" {
		return retexo.Config{}, badInput{errors.New("model: mlp uses no edges, so there is nothing to train layer by layer over peers: use mode fullbatch or standalone, or encoder mlp")}
	}
	if s.Model == "rgcn" || s.Model == "appnp" || s.Model == "sign" {
		return retexo.Config{}, badInput{fmt.Errorf("model: %s is trained end to end: use mode fullbatch or standalone", s.Model)}
	}
	if s.CorrectSmooth != 0 || s.LabelAugmentation != 0 {
		return retexo.Config{}, badInput{errors.New("correct_smooth and label_augmentation: of modes fullbatch and standalone")}
	}
	switch s.Norm {
	case "", "layer":
	case "batch":
		return retexo.Config{}, badInput{errors.New("norm: batch takes its statistics of all peers' rows at every step, of which only updates travel in retexo, and those of one peer's nodes alone would make another model at each: use layer, or mode fullbatch or standalone")}
	default:
		return retexo.Config{}, badInput{fmt.Errorf("norm: %q, want layer (or empty), which every layer but the last has in retexo", s.Norm)}
	}
	encoder := s.Encoder
	if k, ok := strings.CutPrefix(encoder, "pca:"); ok {
		if n, err := strconv.Atoi(k); err == nil && n > t.Features {
			encoder = fmt.Sprintf("pca:%d", t.Features)
		}
	}
	p := retexo.Plan{Model: s.Model, Encoder: encoder, Carry: s.Carry, Layers: s.Layers, Hidden: s.Hidden, Hops: s.Hops,
		Dropout: s.Dropout, Residual: s.Residual, UnitSum: s.UnitSum}
	if s.Model == "gat" {
		p.Heads, p.AttentionDropout = s.Heads, s.AttentionDropout
	}
	spec, fault := p.Spec(t.Kind, t.Features, t.Classes)
	if fault == nil {
		fault = spec.Validate()
	} else {
		// The faults of what is not layers are wanted as well: a plain layer stands for those that could not be made.
		spec = nn.Spec{Classes: t.Classes, Layers: []nn.LayerSpec{{Conv: "gcn", Out: t.Classes}}}
	}
	c := retexo.Defaults(spec)
	c.Seed, c.Rounds, c.LocalSteps, c.Patience, c.EvalEvery = s.Seed, s.Rounds, s.LocalSteps, s.Patience, s.EvalEvery
	c.Metric, c.Solver, c.Lambdas = s.metric(t), s.Solver, s.Lambdas
	if s.Solver == "ridge" {
		c.Optimizer, c.Schedule = optim.Config{}, optim.Schedule{}
	} else {
		c.Optimizer, c.Schedule = s.optimizer(), s.schedule(s.Rounds*s.LocalSteps)
	}
	c.Balanced, c.Inductive, c.Neighbours, c.PCAPasses, c.Checkpoint = s.Balanced, s.Inductive, s.Neighbours, s.PCAPasses, s.CheckpointEvery
	c.Exchange = s.Exchange
	coding, unknown := wire.Parse(s.Rows, s.Compress)
	if unknown == nil {
		c.Rows = coding
	}
	var unwell error
	c.Survival, unwell = s.Survival.policy()
	if err := errors.Join(fault, unknown, unwell, c.Validate()); err != nil {
		return retexo.Config{}, badInput{err}
	}
	return c, nil
}

// endToEnd returns the config of training all layers of a model of t at once, or all faults of s.
func (s Settings) endToEnd(t task) (fullbatch.Config, error) {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(s.Encoder != "raw", "encoder: %q, but %s trains all layers at once, on raw features", s.Encoder, s.Mode)
	fault(s.LocalSteps != 1, "local_steps: %d, but %s takes every step together, want 1", s.LocalSteps, s.Mode)
	fault(s.MinPeers != 0, "min_peers: %d, but %s needs every peer at every step, want 0", s.MinPeers, s.Mode)
	fault(s.Straggler != "wait", "straggler: %s, but %s needs every peer's whole work at every step, want wait", s.Straggler, s.Mode)
	fault(s.Neighbours != 0, "neighbours: %d, but %s sees all edges, want 0", s.Neighbours, s.Mode)
	fault(!slices.Contains([]string{"", "none", "layer", "batch"}, s.Norm), "norm: %q, want none, layer or batch", s.Norm)
	fault(s.Carry != "hidden", "carry: %q, but %s hands hidden rows on, want hidden", s.Carry, s.Mode)
	if s.Model == "rgcn" && t.Relations == 0 {
		return fullbatch.Config{}, badInput{errors.New("model: rgcn, but the graph's edges have no types: use another model")}
	}
	var spec nn.Spec
	var err error
	switch s.Model {
	case "appnp":
		spec, err = nn.PresetAPPNP(t.Kind, t.Features, t.Classes, s.Hidden, s.Layers, s.Hops, s.Teleport)
	case "sign":
		spec, err = nn.PresetSIGN(t.Kind, t.Features, t.Classes, s.Hidden, s.Layers, s.Hops)
	case "rgcn": // the same as gcn but for the convolution
		spec, err = nn.Preset("gcn", t.Kind, t.Features, t.Classes, s.Hidden, s.Layers)
	default:
		spec, err = nn.Preset(s.Model, t.Kind, t.Features, t.Classes, s.Hidden, s.Layers)
	}
	if err != nil {
		return fullbatch.Config{}, badInput{errors.Join(append(errs, err)...)}
	}
	for i := range spec.Layers {
		l := &spec.Layers[i]
		l.Dropout, l.Residual = s.Dropout, s.Residual
		last := i == len(spec.Layers)-1
		l.Norm, l.BatchNorm = s.Norm == "layer" && !last, s.Norm == "batch" && !last
		if s.Model == "rgcn" {
			l.Conv, l.Relations, l.Bases = "rgcn", t.Relations, s.Bases
		}
		if s.Model == "gat" {
			l.AttentionDropout = s.AttentionDropout
			if i < s.Layers-1 {
				l.Heads = s.Heads
			}
		}
	}
	if s.Model != "appnp" { // its hops are the last layer's
		spec.Layers[0].Hops = s.Hops
	}
	spec.Encoder.UnitSum = s.UnitSum
	if s.LabelAugmentation != 0 {
		spec.Encoder.Labels = s.LabelAugmentation
		spec.Encoder.Out += t.Classes
		spec.Layers[0].In += t.Classes
	}
	if s.CorrectSmooth != 0 {
		spec.CorrectSmooth = &nn.CorrectSmooth{Steps: s.CorrectSmooth, Correct: s.CorrectAlpha, Smooth: s.SmoothAlpha}
	}
	c := fullbatch.Defaults(spec)
	c.Seed, c.Epochs, c.Patience, c.EvalEvery, c.Metric = s.Seed, s.Rounds, s.Patience, s.EvalEvery, s.metric(t)
	c.Optimizer, c.Schedule = s.optimizer(), s.schedule(s.Rounds)
	c.Balanced, c.Inductive, c.Checkpoint = s.Balanced, s.Inductive, s.CheckpointEvery
	c.Fetch, c.Boundary, c.Order, c.Prefetch, c.Memory = s.Fetch, s.Boundary, s.Order, s.Prefetch, s.Memory<<20
	c.Exchange = s.Exchange
	coding, unknown := wire.Parse(s.Rows, s.Compress)
	if errs = append(errs, unknown); unknown == nil {
		c.Rows = coding
	}
	fault(s.Memory > 1<<40, "memory: %d MiB, want at most %d", s.Memory, int64(1)<<40)
	if err := errors.Join(append(errs, c.Validate(), spec.Validate())...); err != nil {
		return fullbatch.Config{}, badInput{err}
	}
	return c, nil
}

// unmarshal is YAML's, strict. The library panics on some texts that are no YAML (a tag before an anchor without a
// value, in v1.19.2), and a plan comes from others: a fault of the file is an error here.
func unmarshal(text []byte, t any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no YAML that can be read: %v", r)
		}
	}()
	if err := yaml.UnmarshalWithOptions(text, t, yaml.Strict()); err != nil {
		said := yaml.FormatError(err, false, true)
		var typed *yaml.TypeError
		if errors.As(err, &typed) { // in place of the names of Go's types
			_, excerpt, _ := strings.Cut(said, "\n")
			at := typed.Token.Position
			said = fmt.Sprintf("[%d:%d] found %.40q, want %s\n%s", at.Line, at.Column, typed.Token.Value, wanted(typed.DstType), excerpt)
		}
		return errors.New(said)
	}
	return nil
}

// wanted says what a setting of type t takes.
func wanted(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return "a duration, as 30s or 5m"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint64:
		return "an integer, 0 or more"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return "settings" // a struct
}
