package fullbatch

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/train"
)

// manyDraws is the number of draws of a statistic, by which its bounds are: four times as many see half the bias.
func manyDraws(t *testing.T) int {
	t.Helper()
	if testenv.LongForm(t) {
		return 2000
	}
	return 500
}

// TestSampleIsUnbiased: over many draws the mean of a sum over sampled halo rows, and of its gradient, is that over all
// of them, within four and a half standard deviations; and the rows that travel are the share that was asked for.
func TestSampleIsUnbiased(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a statistic of hundreds of steps")
	}
	const d = 3
	draws := manyDraws(t)
	g := toy(rng.New(8), 40, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train
	}
	c := Defaults(models(9)["gcn"])
	c.Boundary = 0.3
	shards := cut(t, g, "uneven", 3)
	var mu sync.Mutex
	var sent, halo int64
	workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		ctx := context.Background()
		tr.line = &haloLine{ctx: ctx, group: g, sender: train.NewSender(g, tr.shard, wire.Coding{}), ahead: 1,
			key: rng.New(2)}
		if err := errors.Join(tr.Begin(ctx, g, g), tr.prepare(ctx, g)); err != nil {
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
		l := summed(t, d)
		sums := func() (h, dz mat.Dense) {
			tape := tape.New()
			h, err := p.sums(l, z, tape)
			if err == nil {
				dz, err = p.sumGrads(l, dh, tape)
			}
			if err != nil {
				t.Error(err)
			}
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
					mean[k][i] += float64(v) / float64(draws)
					square[k][i] += float64(v) * float64(v) / float64(draws)
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		sent, halo = sent+g.Bytes().Halo-before, halo+int64(tr.shard.Halo())
		for k, want := range []mat.Dense{wantH, wantDZ} {
			for i, w := range want.Data {
				sigma := math.Sqrt(max(square[k][i]-mean[k][i]*mean[k][i], 0) / float64(draws))
				if off := math.Abs(mean[k][i] - float64(w)); off > 4.5*sigma+1e-5 {
					t.Errorf("worker %d, of sum and gradient %d, value %d: mean %g over %d draws, exactly %g: "+
						"off by %g, one standard deviation is %g", tr.shard.Rank, k, i, mean[k][i], draws, w, off,
						sigma)
				}
			}
		}
		return nil
	})
	if got := float64(sent) / float64(draws) / float64(halo*2*d*4); math.Abs(got-0.3) > 0.01 {
		t.Errorf("%.3f of the rows and gradients travelled, want 0.3", got)
	}
}

// summed is a layer that sums rows of a width and does nothing else.
func summed(t *testing.T, width int) *nn.Layer {
	t.Helper()
	l, err := nn.NewLayer("sum", nn.LayerSpec{Conv: "gcn", In: width, Out: width}, rng.New(1))
	if err != nil {
		t.Error(err)
		return nil
	}
	w := l.Conv.Nbr.W.Value
	w.Zero()
	for k := range width {
		w.Set(k, k, 1)
	}
	return l
}

// sums returns the sums of near rows z and of those that others have.
func (p *part) sums(l *nn.Layer, z mat.Dense, tape *tape.Tape) (mat.Dense, error) {
	var f nn.Forward
	h := mat.New(p.near.NumDst, z.Cols)
	f.Begin(l, h, nn.Input{G: p.near, Remote: true, X: graph.Features{Dense: z}, Nodes: p.nodes}, tape)
	for hop := f.Hop(); hop != nil; hop = f.Hop() {
		if err := p.sum(hop); err != nil {
			return h, err
		}
	}
	f.End()
	return h, nil
}

// sumGrads is the backward pass of sums.
func (p *part) sumGrads(l *nn.Layer, dh mat.Dense, tape *tape.Tape) (mat.Dense, error) {
	var b nn.Backward
	dz := mat.New(p.near.NumSrc, dh.Cols)
	b.Begin(l, dz, dh.Clone(), tape)
	for hop := b.Hop(); hop != nil; hop = b.Hop() {
		if err := p.grad(hop); err != nil {
			return dz, err
		}
	}
	b.End()
	return dz, nil
}

// TestSampleOfHopsIsUnbiased: the same of sums of sums of sums, whose gradients are taken the other way round.
func TestSampleOfHopsIsUnbiased(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a statistic of hundreds of steps")
	}
	const hops = 3
	draws := manyDraws(t)
	g := toy(rng.New(8), 24, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train
	}
	c := Defaults(models(9)["appnp"])
	c.Boundary = 0.3
	workers(t, c, cut(t, g, "uneven", 3), func(tr *Trainer, g *comm.Group) error {
		ctx := context.Background()
		tr.line = &haloLine{ctx: ctx, group: g, sender: train.NewSender(g, tr.shard, wire.Coding{}), ahead: 1,
			key: rng.New(2)}
		if err := errors.Join(tr.Begin(ctx, g, g), tr.prepare(ctx, g)); err != nil {
			return err
		}
		p, n := tr.train.parts[2], tr.shard.Owned
		first, last := mat.New(n, 1), mat.New(n, 1)
		for i := range n {
			key := rng.New(1).Fold(uint64(p.nodes[i]))
			first.Set(i, 0, float32(key.Normal(0)))
			last.Set(i, 0, float32(key.Normal(1)))
		}
		l := summed(t, 1)
		pass := func() []mat.Dense {
			z, d := first, last
			var tapes []*tape.Tape
			var err error
			for k := 0; k < hops && err == nil; k++ {
				tapes = append(tapes, tape.New())
				z, err = p.sums(l, z, tapes[k])
			}
			for k := hops - 1; k >= 0 && err == nil; k-- {
				d, err = p.sumGrads(l, d, tapes[k])
			}
			if err != nil {
				t.Error(err)
			}
			return []mat.Dense{z, d}
		}
		p.far.share = 1
		want := pass()
		p.far.share = 0.3
		mean, square := [2][]float64{make([]float64, n), make([]float64, n)},
			[2][]float64{make([]float64, n), make([]float64, n)}
		for e := range uint64(draws) {
			tr.line.epoch = e
			for k, x := range pass() {
				for i, v := range x.Data {
					mean[k][i] += float64(v) / float64(draws)
					square[k][i] += float64(v) * float64(v) / float64(draws)
				}
			}
		}
		for k := range want {
			for i, w := range want[k].Data {
				sigma := math.Sqrt(max(square[k][i]-mean[k][i]*mean[k][i], 0) / float64(draws))
				if off := math.Abs(mean[k][i] - float64(w)); off > 4.5*sigma+1e-5 {
					t.Errorf("worker %d, of sum and gradient %d, value %d: mean %g over %d draws, exactly %g: "+
						"off by %g, one standard deviation is %g", tr.shard.Rank, k, i, mean[k][i], draws, w, off,
						sigma)
				}
			}
		}
		return nil
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
		c.Rounds, c.EvalEvery = 10, 100
		want := trained(t, c, cut(t, &left, "", 1))[0].Result().Final()
		c.Boundary = 0
		tr := trained(t, c, cut(t, g, "uneven", 3))[0]
		for i, e := range tr.Result().Curve() {
			within(t, model+": loss", e.Loss, want.Curve[i].Loss, 1e-4)
			if i > 0 && e.Sent.Halo != tr.Result().Curve()[i-1].Sent.Halo {
				t.Errorf("%s: rows travelled in epoch %d", model, i)
			}
		}
	}
}

// TestBoundaryIsChecked: a sample of what is no sum would be biased.
func TestBoundaryIsChecked(t *testing.T) {
	for boundary, ok := range map[float32]bool{1: true, 0: true, 0.1: false, 1.5: false, -0.1: false,
		float32(math.NaN()): false} {
		c := Defaults(models(9)["gat"])
		c.Boundary = boundary
		if err := c.Validate(); (err == nil) != ok {
			t.Errorf("%g of attention: %v", boundary, err)
		}
	}
	c := Defaults(models(9)["sage"])
	if c.Boundary = 0.1; c.Validate() != nil {
		t.Error(c.Validate())
	}
}
