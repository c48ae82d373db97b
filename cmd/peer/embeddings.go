package main

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
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

// writeEmbeddingsNPZ writes the arrays ids and embeddings as NumPy's savez_compressed does.
func writeEmbeddingsNPZ(w io.Writer, all []hiddenRows) error {
	n, width, longest := 0, 0, 1
	for _, r := range all {
		n, width = n+len(r.IDs), r.X.Cols
		for _, id := range r.IDs {
			longest = max(longest, utf8.RuneCountInString(id))
		}
	}
	z := zip.NewWriter(w)
	ids := func(w io.Writer) error { // UTF-32, filled up with zeros
		cell := make([]byte, 4*longest)
		for _, r := range all {
			for _, id := range r.IDs {
				clear(cell)
				k := 0
				for _, c := range id {
					binary.LittleEndian.PutUint32(cell[4*k:], uint32(c))
					k++
				}
				if _, err := w.Write(cell); err != nil {
					return err
				}
			}
		}
		return nil
	}
	rows := func(w io.Writer) error {
		line := make([]byte, 4*width)
		for _, r := range all {
			for i := range r.X.Rows {
				for k, v := range r.X.Row(i) {
					binary.LittleEndian.PutUint32(line[4*k:], math.Float32bits(v))
				}
				if _, err := w.Write(line); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return errors.Join(writeArray(z, "ids", fmt.Sprintf("<U%d", longest), fmt.Sprintf("(%d,)", n), ids),
		writeArray(z, "embeddings", "<f4", fmt.Sprintf("(%d, %d)", n, width), rows), z.Close())
}

// writeArray writes one array in NumPy's format, version 1.0.
func writeArray(z *zip.Writer, name, kind, shape string, fill func(io.Writer) error) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Deflate})
	if err != nil {
		return err
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", kind, shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	begin := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	if _, err := w.Write(append(begin, header...)); err != nil {
		return err
	}
	return fill(w)
}
