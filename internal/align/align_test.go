package align

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

var sites = []string{"north", "south", "west"}

const node = "id,site,age,height,ward,outcome,split\n"

// tables writes the tables of a graph of three sites into a folder: pooled.csv and pooled-edges.csv
// of all of it, and NAME.csv and NAME-edges.csv of each site. A cross edge is in the tables of one
// of its sites or of both.
func tables(t *testing.T) (dir string) {
	t.Helper()
	files := map[string]*strings.Builder{}
	write := func(file, format string, args ...any) {
		if files[file] == nil {
			files[file] = new(strings.Builder)
		}
		fmt.Fprintf(files[file], format, args...)
	}
	key := rng.New(1)
	draw := func(what string, i, n int) int { return int(key.FoldString(what).Uint64(uint64(i)) % uint64(n)) }
	write("pooled", node)
	write("pooled-edges", "source,target,weight,relation\n")
	of := map[int]string{}
	n := 0
	for s, size := range []int{40, 25, 33} {
		write(sites[s], node)
		write(sites[s]+"-edges", "source,source site,target,target site,weight,relation\n")
		for range size {
			age := fmt.Sprint(20 + draw("age", n, 60))
			if draw("missing", n, 9) == 0 {
				age = ""
			}
			row := fmt.Sprintf("n%d,%s,%s,%d.%d,%s,%s,%s\n", n, sites[s], age, 150+10*s, draw("height", n, 100),
				[]string{"a", "b", "c", "only here " + sites[s]}[draw("ward", n, 4)],
				[]string{"yes", "no", ""}[draw("outcome", n, 3)], []string{"train", "val", "test"}[draw("split", n, 3)])
			write("pooled", "%s", row)
			write(sites[s], "%s", row)
			of[n] = sites[s]
			n++
		}
	}
	for k := range 300 {
		i, j := draw("source", k, n), draw("target", k, n)
		w, relation := 1+draw("weight", k, 4), []string{"refers", "knows", "supplies"}[draw("relation", k, 3)]
		write("pooled-edges", "n%d,n%d,%d,%s\n", i, j, w, relation)
		if of[i] == of[j] {
			write(of[i]+"-edges", "n%d,,n%d,%s,%d,%s\n", i, j, of[j], w, relation)
			continue
		}
		how := draw("listed", k, 3)
		if how != 0 {
			write(of[i]+"-edges", "n%d,,n%d,%s,%d,%s\n", i, j, of[j], w, relation)
		}
		if how != 1 {
			write(of[j]+"-edges", "n%d,%s,n%d,%s,%d,%s\n", i, of[i], j, of[j], w, relation)
		}
	}
	dir = t.TempDir()
	for name, b := range files {
		put(t, dir, name, b.String())
	}
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name+".csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// entrant is a site that is to meet others by its tables.
type entrant struct {
	Config
	tables SiteConfig
	opened func()        // called once they are; may be nil
	got    *bytes.Buffer // takes all that the site receives, unless it is nil
}

func config(dir string, rank int, weight, relation string) entrant {
	return entrant{Config: Config{Sites: sites}, tables: SiteConfig{
		Here: sites[rank], MinTexts: 1, SourceSite: "source site", TargetSite: "target site",
		ImportConfig: dataset.ImportConfig{Name: "all", Nodes: filepath.Join(dir, sites[rank]+".csv"),
			Edges: filepath.Join(dir, sites[rank]+"-edges.csv"), Label: "outcome", Split: "split", Site: "site",
			Weight: weight, Relation: relation}}}
}

// assemble meets, and returns what each site wrote.
func assemble(ctx context.Context, t *testing.T, configs []entrant) (dirs []string, errs []error) {
	t.Helper()
	network, to := netsim.New(len(configs), netsim.Config{}), t.TempDir()
	errs = make([]error, len(configs))
	var all errgroup.Group
	for r, c := range configs {
		var err error
		if c.Tables, err = OpenSite(c.tables); err != nil {
			t.Fatal(err)
		}
		if c.opened != nil {
			c.opened()
		}
		dirs = append(dirs, filepath.Join(to, c.tables.Here))
		all.Go(func() error {
			g := comm.NewGroup(&tap{network.Transport(r), c.got}, r, len(configs))
			defer g.Close()
			s, _, err := Shard(ctx, g, c.Config)
			if err == nil {
				_, err = Write(ctx, g, dirs[r], s, c.Sites)
			}
			errs[r] = err
			return nil
		})
	}
	all.Wait()
	return dirs, errs
}

// tap keeps what a site receives.
type tap struct {
	comm.Transport
	got *bytes.Buffer
}

func (t *tap) Recv(ctx context.Context, from int) ([]byte, error) {
	frame, err := t.Transport.Recv(ctx, from)
	if t.got != nil {
		t.got.Write(frame) // of two sites, as only one other sends
	}
	return frame, err
}

// The sites' shards equal the shards of the pooled tables, except for the rounding of features.
func TestLikePooled(t *testing.T) {
	for _, test := range []struct {
		weight, relation string
		way              dataset.Direction
		columns          string
	}{{"", "", "", ""}, {"weight", "", "", ""}, {"", "relation", "", ""}, {"weight", "relation", "", ""},
		{"", "", "", "relation"}, {"weight", "", "in", "relation"}, {"", "relation", "in", ""}, {"", "relation", "out",
			""}, {"", "", "out", "relation"}, {"", "", "both", ""}, {"weight", "relation", "both", ""}} {
		dir := tables(t)
		pooled := dataset.ImportConfig{Name: "all", Nodes: filepath.Join(dir, "pooled.csv"),
			Edges: filepath.Join(dir, "pooled-edges.csv"), Label: "outcome", Split: "split", Site: "site",
			Weight: test.weight, Relation: test.relation, Directed: test.way}
		if test.columns != "" {
			pooled.EdgeColumns = []string{test.columns}
		}
		g, err := dataset.Import(pooled)
		if err != nil {
			t.Fatal(err)
		}
		want, err := partition.Partition(g, partition.ByColumn{}, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		configs := []entrant{config(dir, 0, test.weight, test.relation), config(dir, 1, test.weight, test.relation),
			config(dir, 2, test.weight, test.relation)}
		for k := range configs {
			configs[k].tables.Directed, configs[k].tables.EdgeColumns = test.way, pooled.EdgeColumns
		}
		dirs, errs := assemble(t.Context(), t, configs)
		got := readParts(t, dirs, errs)
		sameEdgeRows(t, got, want, g)
		if err := shard.Consistent(got); err != nil {
			t.Error(err)
		}
		for r, s := range got {
			w := want[r]
			if s.Owned != w.Owned || !slices.Equal(s.Global, w.Global) || !slices.Equal(s.HaloPtr, w.HaloPtr) ||
				!slices.Equal(s.Split, w.Split) || !slices.Equal(s.IDs, w.IDs) ||
				!slices.Equal(s.Labels.Class, w.Labels.Class) || s.Nodes != w.Nodes {
				t.Errorf("%+v: part %d differs", test, r)
			}
			if !same(&s.Adj, &w.Adj) {
				t.Errorf("%+v: part %d has other edges", test, r)
			}
			if !slices.Equal(s.Typed.Names, w.Typed.Names) || !same(&s.Typed.Adj, &w.Typed.Adj) {
				t.Errorf("%+v: part %d has other relations: %q, pooled %q", test, r, s.Typed.Names, w.Typed.Names)
			}
			for q := range s.Boundary {
				if !slices.Equal(s.Boundary[q], w.Boundary[q]) {
					t.Errorf("part %d has other boundary nodes towards %d", r, q)
				}
			}
			if s.X.Dense.Cols != w.X.Dense.Cols || s.X.Dense.Cols == 0 {
				t.Fatalf("part %d has %d columns of features, pooled %d", r, s.X.Dense.Cols, w.X.Dense.Cols)
			}
			for k, v := range s.X.Dense.Data {
				if math.Abs(float64(v-w.X.Dense.Data[k])) > 1e-4 {
					t.Errorf("part %d: feature %d is %v, pooled %v", r, k, v, w.X.Dense.Data[k])
					break
				}
			}
			if string(s.Encoding) != string(got[0].Encoding) {
				t.Errorf("part %d has another encoding: %s", r, s.Encoding)
			}
		}
	}
}

// TestSpellingsAcrossSites: classes and categories in another spelling count as those of the other sites, and so do
// names of whole numbers with .0. Other spellings of a name are refused, with the cause.
func TestSpellingsAcrossSites(t *testing.T) {
	meet := func(spoil func(name, text string) string) ([]*shard.Shard, []error) {
		dir := tables(t)
		for _, name := range append([]string{"north-edges", "south-edges", "west-edges"}, sites...) {
			b, err := os.ReadFile(filepath.Join(dir, name+".csv"))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, name, spoil(name, string(b)))
		}
		var configs []entrant
		for r := range sites {
			configs = append(configs, config(dir, r, "", ""))
		}
		dirs, errs := assemble(t.Context(), t, configs)
		if errors.Join(errs...) != nil {
			return nil, errs
		}
		return readParts(t, dirs, errs), nil
	}
	numbers := regexp.MustCompile(`\bn(\d+)\b`)
	want, _ := meet(func(_, text string) string { return numbers.ReplaceAllString(text, "$1") })
	got, errs := meet(func(name, text string) string {
		if name == "south-edges" {
			return numbers.ReplaceAllString(text, "$1.0")
		}
		text = numbers.ReplaceAllString(text, "$1")
		if name == "south" {
			text = strings.NewReplacer(",yes,", ",Yes ,", ",no,", ",\"'no'\",", ",a,", ", A,", ",b,", ",ｂ,").
				Replace(text)
		}
		return text
	})
	if errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	for r, s := range got {
		if w := want[r]; !slices.Equal(s.Labels.Names, w.Labels.Names) ||
			!slices.Equal(s.Labels.Class, w.Labels.Class) ||
			!slices.Equal(s.X.Dense.Data, w.X.Dense.Data) || !same(&s.Adj, &w.Adj) {
			t.Errorf("%s: part with classes %q, must be as if all sites wrote alike", sites[r], s.Labels.Names)
		}
	}
	_, errs = meet(func(name, text string) string {
		if strings.HasPrefix(name, "south") {
			text = numbers.ReplaceAllString(text, "N$1")
		}
		return text
	})
	graphtest.Refused(t, errs[0], "south has no node \"n", ", but one whose name differs by case, zeros")
	_, errs = meet(func(name, text string) string {
		if name == "south" {
			text = strings.Replace(text, "age", "Age", 1)
		}
		return text
	})
	graphtest.Refused(t, errors.Join(errs...), `south has no column "age", which north has (south has "Age")`)
}

// sameEdgeRows fails unless the edges of the parts have the same columns as in the whole graph g, and an edge across
// sites has one number at both.
func sameEdgeRows(t *testing.T, parts, want []*shard.Shard, g *graph.Graph) {
	t.Helper()
	rows := map[int64][]float32{}
	for r, s := range parts {
		w := want[r]
		for k, adj := range []*graph.CSR{&s.Adj, &s.Typed.Adj} {
			of := []*graph.CSR{&w.Adj, &w.Typed.Adj}[k]
			if len(adj.Edge) != len(of.Edge) {
				t.Fatalf("part %d has %d edges with rows, must have %d", r, len(adj.Edge), len(of.Edge))
			}
			for e, at := range adj.Edge {
				a, b := s.EdgeX.Row(int(at)), w.EdgeX.Row(int(of.Edge[e]))
				if !slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-5 }) {
					t.Fatalf("part %d: edge %d has columns %v, pooled %v", r, e, a, b)
				}
			}
		}
		for k, number := range s.EdgeGlobal {
			if row := rows[number]; row != nil && !slices.Equal(row, s.EdgeX.Row(k)) {
				t.Errorf("edge %d has columns %v at one site and %v at another", number, row, s.EdgeX.Row(k))
			}
			rows[number] = s.EdgeX.Row(k)
		}
	}
	if len(rows) != g.EdgeX.Rows {
		t.Errorf("there are %d edges with columns, pooled %d", len(rows), g.EdgeX.Rows)
	}
}

func same(a, b *graph.CSR) bool {
	return a.NumDst == b.NumDst && a.NumSrc == b.NumSrc && slices.Equal(a.RowPtr, b.RowPtr) &&
		slices.Equal(a.Col, b.Col) && slices.Equal(a.Weight, b.Weight)
}

// readParts reads what each site wrote.
func readParts(t *testing.T, dirs []string, errs []error) (parts []*shard.Shard) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
		s, c, err := shard.ReadShard(filepath.Join(dirs[r], fmt.Sprintf("part-%d", r)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		parts = append(parts, s)
	}
	return parts
}

// A fault at one site ends the meeting at all sites, and leaves nothing behind.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		spoil  func(t *testing.T, dir string, c []entrant)
		rank   int // the site that gets the details
		want   string
		others string // the error at the others
	}{
		{"no such node", func(t *testing.T, dir string, _ []entrant) {
			put(t, dir, "north-edges", "source,source site,target,target site,weight\nn1,,n2,,1\nn3,,nobody,south,1\n")
		}, 0, `north-edges.csv: line 3: south has no node "nobody"`, "north"},
		{"a name too many", func(t *testing.T, dir string, c []entrant) {
			put(t, dir, "north-edges",
				"source,source site,target,target site,weight\nn1,,n45,south,1\nn3,,nobody,south,1\n")
			c[1].Asked = func(site string, names, unknown int) error {
				if site == "north" && names == 2 && unknown == 1 {
					return errors.New("north tries names")
				}
				return nil
			}
		}, 1, "north tries names", "south"},
		{"no such site", func(t *testing.T, dir string, _ []entrant) {
			put(t, dir, "south-edges", "source,source site,target,target site,weight\nn41,,n2,east,1\n")
		}, 1, `south-edges.csv: line 2: site must be one of ["north" "south" "west"] (got "east")`, "south"},
		{"the file is gone", func(t *testing.T, dir string, c []entrant) {
			c[1].opened = func() { os.Remove(filepath.Join(dir, "south.csv")) }
		}, 1, "south.csv", "south"},
		{"relations here, none there",
			func(t *testing.T, dir string, c []entrant) { c[1].tables.Relation = "relation" }, 0,
			`the column of the relations must have one name at all sites (got "" at north and "relation" at south)`,
			"relations"},
		{"a column less", func(t *testing.T, dir string, c []entrant) {
			c[2].tables.Edges = ""
			put(t, dir, "west", "id,site,age,height,outcome,split\nn70,west,1,1,yes,train\n")
		}, 0, `west has no column "ward"`, "west has no column"},
		{"numbers here, texts there", func(t *testing.T, dir string, c []entrant) {
			c[2].tables.Edges = ""
			put(t, dir, "west", node+"n70,west,old,1,a,yes,train\nn71,west,young,1,a,no,val\nn72,west,old,1,a,no,val\n")
		}, 0, `column "age" is numeric at north and categorical at west`, "column \"age\" is numeric at north"},
		{"numbers of another size", func(t *testing.T, dir string, c []entrant) {
			c[2].tables.Edges = ""
			put(t, dir, "west", node+"n70,west,1e25,1,a,yes,train\n")
		}, 2, "column age must have numbers near the numbers of the other sites (their mean is 1e+25 here and",
			"column age must"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := tables(t)
			configs := []entrant{config(dir, 0, "", ""), config(dir, 1, "", ""), config(dir, 2, "", "")}
			test.spoil(t, dir, configs)
			dirs, errs := assemble(t.Context(), t, configs)
			for r, err := range errs {
				want := test.others
				if r == test.rank {
					want = test.want
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %s", sites[r], err, want)
				}
				if r != test.rank && strings.Contains(fmt.Sprint(err), "nobody") {
					t.Errorf("%s is told a name: %v", sites[r], err)
				}
				for _, left := range []string{dirs[r], dirs[r] + ".incomplete"} {
					if _, err := os.Lstat(left); err == nil {
						t.Errorf("%s is left", left)
					}
				}
			}
		})
	}
}

// A site's own faults are found before it meets the others.
func TestOwnFaults(t *testing.T) {
	for _, test := range []struct{ file, text, want string }{
		{"south-edges", "source,source site,target,target site,weight\nn1,north,n2,west,1\n",
			"south-edges.csv: line 2, column target: one end of the edge must be at south"},
		{"south-edges", "source,source site,target,target site,weight\nn1,,n2,west,1\n",
			"south-edges.csv: line 2, column source: node must be a name in"},
		{"south", node + "n70,south,1,1,a,yes,train\nn71,south,123456789012345678901234567890,1,a,no,val\n",
			"south.csv: line 3, column age: must be a number whose square can be summed over the sites " +
				"(got 1.2345678901234568e+29)"},
		{"south", node + "n70,south,1,1,a,yes,train\nn71,north,1,1,a,no,val\n",
			`south.csv: column site: node "n71" must be of "south", whose table it is (got "north")`},
	} {
		dir := tables(t)
		put(t, dir, test.file, test.text)
		if test.file == "south" {
			put(t, dir, "south-edges", "source,source site,target,target site,weight\n")
		}
		_, err := OpenSite(config(dir, 1, "", "").tables)
		graphtest.Refused(t, err, test.want)
	}
}

// A peer's bytes never make a site panic or take memory for more than came.
func FuzzMessages(f *testing.F) {
	f.Add(encodeNames([]string{"a", "", "long name"}))
	plain, typed := &dataset.Encoding{}, &dataset.Encoding{Relations: []string{"knows", "refers"}}
	wide := &dataset.Encoding{Directed: dataset.Into, EdgeColumns: []table.Column{{Name: "days", Kind: table.Numeric}}}
	f.Add((&ends{here: []int32{1}, there: []int32{2}, weight: []float32{3}}).encode(plain))
	f.Add((&ends{here: []int32{1}, there: []int32{2}, weight: []float32{3}, kind: []int32{3}}).encode(typed))
	f.Add((&ends{here: []int32{1}, there: []int32{2}, weight: []float32{3}, kind: []int32{1},
		x: []float32{4}}).encode(wide))
	text, err := schema{Encoding: dataset.Encoding{Columns: []table.Column{{Name: "a", Kind: table.Numeric}}},
		Marks: []mark{{Empty: true}}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	several := schema{Types: []typeSchema{{"drug",
		schema{Encoding: dataset.Encoding{ID: "id"}}}}, Tables: []relationSchema{{"drug", "with", "drug",
		dataset.Encoding{ID: "id", Source: "source", Target: "target"}, columnSchema{
			Columns: []table.Column{{Name: "days", Kind: table.Numeric}}, Marks: []mark{{}}}}}}
	if text, err = several.encode(); err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		if names, err := decodeNames(b); err == nil && string(encodeNames(names)) != string(b) {
			// A length may be written in more bytes than it needs, and is still read.
			if again, err := decodeNames(encodeNames(names)); err != nil || !slices.Equal(again, names) {
				t.Errorf("%q, then %q, %v", names, again, err)
			}
		}
		for _, by := range []*dataset.Encoding{plain, typed, wide} {
			var e ends
			if e.decode(b, 10, 20, by) != nil {
				continue
			}
			// What the other site would send back is the same, except that an edge ends at its other end.
			var back ends
			if err := back.decode(e.encode(by), 20, 10, by); err != nil || !slices.Equal(back.here, e.there) ||
				!slices.Equal(back.there, e.here) {
				t.Errorf("%v, then %v, %v", e, back, err)
			}
			for k, r := range e.kind {
				if back.kind[k] != by.Reverse(r) {
					t.Errorf("relation %d, then %d", r, back.kind[k])
				}
			}
		}
		if s, err := parseSchema(b); err == nil {
			if e, err := agreeAll([]string{"a", "b"}, []schema{s, s}); err == nil {
				for _, of := range (&Tables{}).columns(e) {
					for _, c := range of.columns {
						if c.Kind == table.Categorical && len(c.Values) == 0 {
							t.Errorf("column %q has no categories", c.Name)
						}
					}
				}
			}
		}
	})
}
