package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
	"github.com/heddle-gnn/heddle/train/figures"
)

// mixed are figures of several classes; each is sometimes taken for the next one.
func mixed(classes int) figures.Set {
	s := set(0.8)
	s.Confusion, s.Classes = nil, nil
	for k := range classes {
		row := make([]int64, classes)
		row[k], row[(k+1)%classes] = 80, int64(k)
		s.Confusion = append(s.Confusion, row)
		s.Classes = append(s.Classes, figures.Class{Name: fmt.Sprint("a class of illness ", k), Labelled: 80,
			Predicted: 80, Precision: 0.8, Recall: 0.8, F1: 0.8})
	}
	return s
}

// Of more classes than a matrix can show the page has the most frequent mistakes.
func TestManyClasses(t *testing.T) {
	r := sample(t)
	r.Result.Figures.Test = mixed(20)
	if html := written(t, r); !strings.Contains(html, `class="confusion many"`) ||
		strings.Contains(html, "Most frequent mistakes") {
		t.Error("20 classes must have a matrix")
	}
	r.Result.Figures.Test = mixed(21)
	if html := written(t, r); strings.Contains(html, `class="confusion`) ||
		!strings.Contains(html, `aria-label="Most frequent mistakes"`) || !strings.Contains(html,
		"20 nodes of class a class of illness 20 are called a class of illness 0, of 210 mistakes") {
		t.Error("21 classes must have a list of mistakes")
	}
}

// partitioned returns the page of a partition.
func partitioned(t *testing.T, m *shard.Manifest) string {
	t.Helper()
	var b strings.Builder
	if err := WritePartition(&b, m, []external.PhaseTimes{{Phase: "read", Edges: 4e6, Seconds: 2}}, 1e9); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A partition's page has its picture and its tables.
func TestWritePartition(t *testing.T) {
	html := partitioned(t,
		shard.Describe(sample(t).Shards, shard.Meta{Policy: "by-column", Sites: []string{"north", "south"}}))
	for _, want := range []string{"2 parts by by-column", "<svg", "1 south", "1.00 GB", "2.0",
		"Rows that one part sends"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(html, "#-") {
		t.Error("a colour of the page is not a colour")
	}
}
