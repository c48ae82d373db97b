package fullbatch

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

// For an edge between workers, a layer that sums rows needs either the source's row or the sum of its destination over
// that worker's rows. Workers send the smallest set of both (shard.Cover) instead of the halo's rows. In the backward
// pass the gradient of a sum is sent instead of the gradients of its terms: from s = Σ_j w_j z_j follows dz_j = w_j ds,
// which the terms' owner adds to each.

// sums reports whether workers may send sums instead of rows of unit k's halo.
func (t *Trainer) sums(k int) bool { return t.units[k].layer.Sums() && t.config.Exchange != "halo" }

// agreeCovers asks every worker for a cover of the rows that unit k reads from it, if that saves bytes.
func (t *Trainer) agreeCovers(k int, a *graphView, r receptiveField) (*train.Covers, error) {
	if r.whole && a.covers != nil {
		return a.covers, nil
	}
	l, to := t.units[k].layer, slices.Repeat([]int32{-1}, a.Adj.NumSrc)
	c, err := t.line.sender.AgreeCovers(t.line.ctx, "covers of "+l.Name, r.give, func(q int) *graph.CSR {
		for n, j := range r.need[q] {
			to[j] = int32(n)
		}
		edges := subgraph(a.Adj, r.dst, to, len(r.need[q]))
		for _, j := range r.need[q] {
			to[j] = -1
		}
		return edges
	}, func(fewer, bytes int) bool {
		return t.config.Exchange == "cover" || fewer*t.line.sender.RowLen(l.SentWidth())*t.config.Rounds > bytes
	})
	if err == nil && r.whole {
		a.covers = c
	}
	return c, err
}

// cover replaces p's halo of rows by one of rows and sums.
func (t *Trainer) cover(k int, p *part, a *graphView, r receptiveField) error {
	c, err := t.agreeCovers(k, a, r)
	if err != nil {
		return err
	}
	h, l, s := p.far, t.units[k].layer, t.shard
	toDst, toSrc := graph.Factors(a.Degree, l.Edges)
	h.give, h.sums = c.Split(r.give, choice(toSrc, r.src), len(r.src))
	to := slices.Repeat([]int32{-1}, a.Adj.NumSrc)
	for i := range h.blocks {
		b := &h.blocks[i]
		b.nodes = nil
		virtual := make([][]int32, len(r.dst))
		for _, q := range b.from {
			need, base := r.need[q], len(b.nodes)
			places := mat.EveryRow(len(need))
			for n := range places {
				places[n] += int32(base)
			}
			if c.Take[q] != nil {
				c.Take[q].Place(places, virtual, base)
			}
			for n, j := range need {
				if to[j] = places[n]; places[n] >= 0 {
					b.nodes = append(b.nodes, s.Global[j])
				}
			}
			if cover := c.Take[q]; cover != nil {
				for _, i := range cover.Dst {
					b.nodes = append(b.nodes, s.Global[r.dst[i]])
				}
			}
			b.at[q], b.rows[q] = base, len(b.nodes)-base
		}
		b.g = shard.WithSums(subgraph(a.Edges(l), r.dst, to, len(b.nodes)), virtual, choice(toDst, r.dst))
		for _, q := range b.from {
			for _, j := range r.need[q] {
				to[j] = -1
			}
		}
	}
	return nil
}

// choice returns the elements of f at the indices `of`, or nil if f is nil.
func choice(f []float64, of []int32) []float64 {
	if f == nil {
		return nil
	}
	some := make([]float64, len(of))
	for k, i := range of {
		some[k] = f[i]
	}
	return some
}

// given returns how many rows and sums this worker sends to peer q.
func (f *fetching) given(q int) int {
	if f.sums != nil && f.sums[q] != nil {
		return len(f.give[q]) + f.sums[q].NumDst
	}
	return len(f.give[q])
}

// out returns the k-th vector to send to a peer: a row of z, or a sum of rows. A sum is valid until the next call for
// the same peer.
func (f *fetching) out(z mat.Dense, to, k int) []float32 {
	if k < len(f.give[to]) {
		return z.Row(int(f.give[to][k]))
	}
	if f.room[to] == nil {
		f.room[to] = make([]float32, z.Cols)
	}
	sum := f.room[to]
	clear(sum)
	col, weight := f.sums[to].Row(k - len(f.give[to]))
	for n, j := range col {
		if weight == nil {
			kernels.Add(z.Row(int(j)), sum)
		} else {
			kernels.Axpy(weight[n], z.Row(int(j)), sum)
		}
	}
	return sum
}

// back adds the gradient of the k-th vector that was sent to a peer to dz. The gradient is values[at:].
func (f *fetching) back(dz mat.Dense, from, k, at int, values []float32) {
	if k < len(f.give[from]) {
		kernels.Add(values, dz.Row(int(f.give[from][k]))[at:][:len(values)])
		return
	}
	col, weight := f.sums[from].Row(k - len(f.give[from]))
	for n, j := range col {
		if to := dz.Row(int(j))[at:][:len(values)]; weight == nil {
			kernels.Add(values, to)
		} else {
			kernels.Axpy(weight[n], values, to)
		}
	}
}
