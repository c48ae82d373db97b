package runs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
	edges "github.com/heddle-gnn/heddle/internal/train/links"
)

// TestTimesOfTables: links of imported tables are split by the dates that their cells have, of each relation by its own
// column.
func TestTimesOfTables(t *testing.T) {
	dir := t.TempDir()
	at := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	patients := at("patients.csv", "id,age\na,50\nb,60\nc,70\n")
	takes := at("takes.csv", "patient,drug,dose,since\na,x,1,2023-01-31\na,y,2,2023-06-30\nb,x,3,2023-07-01\n"+
		"b,y,4,2024-01-01\nc,x,5,\n")
	seen := at("seen.csv", "patient,doctor,since\na,m,1999-01-01\nb,m,2023-08-01\nc,m,2030-01-01\n")
	g, _, err := typed.Config{
		Nodes: []string{"patient=" + patients, "drug=" + at("drugs.csv", "id\nx\ny\n"),
			"doctor=" + at("doctors.csv", "id\nm\n")},
		Edges:  []string{"patient-takes-drug=" + takes, "patient-seen-doctor=" + seen},
		Tables: dataset.ImportConfig{EdgeColumns: []string{"dose", "since"}, Seed: 1},
	}.Read()
	if err != nil {
		t.Fatal(err)
	}
	rule := edges.Rule{Seed: 1}
	if rule.Time, err = edges.ParseTime("since:2023-06-30:2024-01-01"); err != nil {
		t.Fatal(err)
	}
	s := shard.Whole(g)
	c, err := rule.Cut(s)
	if err != nil {
		t.Fatal(err)
	}
	must := map[string]graph.Split{"patient/a drug/x": graph.Train, "patient/a drug/y": graph.Val,
		"patient/b drug/x": graph.Val, "patient/b drug/y": graph.Test, "patient/c drug/x": graph.Train,
		"patient/a doctor/m": graph.Train, "patient/b doctor/m": graph.Val, "patient/c doctor/m": graph.Test}
	if len(c.Links) != 2*len(must) {
		t.Errorf("there are %d ends of links, must be two of each of %d", len(c.Links), len(must))
	}
	for _, l := range c.Links {
		u, v := s.IDs[l.At], s.IDs[l.Other]
		if s.Types.Of[l.At] < s.Types.Of[l.Other] { // doctors, drugs and patients
			u, v = v, u
		}
		if split, is := must[u+" "+v]; !is || split != l.Split {
			t.Errorf("link %s – %s is of split %d, must be %d", u, v, l.Split, split)
		}
	}
	// not of both relations, not dates, not of edges
	for _, text := range []string{"dose:1:3", "since:1:3", "age:50:60"} {
		if rule.Time, err = edges.ParseTime(text); err != nil {
			t.Fatal(err)
		}
		if _, err := rule.Cut(s); err == nil {
			t.Errorf("link_time %s is accepted, must be refused", text)
		}
	}
}
