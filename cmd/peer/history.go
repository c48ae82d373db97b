package main

import (
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
)

// generation, lostRows and share are in --json the history of a run that continued without failed
// peers, or gave slow ones less work.
type generation struct {
	Number  uint64   `json:"generation"`
	Stage   string   `json:"stage"`
	Round   int      `json:"round"`
	Members []string `json:"members"`
	Lost    []string `json:"lost"`
}

type lostRows struct {
	Stage string `json:"stage"`
	Hop   int    `json:"hop"`
	Peer  string `json:"peer"`
	Rows  int    `json:"rows"` // of its nodes, from which edges to this peer's nodes come
	Did   string `json:"did"`  // previous or drop
}

type share struct {
	Stage string  `json:"stage"`
	Round int     `json:"round"` // from which on
	Peer  string  `json:"peer"`
	Share float64 `json:"share"` // of its training nodes that its steps are computed from
}

// historyOf returns the history of o, which has ranks, with names.
func historyOf(o *heddle.Result, peers int) (gs []generation, rows []lostRows, shares []share) {
	names := o.Members
	for r := len(names); r < peers; r++ {
		names = append(names, fmt.Sprintf("peer %d", r))
	}
	for _, g := range o.Generations {
		in := make([]bool, len(names))
		one := generation{Number: g.Number, Stage: g.StageName, Round: g.Round, Members: []string{}, Lost: []string{}}
		for _, q := range g.Members {
			in[q] = true
		}
		for q, name := range names {
			if in[q] {
				one.Members = append(one.Members, name)
			} else {
				one.Lost = append(one.Lost, name)
			}
		}
		gs = append(gs, one)
	}
	for _, l := range o.LostRows {
		rows = append(rows, lostRows{l.StageName, l.Hop, names[l.Peer], l.Rows, l.Action})
	}
	for _, s := range o.Shares {
		shares = append(shares, share{s.StageName, s.Round, names[s.Peer], s.Share})
	}
	return gs, rows, shares
}

// failures is the history of a run as a table; nil if no peer failed or was slow.
func failures(r result) *report.Table {
	gs := r.Generations
	if len(gs) < 2 && len(r.LostRows) == 0 && len(r.Shares) == 0 && (len(gs) == 0 || len(gs[0].Lost) == 0) {
		return nil
	}
	t := &report.Table{Head: []string{"generation", "continues at", "without"}}
	for _, g := range gs {
		without := strings.Join(g.Lost, ", ")
		if without == "" {
			without = "none"
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(g.Number), fmt.Sprintf("%s, round %d", g.Stage, g.Round), without})
	}
	for _, l := range r.LostRows {
		did := "edges left out"
		if l.Did == "previous" {
			did = "earlier rows used"
		}
		t.Rows = append(t.Rows,
			[]string{"rows of " + l.Peer, fmt.Sprintf("%s, hop %d", l.Stage, l.Hop), fmt.Sprintf("%d: %s", l.Rows, did)})
	}
	for _, s := range r.Shares {
		t.Rows = append(t.Rows,
			[]string{"work of " + s.Peer, fmt.Sprintf("%s, round %d", s.Stage, s.Round), report.Percent(s.Share)})
	}
	return t
}
