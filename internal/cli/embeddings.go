package cli

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"

	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/mat"
)

// HiddenRows are the hidden rows of some nodes.
type HiddenRows struct {
	IDs []string
	X   mat.Dense // [len(IDs) × H]
}

// EmbeddingsHelp is the help of --embeddings.
const EmbeddingsHelp = ".npz or .parquet file for the nodes' last hidden rows"

// CheckEmbeddings returns an error unless WriteEmbeddings can write to path: the name must end in .npz, or with pages
// in .parquet. An empty path is no file.
func CheckEmbeddings(path string, pages Pages) error {
	switch ext := filepath.Ext(path); {
	case path == "" || ext == ".npz" || ext == ".parquet" && pages != nil:
		return Writable(path)
	case ext == ".parquet":
		return Invalidf("--embeddings must end in .npz (got %q): only the program heddle writes .parquet", path)
	}
	return Invalidf("--embeddings must end in .npz or .parquet (got %q)", path)
}

// WriteEmbeddings writes the hidden rows of some nodes; an empty path is no file. An .npz has the arrays ids (text) and
// embeddings (float32, N×H).
func WriteEmbeddings(path string, all []NodePredictions, pages Pages) error {
	if path == "" {
		return nil
	}
	var rows []HiddenRows
	for _, g := range all {
		if g.Hidden.Empty() && g.Predictions.Logits.Rows > 0 {
			return fmt.Errorf("%s: there are no hidden rows: the model has one layer and no head, or this process "+
				"resumed a finished run; heddle predict --embeddings may have them", path)
		}
		ids := make([]string, g.Hidden.Rows)
		for i := range ids {
			ids[i] = g.Name(i)
		}
		if g.Hidden.Cols != all[0].Hidden.Cols {
			return fmt.Errorf("%s: all hidden rows must have %d numbers (got %d)", path, all[0].Hidden.Cols,
				g.Hidden.Cols)
		}
		rows = append(rows, HiddenRows{IDs: ids, X: g.Hidden})
	}
	fill := writeEmbeddingsNPZ
	if filepath.Ext(path) == ".parquet" {
		fill = pages.WriteHidden
	}
	return WriteFile(nil, path, func(w io.Writer) error { return fill(w, rows) })
}

// writeEmbeddingsNPZ writes the arrays ids and embeddings as NumPy's savez_compressed does. Rows are written one by
// one, since there may be gigabytes of them.
func writeEmbeddingsNPZ(w io.Writer, all []HiddenRows) error {
	var ids []string
	width := 0
	for _, r := range all {
		ids, width = append(ids, r.IDs...), r.X.Cols
	}
	z := zip.NewWriter(w)
	if err := npy.Write(z, "ids", []int{len(ids)}, ids); err != nil {
		return err
	}
	rows, err := npy.Create(z, "embeddings", "<f4", len(ids), width)
	if err != nil {
		return err
	}
	for _, r := range all {
		for i := range r.X.Rows {
			if err := binary.Write(rows, binary.LittleEndian, r.X.Row(i)); err != nil {
				return err
			}
		}
	}
	return z.Close()
}
