package report

import (
	"encoding/csv"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/internal/cli"
)

// WriteParquet writes the predictions, a row of each node.
func (Pages) WriteParquet(w io.Writer, names []string, all []cli.NodePredictions) error {
	if len(all) > 0 && all[0].Predictions.Kind() == target.Numbers {
		return writeNumbers(w, cli.NumbersOf(names, all, false))
	}
	classes := 0
	if len(all) > 0 {
		classes = all[0].Predictions.Logits.Cols
	}
	var list strings.Builder
	c := csv.NewWriter(&list)
	var line []string
	for k := range classes {
		line = append(line, cli.ClassName(names, k))
	}
	if err := c.Write(line); err != nil {
		return err
	}
	c.Flush()
	f := parquet.NewGenericWriter[cli.PredictionRow](w, parquet.Compression(&parquet.Zstd), parquet.KeyValueMetadata("classes", strings.TrimSpace(list.String())))
	err := cli.EachPrediction(names, all, func(row cli.PredictionRow, _ string) error {
		_, err := f.Write([]cli.PredictionRow{row})
		return err
	})
	if err != nil {
		return err
	}
	return f.Close()
}

// writeNumbers writes predictions of numbers, a row of each node.
func writeNumbers(w io.Writer, t cli.NumberTable) error {
	var list strings.Builder
	c := csv.NewWriter(&list)
	if err := c.Write(t.Targets); err != nil {
		return err
	}
	c.Flush()
	f := parquet.NewGenericWriter[cli.NumberRow](w, parquet.Compression(&parquet.Zstd),
		parquet.KeyValueMetadata("targets", strings.TrimSpace(list.String())))
	if _, err := f.Write(t.Rows); err != nil {
		return err
	}
	return f.Close()
}

// embeddedNode is a row of a .parquet.
type embeddedNode struct {
	ID        string    `parquet:"id"`
	Embedding []float32 `parquet:"embedding,list"`
}

// WriteHidden writes a row of each node, compressed: ids and lists of numbers repeat.
func (Pages) WriteHidden(w io.Writer, all []cli.HiddenRows) error {
	f := parquet.NewGenericWriter[embeddedNode](w, parquet.Compression(&parquet.Zstd))
	for _, r := range all {
		for i, id := range r.IDs {
			if _, err := f.Write([]embeddedNode{{id, r.X.Row(i)}}); err != nil {
				return err
			}
		}
	}
	return f.Close()
}
