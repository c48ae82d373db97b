package results

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// The standard error comes from the differences run by run, not from the two spreads.
func TestDifference(t *testing.T) {
	of := func(tests ...float64) (s summary) {
		for _, x := range tests {
			s.runs = append(s.runs, record{Test: measure(x)})
		}
		return s
	}
	mean, off := difference(of(0.50, 0.60, 0.73, 0.81), of(0.48, 0.59, 0.70, 0.79), testOf)
	if math.Abs(mean-2) > 1e-9 || math.Abs(off-math.Sqrt(2.0/3)/2) > 1e-9 {
		t.Errorf("must be 2 ± %.4f (got %.4f ± %.4f)", math.Sqrt(2.0/3)/2, mean, off)
	}
}

// The same sites have the data, whether they train together, separately or at one place. Separate and pooled training
// send nothing; few labels are few for all.
func TestPayments(t *testing.T) {
	b, err := openBook("", filepath.Dir(testenv.DataDir(t, "cora")), 2)
	if err != nil {
		t.Fatal(err)
	}
	e := quick()
	e.Labels = 1
	alone, pooled, skewed := e, e, e
	alone.Alone, pooled.Pooled, skewed.Skew = true, true, dirichlet03
	var sums []summary
	for _, one := range []experiment{e, alone, pooled, skewed} {
		s, err := b.run(t.Context(), one, 1)
		if why := refusal(""); errors.As(err, &why) {
			t.Fatalf("refused: %v", why)
		} else if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, s)
	}
	if sums[0].megabytes() == 0 || sums[1].megabytes() != 0 || sums[2].runs[0].Halo != 0 || sums[3].megabytes() == 0 {
		t.Errorf("MB together %.2f, alone %.2f, pooled %.2f, skewed %.2f", sums[0].megabytes(), sums[1].megabytes(),
			sums[2].megabytes(), sums[3].megabytes())
	}
	if len(b.done) != 4 {
		t.Errorf("4 different runs must be kept (got %d)", len(b.done))
	}
	full, err := b.run(t.Context(), func() experiment { e.Labels = 0; return e }(), 1)
	if few, all := sums[0].mean(testOf), full.mean(testOf); err != nil || few > all-0.02 {
		t.Errorf("one label a class and site must give less than all: %.3f for %.3f (%v)", few, all, err)
	}
}
