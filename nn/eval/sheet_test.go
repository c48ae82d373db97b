package eval

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// drawnRows returns logits and labels of n rows: those of the label's class are larger, by scale. Some rows have no
// label.
func drawnRows(n, classes int, multi bool, scale float64) (mat.Dense, graph.Labels) {
	key, logits, l := rng.New(3), mat.New(n, classes), graph.Labels{Classes: classes}
	for i := range n {
		at := key.Fold(uint64(i))
		class := int(at.Uint64(0) % uint64(classes))
		for k := range classes {
			x := at.Normal(uint64(k) + 1)
			if k == class {
				x++
			}
			logits.Set(i, k, float32(scale*x))
			if multi {
				l.Bits = append(l.Bits, uint8((at.Uint64(uint64(k)+99)%3)/2))
			}
		}
		if !multi {
			if i%7 == 0 {
				class = -1
			}
			l.Class = append(l.Class, int32(class))
		}
	}
	return logits, l
}

// TestSheetsAddUp: the figures of rows in several parts are those of all of them, to the bit, and those that Counts
// has.
func TestSheetsAddUp(t *testing.T) {
	for _, c := range []struct {
		classes int
		multi   bool
	}{{2, false}, {3, false}, {60, false}, {4, true}, {2, true}} {
		logits, labels := drawnRows(701, c.classes, c.multi, 2)
		s := NewSheet(labels, Goal{})
		whole := make([]int64, s.Size())
		s.Write(whole, logits, labels, Temperatures{Shared: 0.7})
		for parts := 2; parts <= 4; parts++ {
			sum, one := make([]int64, s.Size()), make([]int64, s.Size())
			for p := range parts {
				var rows []int32
				for i := p; i < logits.Rows; i += parts {
					rows = append(rows, int32(i))
				}
				s.Write(one, logits.Select(rows), labels.Select(rows), Temperatures{Shared: 0.7})
				for i, n := range one {
					sum[i] += n
					if !s.Wide(i) && n > int64(len(rows)) {
						t.Fatalf("number %d is %d of %d rows, but not wide", i, n, len(rows))
					}
				}
			}
			if !slices.Equal(sum, whole) {
				t.Fatalf("%+v: %d parts have other sums", c, parts)
			}
		}
		table, err := s.Read(whole)
		if err != nil {
			t.Fatal(err)
		}
		counts := count(logits, labels, nil, 4096, nil, false)
		for _, m := range []Metric{"accuracy", "micro-f1", "macro-f1"} {
			if got, want := table.Of(m), m.Of(&counts); got != want {
				t.Errorf("%+v: %s %v, must be %v", c, m, got, want)
			}
		}
		if got, want := table.Of("auc"), counts.AUC(); s.curves > 0 && math.Abs(got-want) > 0.005 ||
			s.curves == 0 && got == got {
			t.Errorf("%+v: AUC %v, near %v", c, got, want)
		}
		whole[0]++
		if _, err := s.Read(whole); err == nil {
			t.Errorf("%+v: a row more than was counted must be refused", c)
		}
	}
}

// TestCalibration: probabilities of logits that are five times too large, or too small, fit after calibration; classes
// stay, and few rows that are all right do not become certain.
func TestCalibration(t *testing.T) {
	for _, multi := range []bool{false, true} {
		for _, scale := range []float64{0.2, 1, 5} {
			logits, labels := drawnRows(6000, 3, multi, scale)
			if multi {
				for i := range logits.Data { // a class that is more likely the larger its logit is, at scale 1
					p := 1 / (1 + math.Exp(-float64(logits.Data[i])/scale))
					labels.Bits[i] = 0
					if rng.New(4).Float64(uint64(i)) < p {
						labels.Bits[i] = 1
					}
				}
			}
			temperatures := fit(logits, labels)
			for k := range 3 {
				if math.Abs(temperatures.Of(k)/scale-1) > 0.1 || len(temperatures.Classes) != 3 && multi {
					t.Errorf("several classes %t: temperatures %v of logits that are %v times too large", multi,
						temperatures, scale)
				}
			}
			s := NewSheet(labels, Goal{})
			sums := make([]int64, s.Size())
			s.Write(sums, logits, labels, temperatures)
			table, err := s.Read(sums)
			if err != nil {
				t.Fatal(err)
			}
			if before, after := table.Errors(); scale != 1 && before < 0.05 || after > 0.03 {
				t.Errorf("several classes %t, scale %v: calibration error %v, then %v", multi, scale, before, after)
			}
		}
	}
	for _, none := range []graph.Labels{{Classes: 2, Class: []int32{}}, {Classes: 2, Bits: []uint8{}}} {
		if temperatures := fit(mat.New(0, 2), none); temperatures.Of(0) != 1 || temperatures.Of(1) != 1 {
			t.Errorf("temperatures %v without rows, must be 1", temperatures)
		}
	}
	few := mat.Dense{Rows: 2, Cols: 2, Stride: 2, Data: []float32{1, 0, 0, 1}}
	if temperatures := fit(few, graph.Labels{Classes: 2, Class: []int32{0, 1}}); temperatures.Shared < 0.2 ||
		temperatures.Shared >= 1 {
		t.Errorf("temperature %v of two rows that are right, must be near 1", temperatures)
	}
}

// fit returns the temperatures of all rows.
func fit(logits mat.Dense, labels graph.Labels) Temperatures {
	n, _ := Likelihoods(labels.Kind(), labels.Classes)
	v := make([]int64, n)
	WriteLikelihoods(v, logits, labels)
	return FitTemperatures(v, labels.Kind(), labels.Classes)
}

// TestTemperaturesOfSeveral: logits of several classes that are too large by different factors fit by a temperature
// each; a class that nine rows have, or have not, gets the shared one.
func TestTemperaturesOfSeveral(t *testing.T) {
	scales := []float64{0.3, 1, 4, 4, 4}
	logits, labels := drawnRows(6000, len(scales), true, 1)
	for i := range logits.Rows {
		for k, scale := range scales {
			p := 1 / (1 + math.Exp(-float64(logits.At(i, k))))
			has := rng.New(4).Fold(uint64(k)).Float64(uint64(i)) < p
			switch k {
			case 3:
				has = i < 9
			case 4:
				has = i >= 9
			}
			labels.Bits[i*len(scales)+k] = map[bool]uint8{true: 1}[has]
			logits.Set(i, k, float32(scale)*logits.At(i, k))
		}
	}
	temperatures := fit(logits, labels)
	for k, scale := range scales[:3] {
		if math.Abs(temperatures.Of(k)/scale-1) > 0.1 {
			t.Errorf("class %d has temperature %v, must be near %v", k, temperatures.Of(k), scale)
		}
	}
	for k := 3; k < 5; k++ {
		if temperatures.Of(k) != temperatures.Shared {
			t.Errorf("class %d has temperature %v, must be the shared %v", k, temperatures.Of(k), temperatures.Shared)
		}
	}
	calibrated := func(h Temperatures) (after float64) {
		s := NewSheet(labels, Goal{})
		v := make([]int64, s.Size())
		s.Write(v, logits, labels, h)
		table, err := s.Read(v)
		if err != nil {
			t.Fatal(err)
		}
		_, after = table.Errors()
		p, by := make([]float64, len(scales)), 0.0
		for k := range scales { // the definition, class by class
			var apart [reliabilityBins]float64
			for i := range logits.Rows {
				Probabilities(p, logits.Row(i), true, h)
				apart[min(int(10*p[k]), 9)] += float64(labels.Bits[i*len(scales)+k]) - p[k]
			}
			for _, x := range apart {
				by += math.Abs(x) / float64(len(scales)*logits.Rows)
			}
		}
		if math.Abs(after-by) > 1e-4 {
			t.Errorf("calibration error is %v, must be %v", after, by)
		}
		return after
	}
	if own, shared := calibrated(temperatures), calibrated(Temperatures{Shared: temperatures.Shared}); own >= shared {
		t.Errorf("calibration error %v by own temperatures, must be below %v by the shared one", own, shared)
	}
	p := make([]float64, len(scales))
	Probabilities(p, []float32{3, 3, 3, 3, 3}, true, temperatures)
	for k, x := range p {
		if want := 1 / (1 + math.Exp(-3/temperatures.Of(k))); x != want {
			t.Errorf("probability of class %d is %v, must be %v", k, x, want)
		}
	}
}

// tableOf returns the table of a sheet of all rows.
func tableOf(t *testing.T, logits mat.Dense, labels graph.Labels) *Table {
	t.Helper()
	s := NewSheet(labels, Goal{})
	v := make([]int64, s.Size())
	s.Write(v, logits, labels, Temperatures{})
	table, err := s.Read(v)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestIntervals: the bootstrap interval of an accuracy is the normal one within a fifth of its width, the same for the
// same key, and that of a ranking has the ranking in it.
func TestIntervals(t *testing.T) {
	logits, labels := drawnRows(2000, 2, false, 1)
	table := tableOf(t, logits, labels)
	p, n := table.Of("accuracy"), float64(table.Rows())
	half := 1.96 * math.Sqrt(p*(1-p)/n)
	low, high := table.Interval("accuracy", rng.New(1))
	if math.Abs(low-(p-half)) > half/5 || math.Abs(high-(p+half)) > half/5 {
		t.Errorf("interval %v to %v of %v, must be near ± %v", low, high, p, half)
	}
	if a, b := table.Interval("accuracy", rng.New(1)); a != low || b != high {
		t.Error("the same key gives another interval")
	}
	if low, high := table.Interval("auc", rng.New(1)); low == low || high == high {
		t.Errorf("interval of AUC %v to %v", low, high)
	}
}

// TestBinomial: means and variances are those of the distribution, for both ways of drawing.
func TestBinomial(t *testing.T) {
	for _, c := range []struct {
		n int64
		p float64
	}{{1, 0.5}, {40, 0.1}, {1000, 0.004}, {100, 0.3}, {5000, 0.9}, {1 << 40, 0.2}} {
		const draws = 20_000
		u, sum, squares := &uniform{key: rng.New(9)}, 0.0, 0.0
		mean := float64(c.n) * c.p
		for range draws {
			x := binomial(c.n, c.p, u)
			if x < 0 || x > c.n {
				t.Fatalf("%d of %d", x, c.n)
			}
			d := float64(x) - mean
			sum, squares = sum+d, squares+d*d
		}
		variance := mean * (1 - c.p)
		if math.Abs(sum/draws) > 4*math.Sqrt(variance/draws) || math.Abs(squares/draws/variance-1) > 0.08 {
			t.Errorf("%d × %v: mean %v off, variance %v, must be 0 and %v", c.n, c.p, sum/draws, squares/draws,
				variance)
		}
	}
}

// TestThresholds: the threshold that is chosen has what the goal asks for, and no other has more.
func TestThresholds(t *testing.T) {
	logits, labels := drawnRows(3000, 2, false, 1)
	table := tableOf(t, logits, labels)
	g, err := ParseGoal("recall@precision=0.9")
	if err != nil || g.String() != "recall@precision=0.9" {
		t.Fatal(g, err)
	}
	bins, ok := table.Choose(g)
	if !ok[0] {
		t.Fatal("not reached")
	}
	bin := bins[0]
	recall, most := 0.0, 0.0
	for b := range CurveBins {
		right, wrong, missed := table.Cut(Cuts{CurveEdge(b)}).Class(1)
		if x := float64(right) / float64(right+missed); float64(right) >= 0.9*float64(right+wrong) && right > 0 {
			if most = max(most, x); b == bin {
				recall = x
			}
		}
	}
	if recall == 0 || recall != most {
		t.Errorf("recall %v, must be %v", recall, most)
	}
	cut, said := table.Cut(Cuts{CurveEdge(bin)}), int64(0)
	for i := range logits.Rows {
		if labels.Class[i] == 1 && (Cuts{CurveEdge(bin)}).Of(logits.Row(i), 1, Temperatures{}) {
			said++
		}
	}
	if right, _, _ := cut.Class(1); right != said {
		t.Errorf("%d rows from the edge on, %d from the bin on", said, right)
	}
	clear(labels.Class)
	if _, ok := tableOf(t, logits, labels).Choose(g); ok[0] {
		t.Error("no precision can be had without positives")
	}
	for _, bad := range []string{"f2", "recall", "recall@precision=2", "recall@recall=0.5", "precision@recall=x"} {
		if _, err := ParseGoal(bad); err == nil {
			t.Errorf("%q must be refused", bad)
		}
	}
}

// TestThresholdsOfSeveral: of several classes a node each has the threshold with its best F1, a class that no row has
// that of even odds, and the counts are those of logits that are decided by the thresholds.
func TestThresholdsOfSeveral(t *testing.T) {
	logits, labels := drawnRows(900, 4, true, 2)
	for i := range logits.Rows {
		labels.Bits[4*i+2] = 0
		if i%20 != 0 { // a scarce class, whose logits are high all the same
			labels.Bits[4*i+1] = 0
		}
	}
	goal, temperatures := Goal{Best: "f1"}, Temperatures{Shared: 2, Classes: []float64{0.8, 0.5, 1, 1.5}}
	s := NewSheet(labels, goal)
	v := make([]int64, s.Size())
	s.Write(v, logits, labels, temperatures)
	table, err := s.Read(v)
	if err != nil {
		t.Fatal(err)
	}
	bins, ok := table.Choose(goal)
	if len(bins) != 4 || ok[2] || bins[2] != CurveBins/2 || !ok[0] || !ok[1] || !ok[3] {
		t.Fatalf("bins %v, reached %v", bins, ok)
	}
	cuts := make(Cuts, 4)
	for k, b := range bins {
		cuts[k] = CurveEdge(b)
	}
	cut, counts := table.Cut(cuts), Count(cuts.Decided(logits, temperatures), labels, nil)
	for k := range cuts {
		right, wrong, missed := cut.Class(k)
		if c := counts.class(k); !slices.Equal(c, []int64{right, wrong, missed}) {
			t.Errorf("class %d has %d right, %d wrong, %d missed, must have %v", k, right, wrong, missed, c)
		}
		for b := range CurveBins {
			other := slices.Clone(cuts)
			other[k] = CurveEdge(b)
			if here, there := cut.Of("macro-f1"), table.Cut(other).Of("macro-f1"); k != 2 && there > here {
				t.Errorf("macro-F1 is %v with bin %d of class %d, must be at most %v", there, b, k, here)
			}
		}
	}
	if here, before := cut.Of("macro-f1"), table.Of("macro-f1"); here <= before {
		t.Errorf("macro-F1 is %v by thresholds, must be above %v", here, before)
	}
	low, high := cut.Interval("accuracy", rng.New(1))
	if x := cut.Of("accuracy"); x == x || low == low || high == high {
		t.Errorf("accuracy is %v in [%v, %v], must be unknown: rows are not counted together", x, low, high)
	}
	v[s.curveAt]++
	if _, err := s.Read(v); err == nil {
		t.Error("a ranking with a row more than there are must be refused")
	}
}
