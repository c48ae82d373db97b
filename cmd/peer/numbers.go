package main

import (
	"archive/zip"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle/graph/dataset/npy"
	"github.com/heddle-gnn/heddle/graph/target"
)

// numberPrediction is the prediction of numbers of one node, as a row of predictions.parquet.
type numberPrediction struct {
	ID         string    `parquet:"id"`
	Prediction []float64 `parquet:"prediction,list"` // by target, whose names are the value of key targets in the file
	Split      string    `parquet:"split"`           // train, val, test, or empty
	Target     []float64 `parquet:"target,list"`     // empty: not known
	Site       string    `parquet:"site"`
}

// numbers calls do with every node.
func (g guessed) numbers(do func(row numberPrediction) error) error {
	for i := range g.p.Logits.Rows {
		row := numberPrediction{ID: g.name(i), Site: g.site}
		for _, v := range g.p.Logits.Row(i) {
			row.Prediction = append(row.Prediction, float64(v))
		}
		if g.split != nil {
			row.Split = splitNames[g.split[i]]
		}
		if l := g.labels; l.Kind() == target.Numbers && l.Has(i) {
			for _, v := range l.Values[i*l.Classes : (i+1)*l.Classes] {
				row.Target = append(row.Target, float64(v))
			}
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return nil
}

// targetColumns are the heads of what is said of each target: just what where there is one.
func targetColumns(what string, names []string, n int) (all []string) {
	if n == 1 {
		return []string{what}
	}
	for k := range n {
		all = append(all, plainCell(what+"_"+className(names, k)))
	}
	return all
}

// writeNumbersCSV writes one line per node: ID, predicted numbers, split, the true numbers as far as they are known, and the
// site if there are several.
func writeNumbersCSV(w io.Writer, names []string, all []guessed) error {
	c := csv.NewWriter(w)
	n := all[0].p.Logits.Cols
	head := append([]string{"id"}, targetColumns("prediction", names, n)...)
	head = append(append(head, "split"), targetColumns("target", names, n)...)
	if all[0].site != "" {
		head = append(head, "site")
	}
	if err := c.Write(head); err != nil {
		return err
	}
	for _, g := range all {
		err := g.numbers(func(row numberPrediction) error {
			line := []string{plainCell(row.ID)}
			for _, v := range row.Prediction {
				line = append(line, strconv.FormatFloat(v, 'g', -1, 32))
			}
			line = append(line, row.Split)
			for k := range n {
				text := ""
				if row.Target != nil {
					text = strconv.FormatFloat(row.Target[k], 'g', -1, 32)
				}
				line = append(line, text)
			}
			if g.site != "" {
				line = append(line, row.Site)
			}
			return c.Write(line)
		})
		if err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// writeNumbersParquet writes one row per node.
func writeNumbersParquet(w io.Writer, names []string, all []guessed) error {
	list, err := nameList(names, all[0].p.Logits.Cols)
	if err != nil {
		return err
	}
	f := parquet.NewGenericWriter[numberPrediction](w, parquet.Compression(&parquet.Zstd), parquet.KeyValueMetadata("targets", list))
	for _, g := range all {
		err := g.numbers(func(row numberPrediction) error {
			_, err := f.Write([]numberPrediction{row})
			return err
		})
		if err != nil {
			return err
		}
	}
	return f.Close()
}

// writeNumbersNPZ writes NumPy arrays with a row a node, N of them with C targets each.
func writeNumbersNPZ(w io.Writer, names []string, all []guessed) error {
	var ids, splits, sites []string
	var node []int64
	var prediction, target []float32
	columns := all[0].p.Logits.Cols
	for _, g := range all {
		first := len(ids)
		err := g.numbers(func(row numberPrediction) error {
			number := int64(len(ids) - first)
			if g.global != nil {
				number = g.global[len(ids)-first]
			}
			ids, splits, sites, node = append(ids, row.ID), append(splits, row.Split), append(sites, row.Site), append(node, number)
			for k, v := range row.Prediction {
				y := float32(math.NaN())
				if row.Target != nil {
					y = float32(row.Target[k])
				}
				prediction, target = append(prediction, float32(v)), append(target, y)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var list []string
	for k := range columns {
		list = append(list, className(names, k))
	}
	z, n := zip.NewWriter(w), len(ids)
	err := errors.Join(npy.Write(z, "node", []int{n}, node), npy.Write(z, "id", []int{n}, ids),
		npy.Write(z, "prediction", []int{n, columns}, prediction), npy.Write(z, "target", []int{n, columns}, target),
		npy.Write(z, "split", []int{n}, splits), npy.Write(z, "site", []int{n}, sites), npy.Write(z, "targets", []int{columns}, list))
	return errors.Join(err, z.Close())
}
