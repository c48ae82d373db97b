package main

import (
	"fmt"
	"time"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/comm"
	slow "github.com/heddle-gnn/heddle/comm/link"
)

const linkHelp = `a slower network to put in the way, like "latency=50ms,rate=5Mbit,loss=1%", for some pairs another: "rate=5Mbit; 0-2: latency=150ms"`

// slower is what --link describes of the connections of size peers, or nil where it is empty.
func slower(text string, size int) (*slow.Table, error) {
	if text == "" {
		return nil, nil
	}
	ways, err := slow.ParseTable(text)
	if err == nil {
		err = ways.Check(size)
	}
	if err != nil {
		return nil, badInput{err}
	}
	return &ways, nil
}

// behind returns l behind the connections of ways, or l itself where there are none.
func (l link) behind(ways *slow.Table, rank, size int, seed uint64) link {
	if ways != nil {
		l.Transport = slow.Over(l.Transport, rank, size, *ways, seed)
	}
	return l
}

// prediction is how long a run would take over a connection.
type prediction struct {
	Name    string  `json:"name"`
	Link    string  `json:"link"`
	Seconds float64 `json:"seconds"`
}

// predictions are for connections that people have, and for the one that was modelled.
func (o *outcome) predictions(ways *slow.Table) (all []prediction) {
	if o.Load.Trips == 0 {
		return nil
	}
	for _, p := range slow.Presets {
		all = append(all, prediction{p.Name, p.Model.String(), p.Model.Predict(o.Load).Seconds()})
	}
	if ways != nil {
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

// load is what a member's run asked of its network.
func load(g *comm.Group, took time.Duration) slow.Load {
	trips, spent := g.Waits()
	b := g.Bytes()
	return slow.Load{Busy: max(0, took-spent), Trips: trips, Bytes: b.Halo + b.Reduce + b.Control}
}
