package runs

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle/graph/dataset/npy"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/mat"
)

// hiddenRows are the hidden rows of some nodes.
type hiddenRows struct {
	IDs []string
	X   mat.Dense // [len(IDs) × H]
}

// checkEmbeddings returns an error unless writeHidden can write to path: the name must end in .npz or .parquet. An
// empty path is no file.
func checkEmbeddings(path string) error {
	if path == "" {
		return nil
	}
	if ext := filepath.Ext(path); ext != ".npz" && ext != ".parquet" {
		return cli.Invalidf("--embeddings must end in .npz or .parquet (got %q)", path)
	}
	return cli.Writable(path)
}

// writeHidden writes all rows to path. An .npz has the arrays ids (text) and embeddings (float32, N×H); a .parquet has
// the columns id and embedding, a list of H numbers.
func writeHidden(path string, all []hiddenRows) error {
	for _, r := range all {
		if r.X.Rows != len(r.IDs) || r.X.Cols != all[0].X.Cols {
			return fmt.Errorf("%s: there must be %d hidden rows of %d numbers (got %d of %d)", path, len(r.IDs), all[0].X.Cols, r.X.Rows, r.X.Cols)
		}
	}
	fill := writeEmbeddingsParquet
	if filepath.Ext(path) == ".npz" {
		fill = writeEmbeddingsNPZ
	}
	return cli.WriteFile(nil, path, func(w io.Writer) error { return fill(w, all) })
}

// embeddedNode is a row of a .parquet.
type embeddedNode struct {
	ID        string    `parquet:"id"`
	Embedding []float32 `parquet:"embedding,list"`
}

// writeEmbeddingsParquet writes a row of each node, compressed: ids and lists of numbers repeat.
func writeEmbeddingsParquet(w io.Writer, all []hiddenRows) error {
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

// writeEmbeddingsNPZ writes the arrays ids and embeddings as NumPy's savez_compressed does. Rows are written one by
// one, since there may be gigabytes of them.
func writeEmbeddingsNPZ(w io.Writer, all []hiddenRows) error {
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
