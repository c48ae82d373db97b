package fullbatch

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// stale is what one layer knows of the other workers from the step before (PipeGCN; Wan, Li, Wolfe, Kyrillidis, Kim and
// Lin, ICLR 2022): halo rows, and the gradients that others found of the rows they were given. A step computes with
// them, and what is sent meanwhile is for the next one, so that no layer waits for the network. The first step of a run
// has nothing to go by and is exact.
type stale struct {
	gamma float32 // share of what was known that stays, of what is told anew 1 − gamma (the paper's §3.4)

	rows, grads traffic
}

// traffic is one way of a layer's messages.
type traffic struct {
	known [][]float32 // that steps compute with; nil: nothing has come yet
	next  [][]float32 // being filled
	out   [][]float32 // being sent
}

// begin makes room for messages of so many values.
func (f *traffic) begin(l *line, out, in []int) {
	if f.out != nil {
		return
	}
	for _, n := range out {
		f.out = append(f.out, l.take(n))
	}
	for _, n := range in {
		f.next = append(f.next, l.take(n))
	}
}

// first takes what has come as what is known.
func (f *traffic) first(l *line) {
	for _, x := range f.next {
		f.known = append(f.known, append(l.take(len(x))[:0], x...))
	}
}

// settle takes over what has come during a step.
func (f *traffic) settle(gamma float32) {
	if gamma == 0 {
		f.known, f.next = f.next, f.known
		return
	}
	for i, x := range f.next {
		kernels.Scale(gamma, f.known[i])
		kernels.Axpy(1-gamma, x, f.known[i])
	}
}

// settle takes over what has come during a step. Where it was the first, nothing has.
func (h *halo) settle(first bool) {
	if h.stale != nil && !first {
		h.stale.rows.settle(h.stale.gamma)
		h.stale.grads.settle(h.stale.gamma)
	}
}

// exchange carries the messages of one way: now, where nothing is known yet, or while the step goes on.
func (h *halo) exchange(f *traffic, what string, lane comm.Lane) {
	op := func(ctx context.Context, g *comm.Group) error {
		s, err := g.Stream(ctx, comm.Halo, what, lane)
		if err != nil {
			return err
		}
		giveAll(s, lane)
		for q := range lane.In {
			s.Ask(0, q)
		}
		return s.End()
	}
	switch {
	case f.known == nil:
		if h.err = op(h.ctx, h.group); h.err == nil {
			f.first(h.line)
		}
	case h.later != nil:
		h.later(op)
	default:
		h.err = op(h.ctx, h.group)
	}
}

// addStale is Add with the rows of the step before.
func (h *halo) addStale(z mat.Dense, near func(), add func(g *graph.CSR, nodes []int64, z mat.Dense)) {
	d, all := z.Cols, &h.stale.rows
	f := h.fetch(d, func(*block) bool { return true })
	out, in := make([]int, len(h.give)), make([]int, len(h.blocks))
	send, recv := make([]int, len(h.give)), make([]int, len(h.give))
	for q := range h.give {
		send[q] = f.given(q)
		out[q] = send[q] * d
	}
	for i, b := range h.blocks {
		in[i] = len(b.nodes) * d
		for _, q := range b.from {
			recv[q] = f.count(b, q)
		}
	}
	all.begin(h.line, out, in)
	for q, x := range all.out { // z changes before all of it has left
		for k := range send[q] {
			copy(x[k*d:][:d], f.out(z, q, k))
		}
	}
	h.exchange(all, h.what, h.coder.Lane(d, send, recv, func(to, k int) []float32 { return all.out[to][k*d:][:d] },
		func(from, k, at int, values []float32) {
			i := h.of[from]
			copy(all.next[i][(h.blocks[i].at[from]+k)*d+at:], values)
		}))
	if h.err != nil {
		return
	}
	near()
	for i, b := range h.blocks {
		add(b.g, b.nodes, mat.View(len(b.nodes), d, all.known[i]))
	}
}

// gradStale is AddGrad with the rows, and with what others found, of the step before.
func (h *halo) gradStale(dz mat.Dense, near func(), grad func(g *graph.CSR, nodes []int64, dz, z mat.Dense)) {
	d, all := dz.Cols, &h.stale.grads
	f := h.fetch(d, func(*block) bool { return true })
	out, in := make([]int, len(h.blocks)), make([]int, len(h.give))
	send, recv := make([]int, len(h.give)), make([]int, len(h.give))
	for q := range h.give {
		recv[q] = f.given(q)
		in[q] = recv[q] * d
	}
	for i, b := range h.blocks {
		out[i] = len(b.nodes) * d
		for _, q := range b.from {
			send[q] = f.count(b, q)
		}
	}
	all.begin(h.line, out, in)
	near()
	for i, b := range h.blocks {
		clear(all.out[i])
		grad(b.g, b.nodes, mat.View(len(b.nodes), d, all.out[i]), mat.View(len(b.nodes), d, h.stale.rows.known[i]))
	}
	h.exchange(all, "gradients of "+h.what, h.coder.Lane(d, send, recv, func(to, k int) []float32 {
		i := h.of[to]
		return all.out[i][(h.blocks[i].at[to]+k)*d:][:d]
	}, func(from, k, at int, values []float32) { copy(all.next[from][k*d+at:], values) }))
	if h.err != nil {
		return
	}
	for q, x := range all.known {
		for k := range recv[q] {
			f.back(dz, q, k, 0, x[k*d:][:d])
		}
	}
}
