package nn

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// TestLosses compares each loss with its plain formula and its gradient with differences of the
// loss.
func TestLosses(t *testing.T) {
	const n, classes = 7, 4
	single := graph.Labels{Classes: classes, Class: []int32{0, 3, -1, 2, 2, -1, 1}}
	multi := graph.Labels{Classes: classes, Bits: make([]uint8, n*classes)}
	for i := range multi.Bits {
		multi.Bits[i] = uint8(rng.New(4).Uint64(uint64(i)) % 2)
	}
	multi.Bits[5*classes] = unlabelled
	weight := []float32{0.5, 1, 2, 0.25}
	logits := random(rng.New(1), n, classes)
	plainSingle := func(w []float32) (loss, count float64) {
		for i, y := range single.Class {
			if y >= 0 {
				sum := 0.0
				for _, v := range logits.Row(i) {
					sum += math.Exp(float64(v))
				}
				loss -= float64(w[y]) * (float64(logits.At(i, int(y))) - math.Log(sum))
				count += float64(w[y])
			}
		}
		return loss, count
	}
	plainMulti := func(w []float32) (loss, count float64) {
		for i := range n {
			if multi.Bits[i*classes] == unlabelled {
				continue
			}
			count++
			for c, v := range logits.Row(i) {
				p := 1 / (1 + math.Exp(-float64(v)))
				if multi.Bits[i*classes+c] == 0 {
					p = 1 - p
				}
				loss -= float64(w[c]) * math.Log(p) / classes
			}
		}
		return loss, count
	}
	for name, c := range map[string]struct {
		labels graph.Labels
		weight []float32
		plain  func([]float32) (float64, float64)
	}{
		"cross-entropy":          {single, nil, plainSingle},
		"weighted cross-entropy": {single, weight, plainSingle},
		"bce":                    {multi, nil, plainMulti},
		"weighted bce":           {multi, weight, plainMulti},
	} {
		w := c.weight
		if w == nil {
			w = []float32{1, 1, 1, 1}
		}
		want, wantCount := c.plain(w)
		grad := random(rng.New(2), n, classes) // overwritten
		loss, count := Loss(grad, logits, c.labels, c.weight)
		only, _ := Loss(mat.Dense{}, logits, c.labels, c.weight)
		if math.Abs(loss-want) > 1e-5 || count != wantCount || only != loss {
			t.Errorf("%s is %v over %v, without gradient %v, want %v over %v", name, loss, count, only, want, wantCount)
		}
		for i := range logits.Data {
			const step = 1e-2
			v := logits.Data[i]
			logits.Data[i] = v + step
			up, _ := c.plain(w)
			logits.Data[i] = v - step
			down, _ := c.plain(w)
			logits.Data[i] = v
			if d := (up - down) / (2 * step); math.Abs(d-float64(grad.Data[i])) > 1e-4 {
				t.Errorf("%s: gradient %d is %v, differences say %v", name, i, grad.Data[i], d)
			}
		}
	}
}

// TestLossesOfExtremeLogits: no overflow, whatever the logits.
func TestLossesOfExtremeLogits(t *testing.T) {
	logits := mat.View(2, 2, []float32{3e38, -3e38, -1e4, 1e4})
	grad := mat.New(2, 2)
	loss, _ := crossEntropy(grad, logits, graph.Labels{Class: []int32{0, 1}}, nil)
	if loss != 0 || grad.At(0, 0) != 0 || grad.At(1, 1) != 0 {
		t.Errorf("cross-entropy of certain logits is %v, gradient %v", loss, grad.Data)
	}
	loss, _ = binaryCrossEntropy(grad, logits, graph.Labels{Bits: []uint8{1, 0, 0, 1}}, nil)
	if loss != 0 || grad.At(0, 0) != 0 || grad.At(1, 1) != 0 {
		t.Errorf("binary cross-entropy of certain logits is %v, gradient %v", loss, grad.Data)
	}
	loss, _ = crossEntropy(mat.Dense{}, mat.View(1, 2, []float32{-3e38, 3e38}), graph.Labels{Class: []int32{0}}, nil)
	if !(loss > 5.9e38 && loss < 6.1e38) {
		t.Errorf("cross-entropy of a certain mistake is %v, want 6e38", loss)
	}
}

func TestClassWeights(t *testing.T) {
	w := ClassWeights([]float64{2, 0, 6}, true, nil)
	if w[1] != 0 || math.Abs(float64(w[0]*2+w[2]*6)-8) > 1e-6 || w[0] != 3*w[2] {
		t.Errorf("weights of 2, 0 and 6 labels are %v", w)
	}
}

// random returns a matrix of standard normal values.
func random(key rng.Key, rows, cols int) mat.Dense {
	m := mat.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(key.Normal(uint64(i)))
	}
	return m
}
