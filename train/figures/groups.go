package figures

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Groups are the values of the column that groups test nodes, the same at all sites. The last but one is of all
// other nodes; in the last, the pool, are the test nodes of values that too few nodes or sites have.
type Groups struct {
	Column string
	names  []string
	// By names that all sites have in one order: the encoding, which is the same at all, lists values and cuts. So the
	// sums need no agreement on values, and they reveal none that the encoding has not.
	of []int32 // of each own node; none is in the pool
}

// Group are the counts of the test nodes with one value of a column.
type Group struct {
	Name  string `json:"name"`
	Rows  int64  `json:"rows"`  // test nodes
	Right int64  `json:"right"` // whose class is predicted
	// with two classes: nodes of the positive one, nodes that are predicted to be of it, and nodes that are both
	Positives int64 `json:"positives"`
	Alarms    int64 `json:"alarms"`
	Found     int64 `json:"found"`
}

// cells are the numbers of a group.
const cells = 5

const (
	ofValues      = "figures: sites by value"
	ofValueCounts = "figures: test nodes by value"
)

// GroupsOf returns what the setting figures_by means for a site's nodes: COLUMN of categories, or COLUMN:CUT,CUT of
// numbers or ages.
func GroupsOf(by string, s *shard.Shard) (*Groups, error) {
	fault := func(format string, args ...any) (*Groups, error) {
		return nil, fmt.Errorf("figures_by must be a column of the table of nodes that the model reads, as ward or "+
			"age:40,65 (got %s): %s", by, fmt.Sprintf(format, args...))
	}
	if s.Labels.Kind() != graph.Single {
		return fault("nodes must have one class each")
	}
	var e struct{ Columns []column }
	if err := json.Unmarshal(s.Encoding, &e); err != nil || len(e.Columns) == 0 {
		return fault("%s does not come from one table of nodes", s.Name)
	}
	g, given, first := &Groups{Column: by, of: make([]int32, s.Owned)}, "", 0
	if k := strings.LastIndexByte(by, ':'); k >= 0 {
		g.Column, given = by[:k], by[k+1:]
	}
	at := slices.IndexFunc(e.Columns, func(c column) bool { return c.Name == g.Column })
	if at < 0 {
		return fault("there is no column %s", g.Column)
	}
	c := e.Columns[at]
	for k := range at {
		first += e.Columns[k].features()
	}
	switch number := c.Kind == "numeric" || c.Kind == "age"; {
	case c.Kind == "categorical" && given == "":
		g.names = slices.Clone(c.Values)
		for i := range g.of {
			// Read back from the one-hot columns: a part has no text of a cell, and the model reads the same columns.
			// With all of them 0 the count ends at "none or another".
			for int(g.of[i]) < len(c.Values) && feature(s.X, i, first+int(g.of[i])) == 0 {
				g.of[i]++
			}
		}
	case number && given != "":
		// Cuts are standardised like the feature and compared as float32: in float64 a number at a cut could come out
		// below it.
		var cuts []float32 // as features: a number equal to a cut is not below it
		last, from := math.Inf(-1), "under "
		for _, text := range strings.Split(given, ",") {
			cut, err := strconv.ParseFloat(text, 64)
			if !(cut > last) || err != nil {
				return fault("cuts must be ascending numbers")
			}
			if len(cuts) > 0 {
				from = fmt.Sprintf("%g to under ", last)
			}
			g.names, cuts, last = append(g.names, from+text), append(cuts, float32((cut-c.Mean)/c.Std)), cut
		}
		g.names = append(g.names, fmt.Sprintf("%g or more", last))
		for i := range g.of {
			if c.Missing && feature(s.X, i, first+c.features()-1) != 0 {
				g.of[i] = int32(len(g.names))
				continue
			}
			for _, cut := range cuts {
				if feature(s.X, i, first) >= cut {
					g.of[i]++
				}
			}
		}
	default:
		return fault("column %s is %s, and only numbers and ages have cuts", g.Column, c.Kind)
	}
	g.names = append(g.names, "none or another", "values of few nodes or sites")
	return g, nil
}

// column is what is needed here of table.Column. That package is not imported because it reads files, which a library
// for phones does not link.
type column struct {
	Name, Kind     string
	Mean, Std      float64
	Values         []string
	Missing, Clock bool
	Width          int
}

// features is table.Column.Features.
func (c column) features() int {
	n := map[string]int{"numeric": 1, "age": 1, "date": 5, "categorical": len(c.Values) + 1, "text": c.Width}[c.Kind]
	if c.Clock {
		n += 2
	}
	if c.Missing {
		n++
	}
	return n
}

// feature is what row i of x has in column j.
func feature(x graph.Features, i, j int) float32 {
	if x.Sparse == nil {
		return x.Dense.Row(i)[j]
	}
	col, val := x.Sparse.Row(i)
	if at, ok := slices.BinarySearch(col, int32(j)); ok {
		return val[at]
	}
	return 0
}

// Len is how many groups there are, with the pool; without a column there are none.
func (g *Groups) Len() int {
	if g == nil {
		return 0
	}
	return len(g.names)
}

// ownGroups counts the test nodes of this site by value: fewNodes or more of a value, or none. So no difference of sums
// is of a few nodes of this site, unless it has only few.
func (e *Exchange) ownGroups(own *shard.Shard, f *Figures) ([]int64, error) {
	n := e.By.Len()
	v, rows := make([]int64, cells*n), make([]int64, n)
	if n == 0 || e.logits.Empty() {
		return v, nil
	}
	sheet, nodes := eval.NewSheet(own.Labels, e.Goal), make([][]int32, n)
	for _, i := range own.NodesIn(graph.Test) {
		nodes[e.By.of[i]] = append(nodes[e.By.of[i]], i)
	}
	for k, of := range nodes {
		counts := make([]int64, sheet.Size())
		sheet.Write(counts, e.logits.Select(of), own.Labels.Select(of), f.Calibration())
		t, err := sheet.Read(counts)
		if err != nil {
			return nil, err
		}
		t, rows[k] = t.Cut(f.Cuts()), t.Rows()
		one := v[cells*k:][:cells]
		one[0] = rows[k]
		for c := range own.Labels.Classes {
			right, wrong, missed := t.Class(c)
			if one[1] += right; c == f.Positive {
				one[2], one[3], one[4] = right+missed, right+wrong, right
			}
		}
	}
	// Before anything is sent: with secure sums nobody sees the part of one site, but two sums that differ by one site
	// would show it.
	pool(v, rows, fewNodes, func(a, b int64) int64 { return a + b })
	return v, nil
}

// pool adds to the last group those whose number in n is below least and, while its own number is, the smallest of the
// others. together is the number of two groups. Each round empties one group, so it ends. The smallest goes first,
// which keeps most values visible; a pool that is itself too small would show its nodes, so it takes one more.
func pool(v, n []int64, least int64, together func(a, b int64) int64) {
	last := len(n) - 1
	for {
		k := -1
		for j, x := range n[:last] {
			if x > 0 && (k < 0 || x < n[k]) {
				k = j
			}
		}
		if k < 0 || n[k] >= least && (n[last] == 0 || n[last] >= least) {
			return
		}
		for c := range cells {
			v[cells*last+c] += v[cells*k+c]
			v[cells*k+c] = 0
		}
		n[last], n[k] = together(n[last], n[k]), 0
	}
}

// sumGroups sums the test nodes of all sites by value. First the sites count for each value who has nodes of it, since
// a value of fewer than leastHidden sites is in the pool.
func (e *Exchange) sumGroups(s *sums, sites int, reduce func(string, []int64, int, func(int) bool) error) error {
	if e.By == nil {
		return nil
	}
	f, err := e.figures(s)
	if err != nil {
		return comm.Refused("%v", err)
	}
	bits, narrow := comm.CountBits(max(e.Shard.Nodes, int64(sites))), func(int) bool { return false }
	own, _ := e.split(s)
	v, err := e.ownGroups(own, f)
	if err != nil {
		return err
	}
	have := make([]int64, e.By.Len())
	for k := range have {
		have[k] = min(v[cells*k], 1)
	}
	if err := reduce(ofValues, have, bits, narrow); err != nil {
		return err
	}
	// have is a total that all sites know, so each of them empties the same groups. Otherwise one value's nodes would
	// be partly in its group and partly in the pool. The sites of the pool are not counted again; the larger number of
	// the two is a lower bound.
	pool(v, have, int64(min(sites, leastHidden)), func(a, b int64) int64 { return max(a, b) }) // at least as many
	s.Groups = v
	return reduce(ofValueCounts, v, bits, narrow)
}

// groups names the groups of v that have nodes; all rows of test are in one. Without a column there are none.
func (e *Exchange) groups(v []int64, rows int64) (all []Group, err error) {
	if e.By == nil || v == nil { // before they are summed
		return nil, nil
	}
	if len(v) != cells*e.By.Len() {
		return nil, fmt.Errorf("figures by a column must have %d numbers (got %d)", cells*e.By.Len(), len(v))
	}
	for k, name := range e.By.names {
		v := v[cells*k:][:cells]
		g := Group{name, v[0], v[1], v[2], v[3], v[4]}
		// A site's part of a secure sum cannot be checked, but the total can: it must be possible, and cover the test
		// nodes of the sheets.
		if slices.Min(v) < 0 || slices.Max(v) > g.Rows || g.Found > min(g.Right, g.Positives, g.Alarms) {
			return nil, fmt.Errorf("figures by %s: numbers of value %s must fit together (got %d)", e.By.Column,
				name, v)
		}
		if rows -= g.Rows; g.Rows > 0 {
			all = append(all, g)
		}
	}
	if rows != 0 {
		return nil, fmt.Errorf("figures by %s must be of all test nodes (%d are missing)", e.By.Column, rows)
	}
	return all, nil
}
