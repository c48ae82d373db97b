package cli

import (
	"archive/zip"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/heddle-gnn/heddle/graph/npy"
)

// NumberRow is the prediction of one node, as a row of predictions.parquet.
type NumberRow struct {
	ID         string    `parquet:"id"`
	Prediction []float64 `parquet:"prediction,list"` // by target, whose names are the value of key targets in the file
	Split      string    `parquet:"split"`           // train, val, test, or empty
	Target     []float64 `parquet:"target,list"`     // empty: not known
	Site       string    `parquet:"site"`
	Node       int64     `parquet:"-"` // number in the whole graph
}

// NumberTable is the predictions of some nodes.
type NumberTable struct {
	Targets []string // names, one at least
	Rows    []NumberRow
}

// columns returns the column heads of each target: what alone where there is one target.
func (t NumberTable) columns(what string, plain func(string) string) (all []string) {
	if len(t.Targets) == 1 {
		return []string{what}
	}
	for _, name := range t.Targets {
		all = append(all, plain(what+"_"+name))
	}
	return all
}

// shortNumber writes x with as many digits as a float32 needs, so that reading it gives the same bits.
func shortNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 32) }

// csv writes one line per node: ID, predicted numbers, split, the true numbers as far as they are known, and the site
// if there are several. plain makes a text one that a spreadsheet does not take for a formula.
func (t NumberTable) csv(w io.Writer, plain func(string) string) error {
	c := csv.NewWriter(w)
	sites := len(t.Rows) > 0 && t.Rows[0].Site != ""
	head := append([]string{"id"}, t.columns("prediction", plain)...)
	if head = append(append(head, "split"), t.columns("target", plain)...); sites {
		head = append(head, "site")
	}
	if err := c.Write(head); err != nil {
		return err
	}
	for _, row := range t.Rows {
		line := []string{plain(row.ID)}
		for _, v := range row.Prediction {
			line = append(line, shortNumber(v))
		}
		line = append(line, row.Split)
		for k := range t.Targets {
			text := ""
			if row.Target != nil {
				text = shortNumber(row.Target[k])
			}
			line = append(line, text)
		}
		if sites {
			line = append(line, row.Site)
		}
		if err := c.Write(line); err != nil {
			return err
		}
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
		ids, splits, sites, node = append(ids, row.ID), append(splits, row.Split), append(sites, row.Site), append(node, row.Node)
		for k, v := range row.Prediction {
			y := float32(math.NaN())
			if row.Target != nil {
				y = float32(row.Target[k])
			}
			prediction, known = append(prediction, float32(v)), append(known, y)
		}
	}
	z, n, c := zip.NewWriter(w), len(ids), len(t.Targets)
	err := errors.Join(npy.Write(z, "node", []int{n}, node), npy.Write(z, "id", []int{n}, ids),
		npy.Write(z, "prediction", []int{n, c}, prediction), npy.Write(z, "target", []int{n, c}, known),
		npy.Write(z, "split", []int{n}, splits), npy.Write(z, "site", []int{n}, sites), npy.Write(z, "targets", []int{c}, t.Targets))
	return errors.Join(err, z.Close())
}
