package cli

import (
	"fmt"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// dataFacts are facts about the data of all peers.
type dataFacts struct {
	Nodes    int64  `json:"nodes"`
	Edges    *int64 `json:"edges"` // from each node to another: an undirected edge counts twice (null = not summed)
	Features int    `json:"features"`
	Task     string `json:"task"` // single, multi or regression
	Classes  int    `json:"classes"`
	Targets  int    `json:"targets,omitempty"` // numeric targets, instead of classes
	Several  bool   `json:"several_classes"`   // a node may have several classes
	Sites    int    `json:"sites"`
}

func factsOf(o *heddle.Result, first *shard.Shard) dataFacts {
	l := first.Labels
	f := dataFacts{Nodes: first.Nodes, Features: first.X.Cols(), Task: l.Kind().String(), Classes: l.Classes,
		Several: l.Multi(), Sites: first.Parts}
	if l.Kind() == graph.Numbers {
		f.Classes, f.Targets = 0, l.Classes
	}
	if o.Figures != nil {
		f.Edges = &o.Figures.Edges
	}
	return f
}

// allBytes are what all peers of a run sent together, before the sums of the figures.
type allBytes struct {
	Halo    int64 `json:"halo"`
	Reduce  int64 `json:"reduce"`
	Control int64 `json:"control"`
}

func allBytesOf(o *heddle.Result) *allBytes {
	if o.Figures == nil {
		return nil
	}
	sent := o.Figures.Sent
	return &allBytes{sent.Halo, sent.Reduce, sent.Control}
}

// versions are the versions of the program and libraries that trained.
type versions struct {
	Heddle  string `json:"heddle"`
	Go      string `json:"go"`
	System  string `json:"system"`
	Kernels string `json:"kernels"`
}

// worth is the line beneath the metric of o: the baseline to compare it with, and how certain it is. It is empty if
// there are no test nodes.
func worth(o *heddle.Result) string {
	if o.Figures == nil || o.Figures.Test.Rows == 0 {
		return ""
	}
	set := o.Figures.Test
	line := ""
	if class := o.Figures.PositiveName(); class != "" && o.Metric.Ranks() {
		line = "of class " + class + ": "
	}
	line += "baseline " + Measure(o.Metric, float64(set.Baseline))
	if o.Metric.OfNumbers() {
		line += " (always the mean of the training nodes)"
	}
	if o.Metric == "rank-mae" {
		line += " (always the median class)"
	}
	if k := o.Figures.Majority; k >= 0 && !o.Metric.Ranks() && !o.Metric.OfOrder() {
		line += fmt.Sprintf(" (always %s)", set.Classes[k].Name)
	}
	if set.Low == set.Low {
		line += fmt.Sprintf("; 95 %% interval %s to %s", Measure(o.Metric, float64(set.Low)), Measure(o.Metric,
			float64(set.High)))
	}
	for _, t := range set.Targets {
		line += fmt.Sprintf("\n%s: R² %.4f, MAE %.4g, RMSE %.4g (by the mean: MAE %.4g, RMSE %.4g)", t.Name, t.R2,
			t.MAE, t.RMSE, t.BaselineMAE, t.BaselineRMSE)
	}
	if t := o.Figures.Threshold; t != nil {
		line += fmt.Sprintf("; class %s from probability %.3f on (%s)", t.Class, t.Probability, t.Goal)
	}
	if all := o.Figures.Thresholds; len(all) > 0 {
		line += fmt.Sprintf("; each class from its own probability on (%s)", all[0].Goal)
	}
	return line
}
