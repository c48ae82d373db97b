package main

import (
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
)

// tried is in --json one of the plans that class-means may try.
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

// printTried prints what class-means has tried as a table; nothing for other plans.
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
