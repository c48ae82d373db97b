package classmeans

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/mat"
)

// TestByHand: the worked example of docs/explanation/training.md has the numbers that two sites compute.
func TestByHand(t *testing.T) {
	adj, err := graph.FromEdges(6, []int32{0, 1, 2, 3, 4, 5}, []int32{1, 2, 3, 4, 5, 0}, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	g := &graph.Graph{Name: "ring", Adj: adj, Labels: graph.Labels{Classes: 2, Class: []int32{0, 0, 1, 0, 1, 1}},
		Split: []graph.Split{graph.Train, graph.Val, graph.Train, graph.Train, graph.Val, graph.Train},
		X:     graph.Features{Dense: mat.View(6, 2, []float32{4, 0, 3, 2, 0, 4, 2, 1, 2, 3, 1, 2})}}
	shards, err := partition.Partition(g, partition.Contiguous{}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := plain(g)
	c.RowNorm, c.Target, c.Hops, c.ClassRounds, c.MinClass, c.Random = "none", "labels", 1, 1, 1, 0
	r := mustRun(t, c, shards, options{setup: func(_ int, t *Trainer) { t.KeepHidden = true }})
	page, err := os.ReadFile("../docs/explanation/training.md")
	if err != nil {
		t.Fatal(err)
	}
	for k, one := range r.trainers {
		form := one.Model().Closed
		// The page leaves out D⁻¹, which is 1/4, and the division by a column's deviation.
		unit := func(column int) float64 { return 4 / float64(form.Counts[0].Value.At(1, column)) }
		for i := range 3 {
			x, z := shards[k].X.Dense.Row(i), one.Rows.Row(i)
			name := fmt.Sprintf("| %c%d |", "ab"[k], i+1)
			_, rest, _ := strings.Cut(string(page), name)
			line, _, _ := strings.Cut(rest, "\n")
			var class string
			var of [6]float64 // columns, row and mean, as the page has them
			n, err := fmt.Sscanf(strings.NewReplacer("|", "", ",", "", "−", "-").Replace(line), "%g %g %s %g %g %g %g",
				&of[0], &of[1], &class, &of[2], &of[3], &of[4], &of[5])
			if n != 7 || err != nil {
				t.Fatalf("the page must have a line %s of 7 entries (got %q): %v", name, line, err)
			}
			for j := range 2 {
				row, hop := unit(j)*float64(z[j]), unit(j)*float64(z[2+j])
				if of[j] != float64(x[j]) || math.Abs(of[2+j]-row) > 1e-4 || math.Abs(of[4+j]-hop) > 0.006 {
					t.Errorf("%s column %d must be %g, %.2f and %.2f (got %g, %g and %g)",
						name, j, x[j], row, hop, of[j], of[2+j], of[4+j])
				}
			}
		}
		if y := one.Logits().Row(1); (y[0] > y[1]) != (k == 0) {
			t.Errorf("%c2 must be %s (got logits %v)", "ab"[k], []string{"red", "blue"}[k], y)
		}
	}
}
