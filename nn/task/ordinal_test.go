package task

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// plainOrdinal is the loss by its definition: probabilities, their sums, logarithms.
func plainOrdinal(logits mat.Dense, labels graph.Labels, weight []float32) (loss, count float64) {
	for i, y := range labels.Class {
		if y < 0 {
			continue
		}
		all, below := 0.0, 0.0
		for _, v := range logits.Row(i) {
			all += math.Exp(float64(v))
		}
		count += float64(weight[y])
		for k, v := range logits.Row(i)[:logits.Cols-1] {
			if below += math.Exp(float64(v)) / all; int(y) > k {
				loss -= float64(weight[y]) * math.Log(1-below) / float64(logits.Cols-1)
			} else {
				loss -= float64(weight[y]) * math.Log(below) / float64(logits.Cols-1)
			}
		}
	}
	return loss, count
}

// TestOrdinal compares the loss of classes in order with its definition, its gradient with differences, and with two classes
// both with the cross-entropy.
func TestOrdinal(t *testing.T) {
	l := Loss{Kind: "ordinal"}
	for _, classes := range []int{2, 5} {
		labels := graph.Labels{Classes: classes, Class: []int32{0, 1, -1, int32(classes - 1), 1, 0, int32(classes / 2)}}
		weight := []float32{0.5, 1, 2, 0.25, 3}[:classes]
		logits := random(rng.New(7), len(labels.Class), classes)
		grad := random(rng.New(8), logits.Rows, classes) // overwritten
		loss, count := l.Of(grad, logits, labels, weight)
		only, _ := l.Of(mat.Dense{}, logits, labels, weight)
		want, wantCount := plainOrdinal(logits, labels, weight)
		if math.Abs(loss-want) > 1e-6 || count != wantCount || only != loss {
			t.Errorf("%d classes: the loss is %v over %v, without gradient %v, must be %v over %v", classes, loss, count, only, want, wantCount)
		}
		for i := range logits.Data {
			const step = 1.0 / 128
			v := logits.Data[i]
			logits.Data[i] = v + step
			up, _ := plainOrdinal(logits, labels, weight)
			logits.Data[i] = v - step
			down, _ := plainOrdinal(logits, labels, weight)
			logits.Data[i] = v
			if d := (up - down) / (2 * step); math.Abs(d-float64(grad.Data[i])) > 1e-4 {
				t.Errorf("%d classes: gradient %d is %v, must be %v", classes, i, grad.Data[i], d)
			}
		}
		if classes > 2 {
			continue
		}
		same := mat.New(logits.Rows, classes)
		if ce, _ := (Loss{}).Of(same, logits, labels, weight); math.Abs(ce-loss) > 1e-6 {
			t.Errorf("the loss of two classes is %v, must be their cross-entropy %v", loss, ce)
		}
		for i, g := range same.Data {
			if math.Abs(float64(g-grad.Data[i])) > 1e-6 {
				t.Errorf("gradient %d of two classes is %v, must be that of the cross-entropy, %v", i, grad.Data[i], g)
			}
		}
	}
}

// TestOrdinalFar: a class that is further off costs more, which the cross-entropy does not see; extreme logits overflow nowhere.
func TestOrdinalFar(t *testing.T) {
	l := Loss{Kind: "ordinal"}
	logits := mat.View(2, 4, []float32{0, 9, 0, 0, 0, 0, 0, 9}) // says 1, says 3
	labels := func(class ...int32) graph.Labels { return graph.Labels{Classes: 4, Class: class} }
	near, _ := l.Of(mat.Dense{}, logits, labels(0, -1), nil)
	far, _ := l.Of(mat.Dense{}, logits, labels(-1, 0), nil)
	if !(far > 2*near) {
		t.Errorf("the loss of three ranks off is %v, must be above twice %v, that of one", far, near)
	}
	grad := mat.New(2, 4)
	sure := mat.View(2, 4, []float32{3e38, -3e38, -1e4, 0, -3e38, 0, 1e4, 3e38})
	if loss, _ := l.Of(grad, sure, labels(0, 3), nil); loss != 0 {
		t.Errorf("the loss of certain logits is %v, must be 0", loss)
	}
	for i, g := range grad.Data {
		if g != 0 {
			t.Errorf("gradient %d of certain logits is %v, must be 0", i, g)
		}
	}
	if err := l.Validate(target.Several); err == nil {
		t.Error("loss ordinal of several classes a node must be refused")
	}
}
