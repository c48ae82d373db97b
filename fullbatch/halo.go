package fullbatch

import (
	"context"
	"sync"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/train"
)

// haloLine exchanges halo rows with the other workers during a run.
type haloLine struct {
	ctx    context.Context
	group  *comm.Group
	sender *train.Sender
	fixed  bool // rows and gradients are added up in the same order in every run
	ahead  int  // blocks on their way while one is being computed

	spare     [][]float32 // memory of blocks that are finished, for reuse
	now, peak int         // numbers in memory for halo rows and their gradients
}

// take returns memory for n values.
func (l *haloLine) take(n int) []float32 {
	l.now += n
	l.peak = max(l.peak, l.now)
	for k, b := range l.spare {
		if cap(b) >= n {
			l.spare[k] = l.spare[len(l.spare)-1]
			l.spare = l.spare[:len(l.spare)-1]
			return b[:n]
		}
	}
	if k := len(l.spare); k > 0 {
		l.spare = l.spare[:k-1] // too short for this block
	}
	return make([]float32, n)
}

func (l *haloLine) drop(b []float32) {
	l.now -= len(b)
	l.spare = append(l.spare, b)
}

// halo is the set of sources of one layer that other workers own.
type halo struct {
	*haloLine
	what   string       // for errors
	give   [][]int32    // give[q]: own rows that peer q fetches
	sums   []*graph.CSR // sums[q]: sums of own rows that peer q fetches after the rows (nil = none)
	blocks []block      // in the order of the requests
	of     []int        // of[q]: the block that contains peer q's rows
	again  []bool       // again[q]: peer q fetches rows again if its gradient reads them
}

// block is a set of rows that is fetched and added up at once: one peer's rows, or all peers' rows.
type block struct {
	g     *graph.CSR
	nodes []int64
	from  []int // peers
	at    []int // at[q]: first row of peer q
	rows  []int // rows[q]: number of peer q's rows
	keep  bool  // the rows stay until the gradient has been computed
	kept  mat.Dense
}

// turns returns the other peers in the order in which this one fetches from them: the rank before its own first, so
// that no two peers begin with the same one. Gradients are sent to them in this order. They are received in the reverse
// order, in which the peers send them.
func turns(rank, size int) (fetch, take []int) {
	for r := 1; r < size; r++ {
		fetch, take = append(fetch, (rank+size-r)%size), append(take, (rank+r)%size)
	}
	return fetch, take
}

// sum adds the near block and every fetched block to a hop.
func (h *halo) sum(hop *aggregate.Hop) error {
	z := hop.Rows
	f := h.fetch(z.Cols, func(b *block) bool { return true })
	lane := f.lane(z, func(q int) bool { return true })
	var err error
	if f.stream, err = h.group.Stream(h.ctx, comm.Halo, h.what, lane); err != nil {
		return err
	}
	giveAll(f.stream, lane)
	f.beginFetch()
	hop.Near()
	for b, rows, ok := f.next(); ok; b, rows, ok = f.next() {
		hop.Add(b.g, b.nodes, rows)
		if b.keep {
			b.kept = rows
			f.ask()
		} else {
			f.done(rows)
		}
	}
	return f.stream.End()
}

// grad runs the backward pass of a hop over the near block and every other block, whose rows are fetched if the pass
// reads them. It sends the gradients to the rows' owners.
func (h *halo) grad(hop *aggregate.HopGrad) error {
	dz, z, reads := hop.Grad, hop.Rows, hop.NeedsSource()
	f := h.fetch(dz.Cols, func(b *block) bool { return reads && !b.keep })
	rows := f.lane(z, func(q int) bool { return reads && h.again[q] })
	out := queue{halo: h, left: make([]int, len(h.blocks)), of: make([][]float32, len(h.blocks))}
	send, recv := make([]int, len(h.give)), make([]int, len(h.give))
	for q := range f.give {
		recv[q] = f.given(q)
	}
	for i, b := range h.blocks {
		for _, q := range b.from {
			if send[q] = b.rows[q]; send[q] > 0 && dz.Cols > 0 {
				out.left[i]++
			}
		}
	}
	var adding sync.Mutex
	grads := h.sender.Lane(dz.Cols, send, recv, func(to, k int) []float32 {
		i := h.of[to]
		b := &h.blocks[i]
		return out.of[i][(b.at[to]+k)*dz.Cols:][:dz.Cols]
	}, func(from, k, at int, values []float32) {
		adding.Lock()
		defer adding.Unlock()
		f.back(dz, from, k, at, values)
	})
	s, err := h.group.Stream(h.ctx, comm.Halo, "gradients of "+h.what, rows, grads)
	if err != nil {
		return err
	}
	f.stream, out.stream = s, s
	giveAll(s, rows)
	f.beginFetch()
	hop.Near()
	_, take := turns(h.group.Rank(), h.group.Size())
	if h.fixed {
		s.AskInTurn(1, take)
	} else {
		for _, q := range take {
			s.Ask(1, q)
		}
	}
	f.grads(hop, &out)
	err = s.End()
	out.clear()
	return err
}

// grads runs the backward pass of a hop over every block and queues the block's gradient for sending.
func (f *fetching) grads(hop *aggregate.HopGrad, out *queue) {
	for b, rows, ok := f.next(); ok; b, rows, ok = f.next() {
		inPlace := f.wanted(b) && hop.TakesPlace()
		if !out.wait() {
			return
		}
		dzb := rows
		if !inPlace {
			dzb = mat.View(len(b.nodes), hop.Grad.Cols, out.zeros(len(b.nodes)*hop.Grad.Cols))
		}
		out.hold(f.at, dzb.Data)
		hop.Add(b.g, b.nodes, dzb, rows)
		switch {
		case inPlace:
		case f.wanted(b):
			f.done(rows)
		case hop.NeedsSource():
			f.drop(b.kept.Data)
			b.kept = mat.Dense{}
		}
		for _, q := range b.from {
			f.stream.Give(1, q)
		}
		if out.left[f.at] == 0 {
			out.release(f.at)
		}
		if inPlace { // the next block is requested once there is memory for it
			if !out.wait() {
				return
			}
			f.ask()
		}
	}
}

// fetching receives the rows of blocks.
type fetching struct {
	*halo
	stream *comm.Stream
	cols   int
	wanted func(*block) bool // whether a block has to be fetched; else it is in memory, or is not read
	bufs   [][]float32       // [block] being filled
	left   []int             // [block] number of peers whose rows are missing
	asked  int               // number of blocks requested so far, in order
	taken  []bool            // [block] next has returned the block
	at     int               // index of the block that next returned last
	room   [][]float32       // [q] memory of a sum that is being sent to peer q
}

func (h *halo) fetch(cols int, wanted func(*block) bool) *fetching {
	n := len(h.blocks)
	return &fetching{halo: h, cols: cols, wanted: wanted, bufs: make([][]float32, n), left: make([]int, n),
		taken: make([]bool, n), room: make([][]float32, len(h.give))}
}

// lane is lane 0 of a stream: it sends rows of z to the peers that `sends` selects and receives rows of the wanted
// blocks.
func (f *fetching) lane(z mat.Dense, sends func(q int) bool) comm.Lane {
	send, recv := make([]int, len(f.give)), make([]int, len(f.give))
	for q := range f.give {
		if sends(q) {
			send[q] = f.given(q)
		}
	}
	for i := range f.blocks {
		if b := &f.blocks[i]; f.wanted(b) {
			for _, q := range b.from {
				recv[q] = b.rows[q]
			}
		}
	}
	return f.sender.Lane(f.cols, send, recv, func(to, k int) []float32 { return f.out(z, to, k) },
		func(from, k, at int, values []float32) {
			i := f.of[from]
			copy(f.bufs[i][(f.blocks[i].at[from]+k)*f.cols+at:], values)
		})
}

// beginFetch requests the first blocks.
func (f *fetching) beginFetch() {
	for range 1 + f.ahead {
		f.ask()
	}
}

// ask requests the next block that has to be fetched.
func (f *fetching) ask() {
	for f.asked < len(f.blocks) {
		i := f.asked
		b := &f.blocks[i]
		f.asked++
		if !f.wanted(b) {
			continue
		}
		f.bufs[i] = f.haloLine.take(len(b.nodes) * f.cols)
		for _, q := range b.from {
			if b.rows[q] > 0 {
				f.left[i]++
				f.stream.Ask(0, q)
			}
		}
		return
	}
}

// next returns a block and its rows: the next block in order, or the first one that has arrived. Rows that are not read
// are empty. If ok is false, all blocks have been returned or the operation has failed.
func (f *fetching) next() (b *block, rows mat.Dense, ok bool) {
	for {
		waits := false
		for i := range f.blocks {
			if f.taken[i] {
				continue
			}
			b := &f.blocks[i]
			if rows = b.kept; !f.wanted(b) || f.bufs[i] != nil && f.left[i] == 0 {
				if f.wanted(b) {
					rows = mat.View(len(b.nodes), f.cols, f.bufs[i])
				}
				f.taken[i], f.at = true, i
				return b, rows, true
			}
			waits = true
			if f.fixed {
				break
			}
		}
		if !waits {
			return nil, mat.Dense{}, false
		}
		q, ok := f.stream.Next(0)
		if !ok {
			return nil, mat.Dense{}, false
		}
		f.left[f.of[q]]--
	}
}

// done releases a block's memory and requests another block.
func (f *fetching) done(rows mat.Dense) {
	f.haloLine.drop(rows.Data)
	f.ask()
}

// queue sends the gradients of blocks to the owners of the rows. It has at most one gradient more than haloLine.ahead.
type queue struct {
	*halo
	stream *comm.Stream
	of     [][]float32 // [block] gradients
	left   []int       // [block] number of peers that have not got theirs yet
	held   int
}

// wait waits until there is memory for one more gradient; it returns false if the operation has failed.
func (o *queue) wait() bool {
	for o.held > o.ahead {
		q, ok := o.stream.Sent(1)
		if !ok {
			return false
		}
		k := o.halo.of[q]
		if o.left[k]--; o.left[k] == 0 {
			o.release(k)
		}
	}
	return true
}

// zeros returns memory for a gradient.
func (o *queue) zeros(n int) []float32 {
	b := o.take(n)
	clear(b)
	return b
}

// hold keeps the memory of block i's gradient until the gradient has been sent.
func (o *queue) hold(i int, b []float32) {
	o.of[i] = b
	o.held++
}

func (o *queue) release(i int) {
	o.drop(o.of[i])
	o.of[i] = nil
	o.held--
}

// clear releases the memory of all remaining gradients, also after a failure.
func (o *queue) clear() {
	for i, b := range o.of {
		if b != nil {
			o.release(i)
		}
	}
}

func giveAll(s *comm.Stream, lane comm.Lane) {
	for q, n := range lane.Out {
		if n > 0 {
			s.Give(0, q)
		}
	}
}
