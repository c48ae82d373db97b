package main

import (
	"fmt"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/comm/netsim"
)

const linkHelp = "simulated slower network, as latency=50ms,rate=5Mbit"

// prediction is how long a run would take over a connection.
type prediction struct {
	Name    string  `json:"name"`
	Link    string  `json:"link"`
	Seconds float64 `json:"seconds"`
}

// predictions are for connections that people have, and for the one that was modelled.
func predictions(o *heddle.Result) (all []prediction) {
	if o.Load.Trips == 0 {
		return nil
	}
	for _, p := range netsim.Presets {
		all = append(all, prediction{p.Name, p.Model.String(), p.Model.Predict(o.Load).Seconds()})
	}
	if ways := o.Link; ways != nil {
		name := "this run's"
		if len(ways.Pairs) > 0 {
			name = "this run's, as slow as the slowest of each"
		}
		all = append(all, prediction{name, ways.String(), ways.Worst().Predict(o.Load).Seconds()})
	}
	return all
}

func predicted(all []prediction) *report.Table {
	if all == nil {
		return nil
	}
	t := &report.Table{Head: []string{"connection of each peer", "predicted seconds"}}
	for _, p := range all {
		t.Rows = append(t.Rows, []string{p.Name + ": " + p.Link, fmt.Sprintf("%.1f", p.Seconds)})
	}
	return t
}
