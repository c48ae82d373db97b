package cli

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
)

// NumberRow is the prediction of one node, as a row of predictions.parquet.
type NumberRow struct {
	ID         string    `parquet:"id"`
	Prediction []float64 `parquet:"prediction,list"` // by target, whose names are the value of key targets in the file
	Split      string    `parquet:"split"`           // train, val, test, or empty
	Target     []float64 `parquet:"target,list"`     // (empty = not known)
	Site       string    `parquet:"site"`
	Node       int64     `parquet:"-"` // number in the whole graph
}

// NumberTable is the predictions of some nodes.
type NumberTable struct {
	Targets []string // names, one at least
	Rows    []NumberRow
}

// columns returns the column heads of each target: only `what` if there is one target.
func (t NumberTable) columns(what string) (all []string) {
	if len(t.Targets) == 1 {
		return []string{what}
	}
	for _, name := range t.Targets {
		all = append(all, plainCell(what+"_"+name))
	}
	return all
}

// csv writes one line per node: ID, predicted numbers, split, the true numbers as far as they are known, and the site
// if there are several.
func (t NumberTable) csv(w io.Writer) error {
	sites := len(t.Rows) > 0 && t.Rows[0].Site != ""
	c, head := csv.NewWriter(w), slices.Concat([]string{"id"}, t.columns("prediction"), []string{"split"},
		t.columns("target"))
	if sites {
		head = append(head, "site")
	}
	c.Write(head)                                                                  // the first error stays
	short := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 32) } // reading it gives the same bits
	for _, row := range t.Rows {
		line := []string{plainCell(row.ID)}
		for _, v := range row.Prediction {
			line = append(line, short(v))
		}
		line = append(line, row.Split)
		for k := range t.Targets {
			if line = append(line, ""); row.Target != nil {
				line[len(line)-1] = short(row.Target[k])
			}
		}
		if sites {
			line = append(line, row.Site)
		}
		c.Write(line)
	}
	c.Flush()
	return c.Error()
}

// npz writes NumPy arrays with a row a node, N of them with C targets each; docs/reference/result.md lists them.
func (t NumberTable) npz(w io.Writer) error {
	var ids, splits, sites []string
	var node []int64
	var prediction, known []float32
	for _, row := range t.Rows {
		ids, splits, sites = append(ids, row.ID), append(splits, row.Split), append(sites, row.Site)
		node = append(node, row.Node)
		for k, v := range row.Prediction {
			y := float32(math.NaN())
			if row.Target != nil {
				y = float32(row.Target[k])
			}
			prediction, known = append(prediction, float32(v)), append(known, y)
		}
	}
	n, c := len(ids), len(t.Targets)
	return WriteArrays(w, n, Column{Name: "node", Values: node}, Column{Name: "id", Values: ids},
		Column{Name: "prediction", Values: prediction, Wide: c}, Column{Name: "target", Values: known, Wide: c},
		Column{Name: "split", Values: splits}, Column{Name: "site", Values: sites},
		Column{Name: "targets", Values: t.Targets, Rows: c})
}
