package align

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// visits are tables of three sites that write the same days in their own ways, and how each is read.
func visits(t *testing.T, order [3]string, form [3]string) (configs []entrant) {
	t.Helper()
	dir := t.TempDir()
	for q, name := range sites {
		nodes, edges := "id,day,outcome\n", "source,target,at\n"
		for i := range 20 {
			d, m := 1+i%12, 1+(i+3)%12
			if order[q] == "" && i == 0 {
				d = 25 // reveals the order
			} else if i == 0 {
				d = 5
			}
			day := fmt.Sprintf(map[string]string{"dmy": "%02d/%02d/2024", "mdy": "%02[2]d/%02[1]d/2024",
				"iso": "2024-%02[2]d-%02[1]d"}[form[q]], d, m)
			nodes += fmt.Sprintf("%s%d,%s,%s\n", name, i, day, []string{"ill", "well"}[i%2])
			edges += fmt.Sprintf("%s%d,%[1]s%[3]d,NA\n", name, i, (i+1)%20)
		}
		put(t, dir, name, nodes)
		put(t, dir, name+"-e", edges)
		c := dataset.ImportConfig{Name: "all", Nodes: filepath.Join(dir, name+".csv"),
			Edges: filepath.Join(dir, name+"-e.csv"),
			Label: "outcome", Seed: 1}
		if order[q] != "" {
			c.Date = []string{"day:" + order[q]}
		}
		configs = append(configs, entrant{Config: Config{Sites: sites}, tables: SiteConfig{Here: name, MinTexts: 1,
			Sites: sites, TargetSite: "at", ImportConfig: c}})
	}
	return configs
}

// meet returns the parts that assemble makes.
func meet(t *testing.T, configs []entrant) []*shard.Shard {
	t.Helper()
	dirs, errs := assemble(t.Context(), t, configs)
	return readParts(t, dirs, errs)
}

// Sites may write dates in other orders: each reads its own, found or given. NA in a column of sites is this one.
func TestDatesOfEachSite(t *testing.T) {
	same := meet(t, visits(t, [3]string{}, [3]string{"iso", "iso", "iso"}))
	mixed := meet(t, visits(t, [3]string{}, [3]string{"dmy", "mdy", "iso"}))
	given := meet(t, visits(t, [3]string{"dmy", "mdy", "mdy"}, [3]string{"dmy", "mdy", "mdy"}))
	for q := range sites {
		for i := 1; i < 20; i++ { // the first is not the same day
			for j := range 3 {
				want := row(same[q].X.Sparse == nil, same[q], i, 2+j)
				for _, s := range []*shard.Shard{mixed[q], given[q]} {
					if got := row(s.X.Sparse == nil, s, i, 2+j); got != want {
						t.Fatalf("site %s, node %d: %v, want %v", sites[q], i, got, want)
					}
				}
			}
		}
		if same[q].Adj.NumEdges() != 40 {
			t.Errorf("%d edges, want those to own nodes", same[q].Adj.NumEdges())
		}
	}
	// Without a split column, tables that are read as a model reads them are split by default.
	configs := visits(t, [3]string{}, [3]string{"iso", "iso", "iso"})
	for q := range configs {
		c := &configs[q].tables.ImportConfig
		*c = dataset.ImportConfig{Name: "all", Nodes: c.Nodes, Edges: c.Edges, Seed: 1, Like: same[0].Encoding}
	}
	for q, s := range meet(t, configs) {
		if !slices.Equal(s.Split, same[q].Split) || !slices.Contains(s.Split, graph.Val) ||
			!slices.Contains(s.Split, graph.Test) {
			t.Errorf("site %s: splits %v, want %v", sites[q], s.Split, same[q].Split)
		}
	}
}
