package graph

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
)

var nan = float32(math.NaN())

// TestNumbers: labels that are numbers know which nodes have one, and are standardised and put back.
func TestNumbers(t *testing.T) {
	l := Labels{Classes: 2, Values: []float32{1, 10, nan, nan, 3, 50}, Names: []string{"price", "days"}}
	if err := l.Valid(3); err != nil || l.Kind() != Numbers || l.Kind().String() != "regression" || l.Multi() {
		t.Fatal(l.Kind(), err)
	}
	if l.Labelled() != 2 || l.Has(1) || !l.Has(2) || !slices.Equal(l.Count(), []float64{2, 2}) {
		t.Errorf("%d labelled, %v by column", l.Labelled(), l.Count())
	}
	units := []Unit{{Mean: 2, Deviation: 0.5}, {Mean: 20, Deviation: 10}}
	s := l.Standardised(units)
	if want := []float32{-2, -1, 2, 3}; !slices.Equal(append(s.Values[:2:2], s.Values[4:]...), want) || s.Has(1) ||
		l.Units != nil {
		t.Errorf("standardised: %v, want %v", s.Values, want)
	}
	if rows := s.Rows([]int32{1, 2}); !slices.Equal(rows.Data, []float32{0, 0, 0, 0, 2, 3}) {
		t.Errorf("rows %v", rows.Data)
	}
	if back := Restored(mat.View(2, 2, []float32{-2, -1, 2, 3}), units); !slices.Equal(back.Data,
		[]float32{1, 10, 3, 50}) {
		t.Errorf("put back: %v", back.Data)
	}
	if one := s.Select([]int32{2}); !slices.Equal(one.Values, []float32{2, 3}) || len(one.Units) != 2 {
		t.Errorf("selected: %+v", one)
	}
	for text, bad := range map[string]Labels{
		"target of node 0 in column 1 must be a finite number, or NaN in all columns": {Classes: 2,
			Values: []float32{1, nan, 0, 0, 0, 0}},
		"target of node 1 in column 0 must be a finite number": {Classes: 1,
			Values: []float32{1, float32(math.Inf(1)), 0}},
		"2 targets for 3 nodes of 1 numbers": {Classes: 1, Values: []float32{1, 2}},
		"labels must be of one kind":         {Classes: 1, Values: []float32{1, 2, 3}, Class: []int32{0, 0, 0}},
	} {
		if err := bad.Valid(3); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, must say %q", err, text)
		}
	}
	for k, name := range []string{"single", "multi", "regression"} {
		if got, ok := KindNamed(name); !ok || got != TargetKind(k) || (Labels{Classes: 2}).None(got, 3).Kind() != got ||
			got != Several && (Labels{Classes: 2}).None(got, 3).Labelled() != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
