package closed

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
)

// TestLeads: the lead of a class is its column less the largest other one, and what training nodes lead by more than
// validation nodes counts over the classes that validate. Less is not added.
func TestLeads(t *testing.T) {
	z := mat.View(5, 3, []float32{5, 1, 2, 0, 4, 1, 9, 0, 0, 3, 1, 2, 1, 2, 5})
	class := []int32{0, 1, -1, 0, 2}
	train, n := Leads(z, class, []int32{0, 1, 2, 4})
	val, m := Leads(z, class, []int32{3, 2})
	if !slices.Equal(train, []float32{3, 3, 3}) || !slices.Equal(n, []int64{1, 1, 1}) ||
		!slices.Equal(val, []float32{1, 0, 0}) || !slices.Equal(m, []int64{1, 0, 0}) {
		t.Fatalf("leads are %v of %v training nodes and %v of %v others", train, n, val, m)
	}
	if lead := TrainLead(append(train, val...), append(n, m...)); math.Abs(float64(lead)-2) > leadGrid {
		t.Errorf("training nodes lead by %g more, must be 2", lead)
	}
	if lead := TrainLead(append(val, train...), append(m, n...)); lead != 0 {
		t.Errorf("training nodes that lead less must lead by 0 (got %g)", lead)
	}
	if lead := TrainLead(make([]float32, 6), make([]int64, 6)); lead != 0 {
		t.Errorf("no nodes must lead by 0 (got %g)", lead)
	}
}

// TestLeadOfTrainingNodes: it is taken out of the column of a training node's class, and not of a soft label.
func TestLeadOfTrainingNodes(t *testing.T) {
	m := New(Layout{Rounds: 2, LeaveOut: true, TrainLead: true}, 4, 2, 1)
	for c := range 2 {
		m.Counts[1].Value.Set(0, c, 10)
	}
	m.SetLead(1, 0.5)
	if a, b, c := m.Lead(1, 0, 1), m.Lead(1, 0, math.Nextafter32(1, 0)), m.Lead(0, 0, 1); a != 0.5 || b != 0 || c != 0 {
		t.Errorf("leads must be 0.5 of a training node, and 0 of a soft label and in the first round "+
			"(got %g, %g and %g)", a, b, c)
	}
	p := make([]float32, 2)
	softmax(p, []float32{100, -100})
	if p[0] >= 1 {
		t.Errorf("a soft label must be less than 1 (got %g)", p[0])
	}
}
