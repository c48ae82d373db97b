package align

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/rng"
)

// clinics writes tables of three types: patients are at north and south, drugs at west, doctors at north and west.
// pooled-TYPE has the nodes of all sites.
func clinics(t *testing.T) (dir string) {
	t.Helper()
	files := map[string]*strings.Builder{}
	key := rng.New(5)
	draw := func(what string, i, n int) int { return int(key.FoldString(what).Uint64(uint64(i)) % uint64(n)) }
	write := func(who, table, head, row string) {
		for _, name := range []string{who, "pooled"} {
			name += "-" + table
			if files[name] == nil {
				files[name] = new(strings.Builder)
				if name == "pooled-"+table {
					head = strings.NewReplacer(",source at", "", ",target at", "").Replace(head)
				}
				files[name].WriteString(head)
			}
		}
		files[who+"-"+table].WriteString(row)
	}
	of := map[string]string{}
	at := map[string][]string{"patient": {"north", "north", "south"}, "drug": {"west"}, "doctor": {"north", "west"}}
	for _, kind := range []string{"patient", "drug", "doctor"} {
		head := map[string]string{"patient": "id,site,age,ward,outcome,split\n", "drug": "id,site,dose\n",
			"doctor": "id,site\n"}[kind]
		for i := range map[string]int{"patient": 60, "drug": 12, "doctor": 7}[kind] {
			site := at[kind][draw(kind, i, len(at[kind]))]
			if i < len(at[kind]) {
				site = at[kind][i]
			}
			row := fmt.Sprintf("%d,%s", i, site)
			switch kind {
			case "patient":
				row += fmt.Sprintf(",%d,%s,%s,%s", 20+draw("age", i, 60), []string{"a", "b", site}[draw("ward", i, 3)],
					[]string{"ill", "well", ""}[draw("outcome", i, 3)],
					[]string{"train", "val", "test"}[draw("split", i, 3)])
			case "drug":
				row += fmt.Sprintf(",%d.5", draw("dose", i, 40))
			}
			write(site, kind, head, row+"\n")
			of[fmt.Sprint(kind, i)] = site
		}
	}
	for k := range 200 {
		name := []string{"patient-takes-drug", "doctor-treats-patient", "patient-refers-patient"}[k%3]
		parts := strings.Split(name, "-")
		n := map[string]int{"patient": 60, "drug": 12, "doctor": 7}
		i, j := draw("source", k, n[parts[0]]), draw("target", k, n[parts[2]])
		source, target, w := of[fmt.Sprint(parts[0], i)], of[fmt.Sprint(parts[2], j)], 1+draw("weight", k, 4)
		row := func(here string) string {
			name := func(site string) string { return map[bool]string{true: "", false: site}[site == here] }
			return fmt.Sprintf("%d,%s,%d,%s,%d\n", i, name(source), j, name(target), w)
		}
		const head = "source,source at,target,target at,days\n"
		for s, site := range slices.Compact([]string{source, target}) {
			if source == target || draw("listed", k, 3) != s { // at one of the two sites, or at both
				write(site, name, head, row(site))
				fmt.Fprintf(files["pooled-"+name], "%d,%d,%d\n", i, j, w) // without sites
			}
		}
	}
	for _, kind := range []string{"patient", "drug", "doctor"} { // site after site, as the sites number theirs
		for _, site := range sites {
			if b := files[site+"-"+kind]; b != nil {
				_, rows, _ := strings.Cut(b.String(), "\n")
				files["pooled-"+kind].WriteString(rows)
			}
		}
	}
	dir = t.TempDir()
	for name, b := range files {
		put(t, dir, name, b.String())
	}
	return dir
}

// clinicTables are the tables that site has in dir.
func clinicTables(t *testing.T, dir, site string) (nodes, edges []string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, site+"-*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range list {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), site+"-"), ".csv")
		if strings.Contains(name, "-") {
			edges = append(edges, name+"="+file)
		} else {
			nodes = append(nodes, name+"="+file)
		}
	}
	return nodes, edges
}

func clinicConfig(t *testing.T, dir, site string) entrant {
	t.Helper()
	c := entrant{Config: Config{Sites: sites}, tables: SiteConfig{Here: site, MinTexts: 1,
		SourceSite: "source at", TargetSite: "target at",
		ImportConfig: dataset.ImportConfig{Name: "clinics", Site: "site", Weight: "patient-takes-drug.days"}}}
	if site != "west" { // it has no patients
		c.tables.Label, c.tables.Split = "outcome", "patient.split"
	}
	c.tables.NodeTables, c.tables.EdgeTables = clinicTables(t, dir, site)
	return c
}

// TestTypesLikePooled: sites that each lack a type end with the parts of the pooled tables.
func TestTypesLikePooled(t *testing.T) {
	columns := []string{"patient-takes-drug.days", "patient-refers-patient.days:categorical"}
	for _, test := range []struct {
		way           dataset.Direction
		split, weight string
		columns       []string
	}{{"", "patient.split", "patient-takes-drug.days", nil}, {"", "patient.split", "", columns},
		{"in", "patient.split", "", columns}, {"out", "patient.split", "doctor-treats-patient.days", columns},
		{"both", "", "", columns[:1]}} {
		likePooled(t, test.way, dataset.ImportConfig{Name: "clinics", Label: "outcome", Split: test.split, Site: "site",
			Weight: test.weight, Directed: test.way, EdgeColumns: test.columns})
	}
}

func likePooled(t *testing.T, way dataset.Direction, tables dataset.ImportConfig) {
	t.Helper()
	dir := clinics(t)
	if tables.Split == "" {
		tables.SplitTime = "age:40:60"
	}
	c := typed.Config{Tables: tables}
	c.Nodes, c.Edges = clinicTables(t, dir, "pooled")
	g, _, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	want, err := partition.Partition(g, partition.ByColumn{}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var configs []entrant
	for _, site := range sites {
		one := clinicConfig(t, dir, site)
		of := &one.tables
		of.Directed, of.Weight, of.EdgeColumns = way, own(of.EdgeTables, tables.Weight)[0],
			own(of.EdgeTables, tables.EdgeColumns...)
		if site != "west" {
			of.Split, of.SplitTime = tables.Split, tables.SplitTime
		}
		configs = append(configs, one)
	}
	dirs, errs := assemble(t.Context(), t, configs)
	parts := readParts(t, dirs, errs)
	if err := shard.Consistent(parts); err != nil {
		t.Error(err)
	}
	sameEdgeRows(t, parts, want, g)
	for r, s := range parts {
		w := want[r]
		if !slices.Equal(s.IDs, w.IDs) || !slices.Equal(s.HaloPtr, w.HaloPtr) || !slices.Equal(s.Split, w.Split) ||
			!slices.Equal(s.Labels.Class, w.Labels.Class) || !slices.Equal(s.Labels.Names, w.Labels.Names) ||
			s.Halo() == 0 {
			t.Fatalf("part %d differs: %q, pooled %q", r, s.IDs, w.IDs)
		}
		if !same(&s.Adj, &w.Adj) || !slices.Equal(s.Typed.Names, w.Typed.Names) || !same(&s.Typed.Adj, &w.Typed.Adj) ||
			len(s.Typed.Names) == 0 {
			t.Errorf("part %d has other edges: relations %q, pooled %q", r, s.Typed.Names, w.Typed.Names)
		}
		for q := range s.Boundary {
			if !slices.Equal(s.Boundary[q], w.Boundary[q]) {
				t.Errorf("part %d has other boundary nodes towards %d", r, q)
			}
		}
		if !slices.Equal(s.Types.Names, w.Types.Names) || !slices.Equal(s.Types.Of, w.Types.Of) ||
			!slices.Equal(s.Types.Ptr, w.Types.Ptr) {
			t.Errorf("part %d has types %+v, pooled %+v", r, s.Types, w.Types)
		}
		a, b := s.X.Sparse.Dense(), w.X.Sparse.Dense()
		for k, v := range a.Data {
			if math.Abs(float64(v-b.Data[k])) > 1e-5 {
				t.Fatalf("part %d: feature %d is %v, pooled %v", r, k, v, b.Data[k])
			}
		}
		if string(s.Encoding) != string(parts[0].Encoding) || !typed.Encodes(s.Encoding) {
			t.Errorf("part %d has another encoding: %s", r, s.Encoding)
		}
	}
	// The same tables, read like a model of these parts, are the same parts.
	for k := range configs {
		of := &configs[k].tables
		of.ImportConfig = dataset.ImportConfig{Name: "clinics", Site: "site", Like: parts[0].Encoding}
	}
	dirs, errs = assemble(t.Context(), t, configs)
	for r, s := range readParts(t, dirs, errs) {
		if !slices.Equal(s.X.Sparse.Val, parts[r].X.Sparse.Val) || !same(&s.Typed.Adj, &parts[r].Typed.Adj) ||
			!slices.Equal(s.Split, parts[r].Split) {
			t.Errorf("part %d differs where it is read like a model", r)
		}
	}
}

// own returns the columns that belong to these tables, and at least one text.
func own(tables []string, columns ...string) (out []string) {
	for _, text := range columns {
		name, _, _ := strings.Cut(text, ".")
		if slices.ContainsFunc(tables, func(table string) bool { return strings.HasPrefix(table, name+"=") }) {
			out = append(out, text)
		}
	}
	if len(out) == 0 && len(columns) == 1 {
		return []string{""}
	}
	return out
}

// TestTypesRefused: what the sites cannot agree on names them, and a site's own fault is found before it meets.
func TestTypesRefused(t *testing.T) {
	for must, edit := range map[string]func(dir string, c []entrant){
		"all sites must have tables of several types (option nodes TYPE=FILE), or none: " +
			"north and west do not": func(dir string, c []entrant) {
			c[2].tables = SiteConfig{Here: "west", MinTexts: 1,
				ImportConfig: dataset.ImportConfig{Nodes: filepath.Join(dir, "west-drug.csv")}}
		},
		"the column of the weights of patient-takes-drug must have one name at all sites (got \"days\" at north " +
			"and \"\" at south)": func(_ string, c []entrant) {
			c[1].tables.Weight = ""
		},
		"nodes of one type must have labels (got drug at west and patient at north)": func(_ string, c []entrant) {
			c[2].tables.Label = "drug.dose"
		},
		"relation patient-takes-drug must join types that have a table of nodes " +
			"(got \"drug\")": func(_ string, c []entrant) {
			c[2].tables.NodeTables, c[2].tables.EdgeTables = c[2].tables.NodeTables[:1], nil
			c[2].tables.SourceSite, c[2].tables.TargetSite, c[2].tables.Weight = "", "", ""
		},
		`south has a column "blood", which north has not: add it there, or ignore it here (nodes of type patient)`: func(dir string, c []entrant) {
			text, err := os.ReadFile(filepath.Join(dir, "south-patient.csv"))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, "south-patient", strings.NewReplacer("split\n", "split,blood\n", "train\n", "train,1\n",
				"val\n", "val,2\n", "test\n", "test,3\n").Replace(string(text)))
		},
	} {
		dir := clinics(t)
		var configs []entrant
		for _, site := range sites {
			configs = append(configs, clinicConfig(t, dir, site))
		}
		edit(dir, configs)
		_, errs := assemble(t.Context(), t, configs)
		for _, err := range errs {
			graphtest.Refused(t, err, must)
		}
	}
	for must, edit := range map[string]func(c *SiteConfig){
		"column target: node must have the name of its site, as this one has no " +
			"table of its type": func(c *SiteConfig) {
			c.TargetSite, c.EdgeTables = "", c.EdgeTables[2:]
		},
		"column nowhere of the ends' sites must be in a table of edges": func(c *SiteConfig) {
			c.SourceSite = "nowhere"
		},
		"each table of edges is a relation, without a column of relations (got kind)": func(c *SiteConfig) {
			c.Relation = "kind"
		},
		"node \"0\" must be of \"south\", whose table it is (got \"north\")": func(c *SiteConfig) { c.Here = "south" },
	} {
		dir := clinics(t)
		c := clinicConfig(t, dir, "north").tables
		edit(&c)
		_, err := OpenSite(c)
		graphtest.Refused(t, err, must)
	}
}
