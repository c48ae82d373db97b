package fullbatch

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// TestSampleIsUnbiased: over many draws the mean of a sum over sampled halo rows, and of its gradient, is that over all of
// them, within four and a half standard deviations; and the rows that travel are the share that was asked for.
func TestSampleIsUnbiased(t *testing.T) {
	const draws, d = 2000, 3
	g := toy(rng.New(8), 40, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train
	}
	c := Defaults(models(9)["gcn"])
	c.Boundary = "sample:0.3"
	shards := cut(t, g, "uneven", 3)
	var mu sync.Mutex
	var sent, halo int64
	workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		ctx := context.Background()
		tr.line = &line{ctx: ctx, group: g, coder: new(wire.Coder), ahead: 1, key: rng.New(2)}
		if err := tr.begin(ctx, g); err != nil {
			return err
		}
		p := tr.train.parts[1]
		n := tr.shard.Owned
		z, dh := mat.New(n, d), mat.New(n, d)
		for i := range n {
			for k := range d {
				key := rng.New(1).Fold(uint64(p.nodes[i]))
				z.Set(i, k, float32(key.Normal(uint64(k))))
				dh.Set(i, k, float32(key.Normal(uint64(d+k))))
			}
		}
		sums := func() (h, dz mat.Dense) {
			h, dz = mat.New(n, d), mat.New(n, d)
			add := func(g *graph.CSR, z mat.Dense) {
				for i := range g.NumDst {
					col, w := g.Row(i)
					for e, j := range col {
						for k := range d {
							h.Row(i)[k] += w[e] * z.At(int(j), k)
						}
					}
				}
			}
			p.far.Add(z, func() {}, func(g *graph.CSR, _ []int64, z mat.Dense) { add(g, z) })
			p.far.AddGrad(dz, z, false, func() {}, func(g *graph.CSR, _ []int64, dzb, _ mat.Dense) {
				for i := range g.NumDst {
					col, w := g.Row(i)
					for e, j := range col {
						for k := range d {
							dzb.Row(int(j))[k] += w[e] * dh.At(i, k)
						}
					}
				}
			})
			return h, dz
		}
		p.far.share = 1
		wantH, wantDZ := sums()
		p.far.share = 0.3
		before := g.Bytes().Halo
		var mean, square [2][]float64
		for k := range mean {
			mean[k], square[k] = make([]float64, n*d), make([]float64, n*d)
		}
		for e := range uint64(draws) {
			tr.line.epoch = e
			h, dz := sums()
			for k, x := range []mat.Dense{h, dz} {
				for i, v := range x.Data {
					mean[k][i] += float64(v) / draws
					square[k][i] += float64(v) * float64(v) / draws
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		sent, halo = sent+g.Bytes().Halo-before, halo+int64(tr.shard.Halo())
		for k, want := range []mat.Dense{wantH, wantDZ} {
			for i, w := range want.Data {
				sigma := math.Sqrt(max(square[k][i]-mean[k][i]*mean[k][i], 0) / draws)
				if off := math.Abs(mean[k][i] - float64(w)); off > 4.5*sigma+1e-5 {
					t.Errorf("worker %d, of sum and gradient %d, value %d: mean %g over %d draws, exactly %g: off by %g, one standard deviation is %g", tr.shard.Rank, k, i, mean[k][i], draws, w, off, sigma)
				}
			}
		}
		return tr.line.err
	})
	if got := float64(sent) / draws / float64(halo*2*d*4); math.Abs(got-0.3) > 0.01 {
		t.Errorf("%.3f of the rows and gradients travelled, want 0.3", got)
	}
}

// TestSampleOfHopsIsUnbiased: the same of sums of sums of sums, whose gradients are taken the other way round.
func TestSampleOfHopsIsUnbiased(t *testing.T) {
	const draws, hops = 2000, 3
	g := toy(rng.New(8), 24, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train
	}
	c := Defaults(models(9)["appnp"])
	c.Boundary = "sample:0.3"
	workers(t, c, cut(t, g, "uneven", 3), func(tr *Trainer, g *comm.Group) error {
		ctx := context.Background()
		tr.line = &line{ctx: ctx, group: g, coder: new(wire.Coder), ahead: 1, key: rng.New(2)}
		if err := tr.begin(ctx, g); err != nil {
			return err
		}
		p, n := tr.train.parts[2], tr.shard.Owned
		first, last := mat.New(n, 1), mat.New(n, 1)
		for i := range n {
			key := rng.New(1).Fold(uint64(p.nodes[i]))
			first.Set(i, 0, float32(key.Normal(0)))
			last.Set(i, 0, float32(key.Normal(1)))
		}
		sum := func(h mat.Dense, g *graph.CSR, z mat.Dense) {
			for i := range g.NumDst {
				col, w := g.Row(i)
				for e, j := range col {
					h.Row(i)[0] += w[e] * z.At(int(j), 0)
				}
			}
		}
		back := func(dz mat.Dense, g *graph.CSR, dh mat.Dense) {
			for i := range g.NumDst {
				col, w := g.Row(i)
				for e, j := range col {
					dz.Row(int(j))[0] += w[e] * dh.At(i, 0)
				}
			}
		}
		pass := func() []mat.Dense {
			z, d := first, last
			for range hops {
				h := mat.New(n, 1)
				p.far.Add(z, func() { sum(h, p.near, z) }, func(g *graph.CSR, _ []int64, z mat.Dense) { sum(h, g, z) })
				z = h
			}
			for range hops {
				dz := mat.New(n, 1)
				p.far.AddGrad(dz, mat.Dense{}, false, func() { back(dz, p.near, d) }, func(g *graph.CSR, _ []int64, dz, _ mat.Dense) { back(dz, g, d) })
				d = dz
			}
			return []mat.Dense{z, d}
		}
		p.far.share = 1
		want := pass()
		p.far.share = 0.3
		mean, square := [2][]float64{make([]float64, n), make([]float64, n)}, [2][]float64{make([]float64, n), make([]float64, n)}
		for e := range uint64(draws) {
			tr.line.epoch = e
			for k, x := range pass() {
				for i, v := range x.Data {
					mean[k][i] += float64(v) / draws
					square[k][i] += float64(v) * float64(v) / draws
				}
			}
		}
		for k := range want {
			for i, w := range want[k].Data {
				sigma := math.Sqrt(max(square[k][i]-mean[k][i]*mean[k][i], 0) / draws)
				if off := math.Abs(mean[k][i] - float64(w)); off > 4.5*sigma+1e-5 {
					t.Errorf("worker %d, of sum and gradient %d, value %d: mean %g over %d draws, exactly %g: off by %g, one standard deviation is %g", tr.shard.Rank, k, i, mean[k][i], draws, w, off, sigma)
				}
			}
		}
		return tr.line.err
	})
}

// TestNoBoundary: without the edges between workers a step is that of one worker with the graph that is left.
func TestNoBoundary(t *testing.T) {
	g := toy(rng.New(8), 90, 9)
	owner := owners["uneven"](g, 3)
	left := *g
	left.Adj = graph.CSR{NumDst: g.N(), NumSrc: g.N(), RowPtr: make([]int64, g.N()+1)}
	for i := range g.N() {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			if owner[i] == owner[j] {
				left.Adj.Col = append(left.Adj.Col, j)
			}
		}
		left.Adj.RowPtr[i+1] = int64(len(left.Adj.Col))
	}
	for _, model := range []string{"gcn", "sage, aggregated once", "gat"} {
		c := Defaults(models(9)[model])
		c.Epochs, c.EvalEvery = 10, 100
		want := trained(t, c, cut(t, &left, "", 1))[0].Result()
		c.Boundary = "none"
		tr := trained(t, c, cut(t, g, "uneven", 3))[0]
		for i, e := range tr.Result().Epochs {
			within(t, model+": loss", e.Loss, want.Epochs[i].Loss, 1e-4)
			if i > 0 && e.Bytes.Halo != tr.Result().Epochs[i-1].Bytes.Halo {
				t.Errorf("%s: rows travelled in epoch %d", model, i)
			}
		}
	}
}

// TestBoundaryIsChecked: a sample of what is no sum would be biased.
func TestBoundaryIsChecked(t *testing.T) {
	for boundary, ok := range map[string]bool{"exact": true, "none": true, "sample:0.1": false, "sample:1": false, "sample:x": false, "stale": false, "stale:1": true, "stale:2": false, "stale:1:0.5": true, "stale:1:1": false} {
		c := Defaults(models(9)["gat"])
		c.Boundary = boundary
		if err := c.Validate(); (err == nil) != ok {
			t.Errorf("%s of attention: %v", boundary, err)
		}
	}
	hops := Defaults(models(9)["gcn of 3 hops"])
	if hops.Boundary = "stale:1"; hops.Validate() == nil {
		t.Error("stale:1 of a layer of three hops was taken")
	}
	c := Defaults(models(9)["sage"])
	if c.Boundary = "sample:0.1"; c.Validate() != nil {
		t.Error(c.Validate())
	}
}
