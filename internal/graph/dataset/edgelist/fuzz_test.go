package edgelist

import (
	"os"
	"path/filepath"
	"testing"
)

// fuzzEdges reads any bytes as a list in that format: an error, or a graph that is valid.
func fuzzEdges(f *testing.F, file, weight string, seeds ...string) {
	for _, s := range seeds {
		b, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), file)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, w := range []string{"", weight} {
			g, _, err := Read(Config{Path: path, Weight: w, Strict: w == ""})
			if err != nil {
				continue
			}
			if err := g.Valid(); err != nil {
				t.Fatal(err)
			}
			if n := g.N(); n > FreeNodes && n > NodesByEdge*len(b) {
				t.Fatalf("%d nodes of %d bytes", n, len(b))
			}
		}
	})
}

const testdata = "../../../../graph/dataset/testdata/"

func FuzzText(f *testing.F)      { fuzzEdges(f, "a.el", "3", testdata+"graph.el") }
func FuzzZstd(f *testing.F)      { fuzzEdges(f, "a.el.zst", "3", testdata+"graph.el.zst") }
func FuzzGzip(f *testing.F)      { fuzzEdges(f, "a.el.gz", "3", testdata+"ogb_plain/raw/edge.csv.gz") }
func FuzzEdgeTable(f *testing.F) { fuzzEdges(f, "a.csv", "3", testdata+"graph.el") }
func FuzzParquet(f *testing.F)   { fuzzEdges(f, "a.parquet", "weight", testdata+"graph.parquet") }
