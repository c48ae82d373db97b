package cli

import (
	"archive/zip"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"github.com/klauspost/compress/flate"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
)

// Column is a column of a table, or an array of an .npz: a slice of the values of all rows.
type Column struct {
	Name   string
	Values any // a slice of numbers or texts, row by row
	Rows   int // 0 = as the table
	Wide   int // values in a row, in an .npz (0 = one)
	Digits int // after the point, in CSV
}

// WriteArrays writes n rows of columns as NumPy arrays.
func WriteArrays(w io.Writer, n int, all ...Column) error {
	z := zip.NewWriter(w)
	// Predictions take 1.3 % more bytes than at the default level, and a third of its time.
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed)
	})
	var err error
	for _, c := range all {
		shape := []int{cmp.Or(c.Rows, n)}
		if c.Wide > 0 {
			shape = append(shape, c.Wide)
		}
		err = errors.Join(err, npy.Write(z, c.Name, shape, c.Values))
	}
	return errors.Join(err, z.Close())
}

// WriteColumns writes n rows of columns to a file of that name: as NumPy arrays if it ends in .npz, else as CSV.
func WriteColumns(w io.Writer, name string, n int, all ...Column) error {
	if filepath.Ext(name) == ".npz" {
		return WriteArrays(w, n, all...)
	}
	rows := make([][]string, 1+n)
	for _, c := range all {
		rows[0] = append(rows[0], c.Name)
		for k := range n {
			rows[1+k] = append(rows[1+k], c.cell(k))
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func (c Column) cell(k int) string {
	switch v := c.Values.(type) {
	case []string:
		return v[k]
	case []float32:
		return strconv.FormatFloat(float64(v[k]), 'f', c.Digits, 32)
	case []float64:
		if math.IsNaN(v[k]) {
			return ""
		}
		return strconv.FormatFloat(v[k], 'f', c.Digits, 64)
	case []int64:
		return strconv.FormatInt(v[k], 10)
	}
	panic(fmt.Sprintf("column %s of %T", c.Name, c.Values))
}

// WriteNPZ writes NumPy arrays with a row a node, N of them in C classes; docs/reference/result.md lists them.
func WriteNPZ(w io.Writer, names []string, all []NodePredictions) error {
	if len(all) > 0 && all[0].Predictions.Kind() == graph.Numbers {
		return NumbersOf(names, all, true).npz(w)
	}
	n, classes := 0, 0
	for _, g := range all {
		n, classes = n+g.Predictions.Logits.Rows, g.Predictions.Logits.Cols
	}
	several := len(all) > 0 && all[0].Predictions.Kind() == graph.Several
	var ids, splits, sites []string
	var node, class, label []int64
	chosen, known := make([]bool, n*classes), make([]bool, n*classes)
	logits, probability := make([]float32, 0, n*classes), make([]float32, 0, n*classes)
	for g, i := range ordered(all) {
		at := len(ids) * classes
		ids, node = append(ids, g.Name(i)), append(node, g.number(i))
		splits, sites = append(splits, g.splitName(i)), append(sites, g.Site)
		logits = append(logits, g.Predictions.Logits.Row(i)...)
		for _, p := range g.probabilities(i) {
			probability = append(probability, float32(p))
		}
		predicted := g.Predictions.Classes(i)
		if several {
			for _, k := range predicted {
				chosen[at+k] = true
			}
			for k := range classes {
				known[at+k] = g.Labels.Classes == classes && g.Labels.Multi() && g.Labels.Bits[i*classes+k] != 0
			}
			continue
		}
		class, label = append(class, int64(predicted[0])), append(label, -1)
		if g.Labels.Class != nil {
			label[len(label)-1] = int64(g.Labels.Class[i])
		}
	}
	list := make([]string, classes)
	for k := range list {
		list[k] = ClassName(names, k)
	}
	columns := []Column{{Name: "node", Values: node}, {Name: "id", Values: ids},
		{Name: "class", Values: class}, {Name: "label", Values: label},
		{Name: "probability", Values: probability, Wide: classes}, {Name: "logits", Values: logits, Wide: classes},
		{Name: "split", Values: splits}, {Name: "site", Values: sites}}
	if several {
		columns[2] = Column{Name: "class", Values: chosen, Wide: classes}
		columns[3] = Column{Name: "label", Values: known, Wide: classes}
	}
	return WriteArrays(w, n, append(columns, Column{Name: "classes", Values: list, Rows: classes})...)
}
