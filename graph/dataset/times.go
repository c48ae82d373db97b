package dataset

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// TimeSplit is a split by time: a node is for training if its time is before the first time, for validation if it is
// before the second, and else for testing.
type TimeSplit struct {
	Column     string
	until      [2]float64
	numbers    bool // the column has numbers; else dates
	at         int  // index of the column in the table (−1 = none)
	monthFirst bool
}

// parseTimeSplit reads COLUMN:T1:T2; an empty text gives nil, no split by time.
func parseTimeSplit(text string) (t *TimeSplit, err error) {
	if text == "" {
		return nil, nil
	}
	fail := fmt.Errorf("split by time must be COLUMN:T1:T2, with two numbers or dates such as 2024-03-31, the first "+
		"the smaller (got %q)", text)
	t = &TimeSplit{}
	rest, second, ok := cutLast(text)
	if !ok {
		return nil, fail
	}
	first := ""
	if t.Column, first, ok = cutLast(rest); !ok || t.Column == "" {
		return nil, fail
	}
	low, ok := table.Number(first)
	high, also := table.Number(second)
	if t.numbers = ok && also; !t.numbers {
		from, ok := table.ParseDate(first, false)
		to, also := table.ParseDate(second, false)
		if !ok || !also {
			return nil, fail
		}
		low, high = from.Years(), to.Years()
	}
	if t.until = [2]float64{low, high}; low >= high {
		return nil, fail
	}
	return t, nil
}

// Open finds the column in a table of nodes with these encoded columns; ok is false if the table lacks it.
func (t *TimeSplit) Open(of *table.Table, columns []table.Column) (ok bool) {
	t.at = of.Find(t.Column)
	for _, c := range columns {
		if c.Name == t.Column {
			t.monthFirst = c.MonthFirst
		}
	}
	return t.at >= 0
}

// Of(node) is the use of a node's label: none if its cell has no time.
func (t *TimeSplit) Of(of *table.Table, cells []string, line int) (graph.Split, error) {
	cell := of.Cell(cells[t.at])
	if table.Missing(cell) {
		return graph.None, nil
	}
	at, ok := of.Number(cell)
	if !t.numbers {
		var d table.Moment
		if d, ok = table.ParseDate(cell, t.monthFirst); ok {
			at = d.Years()
		}
	}
	switch {
	case !ok && t.numbers:
		return graph.None, of.Fault(line, t.at, "must be a number, as the times of the split are (got %.40q)", cell)
	case !ok:
		return graph.None, of.Fault(line, t.at, "must be a date, as the times of the split are (got %.40q)", cell)
	case at < t.until[0]:
		return graph.Train, nil
	case at < t.until[1]:
		return graph.Val, nil
	}
	return graph.Test, nil
}
