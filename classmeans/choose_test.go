package classmeans

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
)

// TestChosen: the best solution counts 1, others less for each node that they have wrong beside it (e^0.3 times
// where few nodes validate, e times where many do), solutions with tiny
// penalties only where one is the best, and of numbers the best alone.
func TestChosen(t *testing.T) {
	penalties := []float64{1e-5, 0.01, 1, 100}
	for _, c := range []struct {
		name   string
		metric eval.Metric
		nodes  float64
		vals   []float64
		counts []float64
	}{
		{"one and two nodes less of 1,000", "accuracy", 1000, []float64{0.5, 0.799, 0.8, 0.798},
			[]float64{0, math.Exp(-0.6), 1, math.Exp(-1.2)}},
		{"one and two nodes less of 10,000", "accuracy", 1e4, []float64{0.5, 0.7999, 0.8, 0.7998},
			[]float64{0, math.Exp(-1), 1, math.Exp(-2)}},
		{"one and two nodes less", "accuracy", 100, []float64{0.5, 0.79, 0.8, 0.78},
			[]float64{0, math.Exp(-0.3), 1, math.Exp(-0.6)}},
		{"a tiny penalty as good", "accuracy", 100, []float64{0.8, 0.8, 0.8, 0.5}, []float64{0, 1, 1, 0}},
		{"a tiny penalty is the best", "accuracy", 100, []float64{0.8, 0.79, 0.5, math.NaN()},
			[]float64{1, math.Exp(-0.3), 0, 0}},
		{"numbers", "mae", 100, []float64{3, 1, 1.001, 2}, []float64{0, 1, 0, 0}},
	} {
		all := make([]candidate, len(c.vals))
		for k := range all {
			all[k].penalty = penalties[k]
		}
		got, err := chosen(c.metric, all, c.vals, c.nodes)
		if err != nil {
			t.Fatal(err)
		}
		val, sum := 0.0, 0.0
		for k, count := range c.counts {
			if math.Abs(got.counts[k]-count) > 2*countGrid {
				t.Errorf("%s: counts are %v, must be %v", c.name, got.counts, c.counts)
			}
			if count > 0 {
				val, sum = val+count*c.vals[k], sum+count
			}
		}
		if math.Abs(got.val-val/sum) > 1e-3 {
			t.Errorf("%s: validation is %g, must be %g", c.name, got.val, val/sum)
		}
	}
	if _, err := chosen("accuracy", make([]candidate, 1), []float64{math.NaN()}, 9); err == nil {
		t.Error("a choice is made where nothing validates")
	}
	// R² is undefined for all if the targets that validate are alike, or for one whose weights overflow.
	nan, all := []float64{math.NaN(), math.NaN(), math.NaN()}, make([]candidate, 3)
	if got, err := chosen("r2", all, nan, 1); err != nil || len(got.all) != 1 || !math.IsNaN(got.val) {
		t.Errorf("of undefined R²: %v, %v", got, err)
	}
	for k := range all {
		all[k].weights = mat.New(1, 1)
		all[k].weights.Data[0] = float32(math.Inf(1))
	}
	if _, err := chosen("r2", all, nan, 1); err == nil {
		t.Error("a choice is made among weights that overflow")
	}
}

// TestMeanOfWeights: logits of the mean weights are the mean of the logits, columns that a candidate does not have
// at 0.
func TestMeanOfWeights(t *testing.T) {
	key := rng.New(3)
	draw := func(rows int) mat.Dense {
		x := mat.New(rows, 2)
		for i := range x.Data {
			x.Data[i] = float32(key.Fold(uint64(rows)).Normal(uint64(i)))
		}
		return x
	}
	// two columns
	spec := Config{Task: "single", Features: 4, Classes: 2, Metric: "accuracy", Hops: 1, LeaveOut: Auto}.spec(1)
	model, err := nn.New(spec, key)
	if err != nil {
		t.Fatal(err)
	}
	head := model.Closed.Heads[0]
	c := choice{all: []candidate{{columns: []int{1}, weights: draw(2)}, {columns: []int{1, 2}, weights: draw(3)}},
		counts: []float64{1, 0.25}}
	c.mean(head)
	for j := range 2 {
		one, two := c.all[0].weights, c.all[1].weights
		for i, must := range []float32{(one.At(0, j) + 0.25*two.At(0, j)) / 1.25, 0.25 * two.At(1, j) / 1.25} {
			if v := head.Weight.Value.At(i, j); math.Abs(float64(v-must)) > 1e-6 {
				t.Errorf("weight %d, %d is %g, must be %g", i, j, v, must)
			}
		}
		if v, must := head.Bias.Value.Data[j], (one.At(1, j)+0.25*two.At(2, j))/1.25; math.Abs(float64(v-must)) > 1e-6 {
			t.Errorf("bias %d is %g, must be %g", j, v, must)
		}
	}
}

// TestBitsOfSums: class means have 8 bits and products of random features 16, and twice as many where labels are many
// and the target is soft labels. Class means have what sums asks for, unless that is auto.
func TestBitsOfSums(t *testing.T) {
	for _, c := range []struct {
		sums          string
		labelled      float64
		target        string
		means, random int
	}{
		{"auto", 4999, "labels", 8, 16}, {"auto", 5000, "labels", 16, 32}, {"auto", 5000, "residual", 8, 16},
		{"int8", 5000, "labels", 8, 32}, {"int16", 5000, "labels", 16, 32}, {"float32", 5000, "labels", 0, 0},
	} {
		one := Config{Sums: c.sums, Target: c.target}
		if got := one.MeansBits(4, c.labelled); got != c.means {
			t.Errorf("%+v: class means have %d bits", c, got)
		}
		if got := one.RandomBits(4, c.labelled); got != c.random {
			t.Errorf("%+v: products of random features have %d bits", c, got)
		}
	}
}

// TestRandomEach: a head of few columns has fewer random features, and so fewer sums.
func TestRandomEach(t *testing.T) {
	g := communities(300, 3)
	c := plain(g)
	c.Random, c.Hops, c.ClassRounds = 200, 0, 2
	r := mustRun(t, c, cut(t, g, 2), options{})
	for k, must := range []int{64, 128} { // of two columns, and of two more
		if got := r.trainers[0].model.Closed.Heads[k].Freq.Value.Cols; got != must {
			t.Errorf("head %d has %d random features, must have %d", k, got, must)
		}
	}
}
