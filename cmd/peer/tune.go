package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/plan"
)

func newTune() *cobra.Command {
	return newSimulation(&job{tunes: true}, &cobra.Command{
		Use:   "tune (--data D [--peers K] | --shards DIR)",
		Short: "Train by several plans and take the best by validation",
		Long: `Simulate all peers on one machine, train by several plans one after the other, and take the one that the validation
nodes prefer: it is peer train with --preset auto. Plans that the validation nodes cannot tell apart are ranked by the
bytes that they send. All plans together send at most --budget megabytes.

The table says what was tried. --plan-out writes the settings of the chosen plan, by which peer train gives the same
model without the others. The output directory is that of peer train.`,
		Example: `  peer tune --data data/cora --plan-out plan.yaml
  peer train --data data/cora --config plan.yaml
  peer tune --data data/cora --goal accuracy --budget 200`,
	}, func(s plan.Setting) bool { return s.Auto && s.Name != "preset" && s.Name != "mode" })
}

// tried is in --json one of the plans that preset auto may try.
type tried struct {
	Name          string   `json:"name"`
	Val           *float64 `json:"val"` // null: not trained
	StandardError *float64 `json:"standard_error"`
	Bytes         int64    `json:"bytes"` // that all peers sent
	Limit         int64    `json:"limit"` // bytes that all peers would send at most
	Seconds       float64  `json:"seconds"`
	Ended         string   `json:"ended,omitempty"` // why it was not trained, or not to its end
	Chosen        bool     `json:"chosen"`
}

func triedOf(o *heddle.Result) (all []tried) {
	for _, a := range o.Tried {
		all = append(all, tried{a.Name, number(a.Val), number(a.Error), a.Sent, a.Limit, a.Seconds, a.Ended, a.Chosen})
	}
	return all
}

// printTried prints what preset auto has tried as a table; nothing for other plans.
func printTried(w io.Writer, o *heddle.Result) error {
	table := report.TriedTable(string(o.Metric), o.Tried)
	if table == nil {
		return nil
	}
	if err := table.Print(w); err != nil {
		return err
	}
	var sent int64
	for _, a := range o.Tried {
		sent += a.Sent
	}
	fmt.Fprintf(w, "all plans together sent %s\n\n", report.Bytes(sent))
	return nil
}

// writePlan writes the settings by which the model was trained.
func (j *job) writePlan(stdout io.Writer, o *heddle.Result) error {
	if j.planOut == "" {
		return nil
	}
	text, err := o.Plan.MarshalYAML()
	if err != nil {
		return err
	}
	return cli.WriteFile(stdout, j.planOut, func(w io.Writer) error { _, err := w.Write(text); return err })
}
