// Package propagation is a method of training in one file: federated label propagation (Zhu and Ghahramani, 2002). A
// node's shares of the classes are its neighbours' shares, again and again; training nodes keep their label.
package propagation

import (
	"context"
	"errors"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Method is label propagation: Z ← min((1−Alpha)·Z₀ + Alpha·S·Z, 1), Steps times, S the adjacency divided by the roots
// of both degrees (graph.Symmetric) and Z₀ the labels, or for nodes without one the classes' shares.
type Method struct {
	Steps    int     `json:"steps"` // at least 1
	Alpha    float32 `json:"alpha"` // [0, 1)
	Features int     `json:"features"`
	Classes  int     `json:"classes"`
}

// Fingerprint implements train.Method.
func (m Method) Fingerprint() [32]byte { return train.Fingerprint(m) }

const (
	ofLabels = "label counts"
	ofResult = "result"
	rows     = "logits to smooth" // as train.Sender.Spread names them
)

// Messages implements train.Method.
func (m Method) Messages(members train.Members) ([]*train.Messages, error) {
	l := train.NewMessages(members)
	l.AddLabels(graph.Single, m.Classes)
	l.AddDegrees(1)
	l.SendExact(rows, "shares of the classes", int64(m.Steps), m.Classes, true)
	_, counts, wide := train.Accumulated("accuracy", graph.Single, m.Classes)
	l.Count(ofResult, "validation and test metrics", 2, counts, wide)
	figures.AddMessages(l, graph.Single, m.Classes)
	return []*train.Messages{l}, nil
}

// Train implements train.Method. The model has no weights: it corrects and smooths the classes' shares, which any
// program of package infer can do.
func (m Method) Train(ctx context.Context, at *train.Place, own *shard.Shard) (*train.Trained, error) {
	spec, err := nn.Architecture{Model: "mlp", Task: "single", Features: m.Features, Classes: m.Classes,
		Layers: 1}.Spec()
	if err != nil {
		return nil, train.Input(err)
	}
	spec.CorrectSmooth = &nn.CorrectSmooth{Steps: m.Steps, Smooth: m.Alpha}
	c := train.Config{Spec: spec, Metric: "accuracy"}
	if err := c.Fits(own); err != nil {
		return nil, train.Input(err)
	}
	model, err := c.NewModel()
	if err != nil {
		return nil, train.Input(err)
	}
	who := train.Participant{Config: m.Fingerprint(), Model: train.Fingerprint(spec), Own: true,
		Shape: train.SnapshotShape{Rounds: m.Steps, Labels: train.LabelsLen(graph.Single, m.Classes)}}
	t := &trainer{train.NewRunState(who, own, c.Metric, c.Draw(), "propagation"), m, model, mat.Dense{}}
	return train.RunTrainer(ctx, at, t, m)
}

// trainer is one peer's run.
type trainer struct {
	train.RunState
	method Method
	model  *nn.Model
	z      mat.Dense // [Owned × C]
}

// Trained implements train.Trainer.
func (t *trainer) Trained() (*nn.Model, error) { return t.model, nil }

// Keep implements train.Kept: all else is in the run state.
func (t *trainer) Keep(c *train.Checkpoint) error {
	c.F32["z"] = t.z.Data
	return nil
}

// TakeUp implements train.Kept.
func (t *trainer) TakeUp(c *train.Checkpoint) error {
	t.begin()
	t.z, _ = c.Dense("z", t.Whole.Owned, t.method.Classes)
	t.Scores = t.z
	return nil
}

// begin makes the classes' shares the model's answer for each node, and returns Z₀.
func (t *trainer) begin() mat.Dense {
	first := mat.New(t.Whole.Owned, t.method.Classes)
	of := graph.ClassIn(graph.Train, t.Whole.Labels, t.Whole.Split)
	params := t.model.Params() // weights and biases of a linear layer
	clear(params[0].Value.Data)
	bias := params[1].Value.Data
	for k, n := range t.Labels.Classes {
		share := float32(max(n, 1e-9) / t.Labels.Labelled)
		bias[k] = float32(math.Log(float64(share)))
		for i, class := range of {
			switch {
			case class < 0:
				first.Set(i, k, share)
			case int(class) == k:
				first.Set(i, k, 1)
			}
		}
	}
	return first
}

// Run implements train.Trainer.
func (t *trainer) Run(ctx context.Context, g *comm.Group, sums comm.Reducer) error {
	t.Join(g, sums)
	err := t.Restore(ctx, t)
	if err != nil {
		return err
	}
	if t.At.Stage > 0 {
		return t.Finish(ctx, t)
	}
	if t.Labels.Labelled == 0 {
		if err := t.CountLabels(ctx, t.ID(ofLabels, 0)); err != nil {
			return err
		}
	}
	first := t.begin()
	if t.At.Round == 0 {
		t.z = first
	}
	sender := train.NewSender(g, t.Whole, comm.Coding{})
	view, err := sender.WithDegrees(ctx, train.WholeGraph(t.Whole))
	if err != nil {
		return err
	}
	for hop := sender.Spread(ctx, view, nil).Hop; t.At.Round < t.method.Steps; t.At.Round++ {
		if err := errors.Join(ctx.Err(), t.Save(t)); err != nil {
			return err
		}
		if t.z, err = hop(t.z); err != nil {
			return err
		}
		for i, v := range t.z.Data {
			t.z.Data[i] = min((1-t.method.Alpha)*first.Data[i]+t.method.Alpha*v, 1)
		}
	}
	for i, v := range t.z.Data { // of shares to logits
		t.z.Data[i] = float32(math.Log(max(float64(v), 1e-9)))
	}
	t.Scores = t.z
	end := train.Event{Kind: train.StageEnd, Metric: string(t.Metric), Sent: t.Sent()}
	for _, split := range []graph.Split{graph.Val, graph.Test} {
		nodes, to := t.Whole.NodesIn(split), &end.Val
		if split == graph.Test {
			to = &end.Test
		}
		id := t.ID(ofResult, int(split))
		if *to, _, _, err = t.Compare(ctx, id, t.Scores.Select(nodes), t.Whole.Labels.Select(nodes),
			eval.DefaultBins); err != nil {
			return err
		}
	}
	t.Report(end)
	return t.Finish(ctx, t)
}
