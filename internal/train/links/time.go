package links

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/train"
)

// ParseTime reads COLUMN:T1:T2, with two numbers or dates such as 2024-03-31, T1 below T2. An empty text gives no time
// split.
func ParseTime(text string) (*train.LinkTime, error) {
	if text == "" {
		return nil, nil
	}
	t := &train.LinkTime{}
	rest, second, _ := cutLast(text)
	column, first, ok := cutLast(rest)
	if ok = ok && column != ""; ok {
		t.Column = column
		if t.Until, ok = both(first, second,
			func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }); !ok {
			t.Until, ok = both(first, second, years)
			t.Dates = true
		}
	}
	if !ok || !(t.Until[0] < t.Until[1]) {
		return nil, fmt.Errorf("link_time must be COLUMN:T1:T2, with two numbers or dates such as 2024-03-31, "+
			"the first the smaller (got %q)", text)
	}
	return t, nil
}

func cutLast(text string) (before, after string, found bool) {
	k := max(strings.LastIndexByte(text, ':'), 0)
	return text[:k], text[min(k+1, len(text)):], k > 0
}

func both(first, second string, read func(string) (float64, error)) (out [2]float64, ok bool) {
	var errs [2]error
	out[0], errs[0] = read(first)
	out[1], errs[1] = read(second)
	return out, errs == [2]error{}
}

// years returns the years since 2000 of a date, as graph/dataset/column stores them.
func years(date string) (float64, error) {
	at, err := time.Parse(time.DateOnly, date)
	return at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Hours() / 24 / 365.2425, err
}

// edgeColumn is the part of graph.Graph.Encoding for a column of edges; graph/dataset/column explains the fields.
type edgeColumn struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Mean    float64  `json:"mean"`
	Std     float64  `json:"std"`
	Missing bool     `json:"missing"`
	Values  []string `json:"values"`
	Clock   bool     `json:"clock"`
	Width   int      `json:"width"`
}

// width is how many numbers of an edge's row the column has.
func (c edgeColumn) width() (n int) {
	switch c.Kind {
	case "categorical":
		return len(c.Values) + 1
	case "text":
		return c.Width
	case "date":
		n = 5
		if c.Clock {
			n = 7
		}
	case "numeric", "age":
		n = 1
	}
	if c.Missing {
		n++
	}
	return n
}

// timePlace is where the rows of edges have a time, and the times of a split there.
type timePlace struct {
	at, missing int // columns; missing is −1 if no column marks a missing time
	until       [2]float32
}

// placeOf finds the column of the edges of a relation, which is empty if edges have no types.
func placeOf(t *train.LinkTime, s *shard.Shard, relation string) (timePlace, error) {
	type table struct {
		Columns []edgeColumn `json:"edge_columns"`
	}
	var of struct {
		table
		Tables []struct {
			Source, Relation, Target string
			Encoding                 table
		} `json:"edge_tables"`
	}
	if len(s.Encoding) > 0 {
		if err := json.Unmarshal(s.Encoding, &of); err != nil {
			return timePlace{}, fmt.Errorf("encoding of %s: %w", s.Name, err)
		}
	}
	first, columns := 0, of.Columns
	for _, e := range of.Tables {
		if columns = e.Encoding.Columns; e.Source+"-"+e.Relation+"-"+e.Target == relation {
			break
		}
		for _, c := range columns {
			first += c.width()
		}
		columns = nil
	}
	for _, c := range columns {
		if c.Name != t.Column {
			first += c.width()
			continue
		}
		if kind := map[bool]string{true: "date", false: "numeric"}[t.Dates]; c.Kind != kind || first >= s.EdgeX.Cols {
			return timePlace{}, fmt.Errorf("link_time must have times as column %s of the edges has them "+
				"(got a %s column and %s times)", c.Name, c.Kind, kind)
		}
		p := timePlace{first, -1, [2]float32{}}
		if c.Missing {
			p.missing = first + c.width() - 1
		}
		for k, v := range t.Until {
			p.until[k] = float32((v - c.Mean) / c.Std) // rounded as the times are
		}
		return p, nil
	}
	if k, err := strconv.Atoi(t.Column); err == nil && len(s.Encoding) == 0 && k >= 0 && k < s.EdgeX.Cols && !t.Dates {
		return timePlace{k, -1, [2]float32{float32(t.Until[0]), float32(t.Until[1])}}, nil
	}
	names := make([]string, 0, len(columns))
	for _, c := range columns {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		names = append(names, fmt.Sprintf("%d columns without names", s.EdgeX.Cols))
	}
	return timePlace{}, fmt.Errorf("link_time must name a column of the edges of %s, which are %q (got %q): "+
		"import the edges with columns", cmp.Or(relation, s.Name), names, t.Column)
}

// of returns what edge k of g is for. An edge without columns trains.
func (p timePlace) of(s *shard.Shard, g *graph.CSR, k int64) graph.Split {
	if g.Edge == nil || g.Edge[k] < 0 {
		return graph.Train
	}
	row := s.EdgeX.Row(int(g.Edge[k]))
	switch {
	case p.missing >= 0 && row[p.missing] != 0, row[p.at] < p.until[0]:
		return graph.Train
	case row[p.at] < p.until[1]:
		return graph.Val
	}
	return graph.Test
}
