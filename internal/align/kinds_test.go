package align

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// customers writes tables of three sites, each in its own way, and the pooled ones: dates, free text, a
// column of names and one of many categories.
func customers(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const head = "id,born,joined,note,name,town,city,outcome,split\n"
	pooled, edges, n := head, "source,target,amount\n", 0
	for s, size := range []int{60, 70, 80} {
		own, ownEdges := head, "source,target,target site,amount\n"
		for i := range size {
			y, m, d, hour := 1950+n%60, 1+n%12, 1+n%28, n%24
			born := fmt.Sprintf("%04d-%02d-%02d", y, m, d)
			joined := fmt.Sprintf("%04d-%02d-%02dT%02d:30", 2000+n%20, m, d, hour)
			if n%11 == 0 {
				joined = ""
			}
			rest := fmt.Sprintf("secret note no %d,secret%d,town%d,%s,%s,%s\n", n, n, n%55,
				[]string{"Köln", "Zürich"}[n%2], []string{"no", "yes"}[n%2], []string{"train", "val", "test"}[n%3])
			pooled += fmt.Sprintf("n%d,%s,%s,%s", n, born, joined, rest)
			if s == 1 { // German
				born = fmt.Sprintf("%02d.%02d.%04d", d, m, y)
			}
			own += fmt.Sprintf("n%d,%s,%s,%s", n, born, joined, rest)
			if i > 0 { // each transfer twice, and once in the other direction
				for k, pair := range [][2]int{{n, n - 1}, {n, n - 1}, {n - 1, n}} {
					edges += fmt.Sprintf("n%d,n%d,%d\n", pair[0], pair[1], 1+k)
					ownEdges += fmt.Sprintf("n%d,n%d,,%d\n", pair[0], pair[1], 1+k)
				}
			} else if s > 0 {
				for range 2 {
					edges += fmt.Sprintf("n%d,n%d,5\n", n, n-1)
					ownEdges += fmt.Sprintf("n%d,n%d,%s,5\n", n, n-1, sites[s-1])
				}
			}
			n++
		}
		if s == 2 { // Latin-1 with semicolons
			own = strings.NewReplacer("ö", "\xf6", "ü", "\xfc", ",", ";").Replace(own)
		}
		put(t, dir, sites[s], own)
		put(t, dir, sites[s]+"-edges", ownEdges)
	}
	put(t, dir, "pooled", pooled)
	put(t, dir, "pooled-edges", edges)
	return dir
}

func customerConfig(dir, name string) dataset.ImportConfig {
	return dataset.ImportConfig{Name: "all", Nodes: filepath.Join(dir, name+".csv"),
		Edges: filepath.Join(dir, name+"-edges.csv"), Label: "outcome", Split: "split", Weight: "amount", Merge: "sum",
		Text: []string{"note:16"}, Age: []string{"born:2020-01-01"}, Seed: 7}
}

// All sites end with the same columns as the pooled tables, and no text of the columns that are dropped or hashed
// leaves a site.
func TestKindsLikePooled(t *testing.T) {
	dir := customers(t)
	g, err := dataset.Import(customerConfig(dir, "pooled"))
	if err != nil {
		t.Fatal(err)
	}
	var configs []entrant
	for _, name := range sites {
		c := entrant{Config: Config{Sites: sites}, tables: SiteConfig{Here: name, MinTexts: 1,
			TargetSite: "target site", ImportConfig: customerConfig(dir, name)}}
		configs = append(configs, c)
		own, err := OpenSite(c.tables)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := own.schema().encode(); err != nil || strings.Contains(string(text), "secret") ||
			strings.Contains(string(text), "town1") || !strings.Contains(string(text), "Köln") {
			t.Errorf("%s tells %s (%v)", name, text, err)
		}
	}
	dirs, errs := assemble(t.Context(), t, configs)
	var first []byte
	at := 0
	for r, s := range readParts(t, dirs, errs) {
		if first == nil {
			first = slices.Clone(s.Encoding)
		}
		if string(s.Encoding) != string(first) {
			t.Errorf("%s has another encoding: %s", sites[r], s.Encoding)
		}
		if s.X.Cols() != g.X.Cols() {
			t.Fatalf("%d columns, pooled %d", s.X.Cols(), g.X.Cols())
		}
		for i := range s.Owned {
			if s.IDs[i] != g.IDs[at] {
				t.Fatalf("node %s, pooled %s", s.IDs[i], g.IDs[at])
			}
			for j := range s.X.Cols() {
				if a, b := row(s.X.Sparse == nil, s, i, j), g.X.Dense.Row(at)[j]; math.Abs(float64(a-b)) > 2e-4 {
					t.Fatalf("node %s, column %d is %v, pooled %v", s.IDs[i], j, a, b)
				}
			}
			_, w := s.Adj.Row(i)
			_, pooled := g.Adj.Row(at)
			slices.Sort(w)
			pooled = slices.Sorted(slices.Values(pooled))
			if !slices.Equal(w, pooled) {
				t.Errorf("node %s has edges of weights %v, pooled %v", s.IDs[i], w, pooled)
			}
			at++
		}
	}
	var e dataset.Encoding
	if err := json.Unmarshal(first, &e); err != nil {
		t.Fatal(err)
	}
	for k, want := range []table.ColumnKind{table.Age, table.Date, table.Text, table.Ignored, table.Ignored,
		table.Categorical} {
		if e.Columns[k].Kind != want {
			t.Errorf("column %s is %s, must be %s", e.Columns[k].Name, e.Columns[k].Kind, want)
		}
	}
}

func row(dense bool, s *shard.Shard, i, j int) float32 {
	if dense {
		return s.X.Dense.Row(i)[j]
	}
	return s.X.Sparse.Dense().Row(i)[j]
}

// What cannot be agreed on names the sites and the column.
func TestKindsDiffer(t *testing.T) {
	for want, edit := range map[string]func(dir string, c []entrant){
		`column "note" must be asked for alike at all sites (got 16 columns of words, seed 7 at north and 32 columns of words, seed 7 at south)`: func(_ string, c []entrant) { c[1].tables.Text = []string{"note:32"} },
		`north asks for column "town" (option categorical), and at south it has too many`: func(_ string, c []entrant) {
			c[0].tables.Categorical = []string{"town"}
		},
		`repeated edges must be merged alike at all sites (got "sum" at north and "last" at west)`: func(_ string,
			c []entrant) {
			c[2].tables.Merge = "last"
		},
		`and at west they can be either: say there which (option date day:dmy or :mdy)`: func(dir string, c []entrant) {
			for k, day := range []string{"31/01/2024", "01/31/2024", "01/02/2024"} {
				c[k].tables.Nodes, c[k].tables.Edges, c[k].tables.Text, c[k].tables.Age = filepath.Join(dir,
					"day-"+sites[k]+".csv"), "", nil, nil
				put(t, dir, "day-"+sites[k], "id,day,outcome,split\na"+sites[k]+","+day+",yes,train\n")
			}
		},
	} {
		dir := customers(t)
		var configs []entrant
		for _, name := range sites {
			configs = append(configs, entrant{Config: Config{Sites: sites}, tables: SiteConfig{Here: name, MinTexts: 1,
				TargetSite: "target site", ImportConfig: customerConfig(dir, name)}})
		}
		edit(dir, configs)
		_, errs := assemble(t.Context(), t, configs)
		for _, err := range errs {
			graphtest.Refused(t, err, want)
		}
	}
}
