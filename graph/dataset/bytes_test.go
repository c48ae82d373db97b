package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestIgnoredBytes: columns of bytes that are no text are refused, and read once they are ignored; a model reads tables
// with such a column that it does not know.
func TestIgnoredBytes(t *testing.T) {
	type node struct {
		ID    string   `parquet:"id"`
		Photo []byte   `parquet:"photo"`
		Hash  [16]byte `parquet:"hash"`
		Parts [][]byte `parquet:"parts,list"`
		Ill   string   `parquet:"ill"`
		Age   float64  `parquet:"age"`
	}
	dir := tables(t, map[string]string{"e.csv": "source,target\nn0,n1\nn2,n3\n",
		"n.csv": "id,ill,age,photo\nn0,no,1,\xff\xfe\x80\n"})
	var rows []node
	for i := range 40 {
		rows = append(rows, node{fmt.Sprint("n", i), []byte{byte(i), 0xff}, [16]byte{byte(i)}, [][]byte{{0xff}},
			[]string{"yes", "no"}[i%2], float64(i)})
	}
	if err := os.Mkdir(filepath.Join(dir, "parts"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string][]node{"n.parquet": rows, "parts/a.parquet": rows[:20], "parts/b.parquet": rows[20:]}
	for name, part := range files {
		if err := parquet.WriteFile(filepath.Join(dir, name), part); err != nil {
			t.Fatal(err)
		}
	}
	edges := filepath.Join(dir, "e.csv")
	for _, file := range []string{"n.parquet", "parts"} {
		c := ImportConfig{Nodes: filepath.Join(dir, file), Edges: edges, Label: "ill", Ignore: []string{"hash"}}
		_, err := Import(c)
		graphtest.Refused(t, err, "row 1, column photo: text must be UTF-8", "ignore the column")
		c.Ignore = []string{"photo", "hash", "parts"}
		g, err := Import(c)
		if err != nil || g.N() != 40 || g.X.Cols() != 1 {
			t.Fatalf("%s: %v", file, err)
		}
		for _, other := range []string{file, "n.csv"} {
			format := table.Format{Charset: "utf-8"}
			again, _, err := Encode(g.Encoding, []string{filepath.Join(dir, other)}, []string{edges}, nil, format)
			if other == "n.csv" {
				graphtest.Refused(t, err, "node must be a name in") // photo is no fault: n1 is not there
			} else if err != nil || again.N() != 40 {
				t.Errorf("%s: read again: %v", other, err)
			}
		}
	}
}
