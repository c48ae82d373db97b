package main

import (
	"fmt"
	"time"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/comm"
	slow "github.com/heddle-gnn/heddle/comm/link"
)

const linkHelp = `a slower network to put in the way, like "latency=50ms,rate=5Mbit,loss=1%"`

// slower is the model that --link describes, or nil where it is empty.
func slower(text string) (*slow.Model, error) {
	if text == "" {
		return nil, nil
	}
	m, err := slow.Parse(text)
	if err != nil {
		return nil, badInput{fmt.Errorf("link: %w", err)}
	}
	return &m, nil
}

// behind returns l behind a connection of model m, or l itself where there is none.
func (l link) behind(m *slow.Model, rank, size int, seed uint64) link {
	if m != nil {
		l.Transport = slow.Over(l.Transport, rank, size, *m, seed)
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
func (o *outcome) predictions(m *slow.Model) (all []prediction) {
	if o.Load.Trips == 0 {
		return nil
	}
	for _, p := range slow.Presets {
		all = append(all, prediction{p.Name, p.Model.String(), p.Model.Predict(o.Load).Seconds()})
	}
	if m != nil {
		all = append(all, prediction{"this run's", m.String(), m.Predict(o.Load).Seconds()})
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
