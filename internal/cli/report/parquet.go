package report

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/cli"
)

// WriteParquet writes the predictions, a row of each node.
func (Pages) WriteParquet(w io.Writer, names []string, all []cli.NodePredictions) error {
	if len(all) > 0 && all[0].Predictions.Kind() == graph.Numbers {
		t := cli.NumbersOf(names, all, false)
		f := writerOf[cli.NumberRow](w, parquet.KeyValueMetadata("targets", listed(t.Targets)))
		_, err := f.Write(t.Rows)
		return errors.Join(err, f.Close())
	}
	var classes []string
	if len(all) > 0 {
		for k := range all[0].Predictions.Logits.Cols {
			classes = append(classes, cli.ClassName(names, k))
		}
	}
	f := writerOf[cli.PredictionRow](w, parquet.KeyValueMetadata("classes", listed(classes)))
	rows := make([]cli.PredictionRow, 0, 1024) // a call for each row takes twice as long
	for row := range cli.PredictionRows(names, all) {
		if rows = append(rows, row); len(rows) == cap(rows) {
			if _, err := f.Write(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	_, err := f.Write(rows)
	return errors.Join(err, f.Close())
}

// writerOf compresses: IDs and lists of numbers repeat.
func writerOf[T any](w io.Writer, options ...parquet.WriterOption) *parquet.GenericWriter[T] {
	return parquet.NewGenericWriter[T](w, append(options, parquet.Compression(&parquet.Zstd))...)
}

// listed is a line of CSV.
func listed(names []string) string {
	var line strings.Builder
	c := csv.NewWriter(&line)
	c.Write(names)
	c.Flush()
	return strings.TrimSpace(line.String())
}

// embeddedNode is a row of a .parquet.
type embeddedNode struct {
	ID        string    `parquet:"id"`
	Embedding []float32 `parquet:"embedding,list"`
}

// WriteHidden writes a row of each node.
func (Pages) WriteHidden(w io.Writer, all []cli.HiddenRows) error {
	f := writerOf[embeddedNode](w)
	for _, r := range all {
		for i, id := range r.IDs {
			if _, err := f.Write([]embeddedNode{{id, r.X.Row(i)}}); err != nil {
				return err
			}
		}
	}
	return f.Close()
}
