package nn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// TestTraits: what the table says of a convolution is what a layer of it does.
func TestTraits(t *testing.T) {
	names := nn.Convolutions(nil)
	if len(names) < 9 {
		t.Fatalf("the table has %q", names)
	}
	for k, name := range names {
		if slices.Contains(names[:k], name) {
			t.Errorf("%s has two rows", name)
		}
		c, ok := nn.ConvolutionNamed(name)
		if !ok || c.Name != name {
			t.Fatalf("%s is not found", name)
		}
		r := c.Recipe
		if r.Hidden < 1 || r.Hops < 1 || r.Epochs < 1 || !(r.LR > 0) || c.Heads != (r.Heads > 0) ||
			c.Hops != (r.Hops > 1) && r.Hops > 1 {
			t.Errorf("%s: recipe %+v", name, r)
		}
		spec := nn.LayerSpec{Conv: name, In: 4, Out: 2, Hops: 1, Alpha: r.Alpha}
		if c.Heads {
			spec.Heads = 2
		}
		if c.Typed {
			spec.Relations = 3
		}
		if c.EdgeColumns {
			spec.EdgeColumns = 2
		}
		l := layer(t, spec)
		if (l.Conv.Agg != nil) != c.Aggregates || l.Sums() != c.Sum || (l.Conv.Relations > 0) != c.Typed ||
			l.Edges != c.Edges {
			t.Errorf("%s: the layer aggregates %t, sums %t, has %d relations over edges %v, the table says %+v", name,
				l.Conv.Agg != nil, l.Sums(), l.Conv.Relations, l.Edges, c.Traits)
		}
		if l.Conv.Agg != nil && l.Conv.Agg.Properties().NeedsSource != c.NeedsSource {
			t.Errorf("%s: needs sources %t, the table says %t", name, l.Conv.Agg.Properties().NeedsSource,
				c.NeedsSource)
		}
		if c.Sum && !c.Linear || c.Propagates && !c.Hops {
			t.Errorf("%s: traits contradict one another: %+v", name, c.Traits)
		}
		spec.Hops = 2
		if _, err := nn.NewLayer("layer1", spec, rng.New(1)); c.Hops && !c.First && err != nil ||
			!c.Hops && err == nil {
			t.Errorf("%s of 2 hops: %v, the table says %t", name, err, c.Hops)
		}
	}
	if _, ok := nn.ConvolutionNamed("cheb"); ok {
		t.Error("cheb is found")
	}
	if got := nn.Convolutions(func(c nn.Convolution) bool { return c.Typed }); !slices.Equal(got,
		[]string{"rgcn", "rsage", "rgat"}) {
		t.Errorf("typed convolutions are %q", got)
	}
}

// TestWeights: what a reader of model files allocates covers the matrices that a layer has.
func TestWeights(t *testing.T) {
	for _, s := range []nn.LayerSpec{
		{Conv: "gcn", In: 30, Out: 20}, {Conv: "gin", In: 30, Out: 20, Head: []int{7, 3}},
		{Conv: "gat", In: 30, Out: 20, Heads: 3, Average: true}, {Conv: "rgcn", In: 30, Out: 20, Relations: 4},
		{Conv: "rgcn", In: 30, Out: 20, Relations: 4, Bases: 2}, {Conv: "rsage", In: 30, Out: 20, Relations: 4},
		{Conv: "rgat", In: 30, Out: 20, Relations: 4, Heads: 3, Average: true},
		{Conv: "rgat", In: 30, Out: 20, Relations: 4, Heads: 2, Bases: 3},
		{Conv: "gine", In: 30, Out: 20, EdgeColumns: 3}, {Conv: "gatv2", In: 30, Out: 20, Heads: 2, EdgeColumns: 9},
		{Conv: "sign", In: 30, Out: 21, Hops: 2}, {Conv: "appnp", In: 30, Out: 20, Hops: 3, Alpha: 0.1},
		{Conv: "sage-pool", In: 30, Out: 20},
	} {
		t.Run(fmt.Sprintf("%s %d", s.Conv, s.Bases), func(t *testing.T) {
			l := layer(t, s)
			has, bound := 0, 0
			params := l.Params()
			if l.Head != nil {
				params = append(params, l.Head.Params()...)
			}
			for _, p := range params {
				if p.Value.Rows > 1 {
					has += p.Value.Rows * p.Value.Cols
				}
			}
			s.Weights(func(rows, cols int) { bound += rows * cols })
			if bound < has/2 || bound > 2*has {
				t.Errorf("bounded by %d values, the layer has %d", bound, has)
			}
		})
	}
}

// TestArchitecture: settings reach the layers whose convolution reads them, and no others.
func TestArchitecture(t *testing.T) {
	all := nn.Architecture{
		Task: "single", Features: 12, Classes: 3, Layers: 3, Hidden: 8, Hops: 2, Norm: "layer", Residual: true,
		Dropout: 0.1, Heads: 4, AttentionDropout: 0.2, Alpha: 0.3, Relations: 5, Bases: 2, EdgeColumns: 3,
	}
	for _, name := range nn.Convolutions(nil) {
		a := all
		a.Model = name
		c, _ := nn.ConvolutionNamed(name)
		if !c.Hops {
			a.Hops = 1
		}
		spec, err := a.Spec()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		hops := 0
		for k, l := range spec.Layers {
			last := k == len(spec.Layers)-1
			hops = max(hops, l.Hops)
			if l.Norm == last || l.BatchNorm || !l.Residual || l.Dropout != 0.1 || (l.Heads > 0) != c.Heads ||
				(l.Relations > 0) != c.Typed || (l.EdgeColumns > 0) != c.EdgeColumns {
				t.Errorf("%s: layer %d is %+v", name, k, l)
			}
		}
		if hops != a.Hops {
			t.Errorf("%s: %d hops, want %d", name, hops, a.Hops)
		}
	}
	for _, change := range []func(*nn.Architecture){
		func(a *nn.Architecture) { a.Model = "cheb" }, func(a *nn.Architecture) { a.Layers = 0 },
		func(a *nn.Architecture) { a.Norm = "x" }, func(a *nn.Architecture) { a.Model, a.Layers = "sign", 1 },
		func(a *nn.Architecture) { a.Hops = -1 },
	} {
		a := all
		a.Model = "gcn"
		change(&a)
		if _, err := a.Spec(); err == nil {
			t.Errorf("%+v is accepted", a)
		}
	}
}
