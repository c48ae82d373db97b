package nn

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// drawn returns a decoder whose parameters are all drawn, rows, and groups of pairs of them; some pairs have one end
// twice.
func drawn(t *testing.T, kind string) (*Decoder, mat.Dense, PairGroups) {
	t.Helper()
	s := DecoderSpec{Kind: kind, Width: 5, Relations: []string{"a", "b", "c"}}
	if kind == "mlp" {
		s.Hidden = 7
	}
	d, err := NewDecoder(s, rng.New(3))
	if err != nil {
		t.Fatal(err)
	}
	for k, p := range d.Params() {
		for i := range p.Value.Data {
			p.Value.Data[i] = float32(rng.New(4).Fold(uint64(k)).Normal(uint64(i))) / 2
		}
	}
	z, g := mat.New(9, 5), PairGroups{Negatives: 3}
	for i := range z.Data {
		z.Data[i] = float32(rng.New(1).Normal(uint64(i)))
	}
	for i := range uint64(24) {
		key := rng.New(2).Fold(i)
		g.Pairs = append(g.Pairs, Pair{int32(key.Uint64(0) % 9), int32(key.Uint64(1) % 9), int32(i % 3)})
	}
	return d, z, g
}

// TestLearn compares the gradients of rows and parameters with differences of the loss.
func TestLearn(t *testing.T) {
	for _, kind := range decoderKinds {
		d, z, g := drawn(t, kind)
		plain := func() (loss float64) {
			for k, s := range d.Scores(z, g.Pairs) {
				if k%4 == 0 {
					loss += math.Log1p(math.Exp(-float64(s)))
				} else {
					loss += math.Log1p(math.Exp(float64(s))) / 3
				}
			}
			return loss
		}
		dz := mat.New(z.Rows, z.Cols)
		loss := d.Learn(dz, z, g)
		if math.Abs(loss-plain()) > 1e-4 {
			t.Errorf("%s: the loss is %v, must be %v", kind, loss, plain())
		}
		check := func(what string, value, grad []float32) {
			for i := range value {
				const h = 1.0 / 512
				at := value[i]
				value[i] = at + h
				up := plain()
				value[i] = at - h
				down := plain()
				value[i] = at
				if must := (up - down) / (2 * h); math.Abs(must-float64(grad[i])) > 2e-3*(1+math.Abs(must)) {
					t.Errorf("%s: the slope of %s %d is %v, must be %v", kind, what, i, grad[i], must)
				}
			}
		}
		check("row value", z.Data, dz.Data)
		for _, p := range d.Params() {
			check(p.Name, p.Value.Data, p.Grad.Data)
		}
	}
}

// TestGolden compares scores, losses and gradients with PyTorch's; testdata/decoder_golden.py writes the values.
func TestGolden(t *testing.T) {
	b, err := os.ReadFile("testdata/decoder_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]struct {
		Z, Relation, W1, B1, W2, B2, Scores, DZ, DRelation []float32
		Pairs                                              []Pair
		Loss                                               float64
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden) != len(decoderKinds) {
		t.Fatalf("there are %d cases, must be %d", len(golden), len(decoderKinds))
	}
	for kind, c := range golden {
		d, z, g := drawn(t, kind)
		copy(z.Data, c.Z)
		g.Pairs = c.Pairs
		values := [][]float32{c.Relation, c.W1, c.B1, c.W2, c.B2}
		for k, p := range d.Params() {
			copy(p.Value.Data, values[k])
		}
		near := func(what string, is, must []float32) {
			if len(is) != len(must) {
				t.Errorf("%s: %s has %d values, must have %d", kind, what, len(is), len(must))
				return
			}
			for i := range must {
				if math.Abs(float64(is[i]-must[i])) > 2e-5*(1+math.Abs(float64(must[i]))) {
					t.Errorf("%s: %s %d is %v, must be %v", kind, what, i, is[i], must[i])
				}
			}
		}
		near("score", d.Scores(z, g.Pairs), c.Scores)
		dz := mat.New(z.Rows, z.Cols)
		if loss := d.Learn(dz, z, g); math.Abs(loss-c.Loss) > 1e-4 {
			t.Errorf("%s: the loss is %v, must be %v", kind, loss, c.Loss)
		}
		near("slope of row value", dz.Data, c.DZ)
		if d.relation != nil {
			near("slope of relation value", d.relation.Grad.Data, c.DRelation)
		}
	}
}

// TestBlocks: many groups, in several blocks, score and learn as they do one by one.
func TestBlocks(t *testing.T) {
	for _, kind := range decoderKinds {
		d, z, g := drawn(t, kind)
		few := g.Pairs
		for range 1000 {
			g.Pairs = append(g.Pairs, few...)
		}
		one, all := mat.New(z.Rows, z.Cols), mat.New(z.Rows, z.Cols)
		each := d.Learn(one, z, PairGroups{Pairs: few, Negatives: g.Negatives})
		if loss := d.Learn(all, z, g); math.Abs(loss-1001*each) > 1e-3*loss {
			t.Errorf("%s: the loss is %v, must be %v", kind, loss, 1001*each)
		}
		for i := range one.Data {
			if must := 1001 * float64(one.Data[i]); math.Abs(float64(all.Data[i])-must) > 1e-3*(1+math.Abs(must)) {
				t.Errorf("%s: slope %d is %v, must be %v", kind, i, all.Data[i], must)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	for _, bad := range []DecoderSpec{
		{Kind: "cosine", Width: 1, Relations: []string{""}}, {Kind: "dot", Relations: []string{""}},
		{Kind: "dot", Width: 1}, {Kind: "mlp", Width: 1, Relations: []string{""}},
		{Kind: "dot", Width: 1, Relations: []string{""}, Hidden: 2},
	} {
		if _, err := NewDecoder(bad, rng.New(1)); err == nil {
			t.Errorf("%+v is accepted, must be refused", bad)
		}
	}
}
