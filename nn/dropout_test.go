package nn

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// TestDropoutIsIndependent: as many elements are dropped as P says, each divided so that the mean
// stays; and no two places share their masks.
func TestDropoutIsIndependent(t *testing.T) {
	const rows, cols, p = 400, 50, 0.3
	ones := mat.New(rows, cols)
	for i := range ones.Data {
		ones.Data[i] = 1
	}
	tape := NewTape()
	mask := func(key rng.Key, name string) mat.Dense {
		tape.Key = key
		y := mat.New(rows, cols)
		(&dropout{name, p}).Forward(y, ones, tape)
		return y
	}
	masks := []mat.Dense{mask(rng.New(1), "a"), mask(rng.New(2), "a"), mask(rng.New(1), "b")}
	nextRow, nextCol := mat.New(rows, cols), mat.New(rows, cols)
	for i := range rows {
		copy(nextRow.Row(i), masks[0].Row((i+1)%rows))
		copy(nextCol.Row(i), masks[0].Row(i)[1:])
		nextCol.Row(i)[cols-1] = masks[0].Row(i)[0]
	}
	masks = append(masks, nextRow, nextCol)
	for a, m := range masks[:3] {
		if mean := mean(m, ones); math.Abs(mean-1) > 0.02 { // four deviations
			t.Errorf("mean of mask %d is %v", a, mean)
		}
		for b, o := range masks[a+1:] {
			// Independent masks of mean 1 have a product of mean 1; equal ones 1/(1−p) = 1.43.
			if got := mean(m, o); math.Abs(got-1) > 0.06 {
				t.Errorf("masks %d and %d have a product of mean %v", a, a+1+b, got)
			}
		}
	}
}

func mean(a, b mat.Dense) float64 {
	sum := 0.0
	for i, v := range a.Data {
		sum += float64(v) * float64(b.Data[i])
	}
	return sum / float64(len(a.Data))
}

// TestLayerDropsAggregateApart: where a node's row and its aggregate are the same numbers, they
// lose different ones.
func TestLayerDropsAggregateApart(t *testing.T) {
	l, err := NewLayer("layer1", LayerSpec{Conv: "sage", In: 64, Out: 1, Hops: 1, Dropout: 0.5}, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	self, nbr, _ := l.Affine()
	x := mat.New(3, 64)
	for i := range x.Data {
		x.Data[i] = 1
	}
	for i := range 64 {
		self.W.Value.Data[i], nbr.W.Value.Data[i] = 1, -1
	}
	h := mat.New(3, 1)
	l.Forward(h, Input{X: graph.Features{Dense: x}, Z: graph.Features{Dense: x}}, NewTape())
	if h.Data[0] == 0 && h.Data[1] == 0 && h.Data[2] == 0 {
		t.Error("x and its aggregate share a mask")
	}
}

// TestAttentionDropoutIsPerEdgeAndHead: of many edges with equal logits, about the share P is
// dropped for each head, whatever the destination or the source have in common.
func TestAttentionDropoutIsPerEdgeAndHead(t *testing.T) {
	const n, p = 60, 0.5
	a := newAttention("a", 2, 1, p, rng.New(1))
	g := &graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}
	z := mat.New(n, 2)
	for i := range n {
		for j := range n {
			g.Col = append(g.Col, int32(j))
		}
		g.RowPtr[i+1] = int64(len(g.Col))
		z.Row(i)[0], z.Row(i)[1] = 1, 1
	}
	a.Src.Value.Zero()
	a.Dst.Value.Zero()
	acc := &Acc{Train: true, Key: rng.New(3)}
	h := mat.New(n, 2)
	a.Begin(acc, z)
	a.Add(acc, g, z)
	a.End(h, acc)
	// Each of the 120 is the mean of 60 masks of mean 1 and deviation 1: within 5/√60 of 1, and no
	// two rows alike.
	equal := 0
	for i := range n {
		for k := range 2 {
			if v := h.At(i, k); math.Abs(float64(v)-1) > 5/math.Sqrt(n) {
				t.Errorf("head %d of destination %d keeps %v of its weight", k, i, v)
			}
		}
		if h.At(i, 0) == h.At(i, 1) || h.At(i, 0) == h.At(0, 0) {
			equal++
		}
	}
	if equal > 30 {
		t.Errorf("%d of %d rows are equal to another", equal, n)
	}
}

// TestTransposeOfOtherWeights: two graphs may share their columns and differ in weights.
func TestTransposeOfOtherWeights(t *testing.T) {
	g := graph.CSR{NumDst: 1, NumSrc: 2, RowPtr: []int64{0, 2}, Col: []int32{0, 1}, Weight: []float32{1, 2}}
	other := g
	other.Weight = []float32{3, 4}
	var ts transposes
	for _, g := range []*graph.CSR{&g, &other, &g} {
		dz := mat.New(2, 1)
		sumGrad(dz, g, mat.View(1, 1, []float32{1}), &ts)
		if dz.Data[0] != g.Weight[0] || dz.Data[1] != g.Weight[1] {
			t.Errorf("gradient is %v, want the weights %v", dz.Data, g.Weight)
		}
	}
}
