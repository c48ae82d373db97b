package results

import (
	"errors"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/plan"
)

// Every plan of the grid is sound and occurs once, and the default is among them.
func TestGridIsSound(t *testing.T) {
	for _, columns := range []int{10, 176, 745, 61278} {
		seen := map[string]bool{}
		for _, f := range gridOf(columns) {
			r, err := f.row("cora")
			if err != nil {
				t.Fatal(err)
			}
			changes := r.grid
			if changes == nil {
				changes = each(func(*experiment) {})
			}
			if len(changes) != len(f.flags) {
				t.Errorf("%s has %d settings, %d variants", f.name, len(f.flags), len(changes))
			}
			for i, change := range changes {
				e := r.experiment
				change(&e)
				if err := errors.Join(e.Validate(), e.Only("train")); err != nil {
					t.Errorf("%s, %s: %v", f.name, e.setting(), err)
				}
				if flags := f.flags[i]; seen[flags] || e.Encoder.Kind == "raw" && columns >= 128 && f.name != paper {
					t.Errorf("%d columns, %s: %q must occur once, and raw with few columns only", columns, f.name, flags)
				}
				seen[f.flags[i]] = true
			}
		}
		if !seen["--method=class-means"] || len(seen) < 20 {
			t.Errorf("%d columns: %d plans, class-means among them: %t", columns, len(seen), seen["--method=class-means"])
		}
	}
}

func TestCombine(t *testing.T) {
	got := combine([]string{"a"}, []string{"", "b"}, []string{"c", "d"})
	if want := []string{"a c", "a d", "a b c", "a b d"}; !slices.Equal(got, want) {
		t.Errorf("must be %q (got %q)", want, got)
	}
}

// The default is compared with the best mean test figure of the others, refused ones left out.
func TestCompared(t *testing.T) {
	made := func(name string, test, val float64, bytes int64) choice {
		r := record{Test: measure(test), Val: measure(val), Halo: bytes}
		return choice{summary: summary{experiment{Name: name}, []record{r}}}
	}
	ours := made(plan.ClassMeans, 0.80, 0.79, 10)
	all := []choice{ours, made("a", 0.803, 0.70, 50), made("b", 0.79, 0.75, 20),
		{summary: summary{experiment{Name: "c"}, nil}, refused: "no"}}
	verdict, near := compared(all)
	want := "-0.30 points to a, +1.00 to what validation prefers (b); bytes of the best: 5.0 times"
	if !near || verdict != want {
		t.Errorf("got %q, near %t", verdict, near)
	}
	all[1].runs[0].Test = 0.806
	if _, near := compared(all); near {
		t.Error("0.6 points are not near")
	}
	if verdict, _ := compared(all[1:]); verdict != "" {
		t.Errorf("nothing can be said without the default (got %q)", verdict)
	}
}
