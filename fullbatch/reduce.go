package fullbatch

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn"
)

// bucket is the least number of gradients that are summed at once: a megabyte, beside which the two trips of a sum cost
// little.
const bucket = 1 << 18

// reduction adds up what the workers have in t.sum while the backward pass goes on: as soon as the gradients of the last
// layers are whole, while those of the layers before are computed and their rows travel (Li et al., PyTorch Distributed,
// VLDB 2020, §3.2.3). A sum is taken element by element, so that its bits do not depend on what it is taken with.
type reduction struct {
	t      *Trainer
	r      comm.Reducer
	cancel context.CancelFunc
	work   chan func(ctx context.Context, g *comm.Group) error
	done   chan error
	hi     int // of t.sum: what lies from here on has been handed over
}

// reduction begins the sums of a step. r is called for the whole at once, when no rows travel any more, unless it is the
// group itself, which has another one beside it.
func (t *Trainer) reduction(ctx context.Context, r comm.Reducer) *reduction {
	s := &reduction{t: t, r: r, hi: len(t.sum), work: make(chan func(context.Context, *comm.Group) error, 3*len(t.units)+1), done: make(chan error, 1)}
	ctx, s.cancel = context.WithCancel(ctx)
	g := t.line.group
	if t.beside {
		g = g.Beside()
		s.r, t.line.later = g, func(op func(context.Context, *comm.Group) error) { s.work <- op }
	}
	go func() {
		var err error
		for op := range s.work {
			if err == nil {
				err = op(ctx, g)
			}
		}
		s.done <- err
	}()
	return s
}

// ready says that the gradients of unit k, and of all behind it, are whole.
func (s *reduction) ready(k int) {
	lo := s.t.begins[k]
	if k > 0 && (!s.t.beside || s.hi-lo < s.t.bucket) {
		return
	}
	part := s.t.sum[lo:s.hi]
	s.hi = lo
	s.work <- func(ctx context.Context, _ *comm.Group) error {
		_, err := s.r.Reduce(ctx, uint64(s.t.at.Epoch), part)
		return err
	}
}

// end waits for the sums and returns what went wrong in them or, before, in the backward pass.
func (s *reduction) end(err error) error {
	if err != nil {
		s.cancel()
	}
	close(s.work)
	s.t.line.later = nil
	sum := <-s.done
	s.cancel()
	var lost *comm.PeerError
	if err == nil || errors.As(sum, &lost) && !errors.As(err, &lost) {
		return sum
	}
	return err
}

// begins returns, by unit, where in the slab the gradients begin that are whole when its backward pass is done: all
// that belongs to it or a later one, or to none.
func begins(params []*nn.Param, units []unit) []int {
	of := make(map[*nn.Param]int)
	for k, u := range units {
		list := u.layer.Params()
		if u.head != nil {
			list = append(list, u.head.Params()...)
		}
		for _, p := range list {
			of[p] = k
		}
	}
	at, all := 0, make([]int, len(units))
	for _, p := range params {
		at += p.Value.Rows * p.Value.Cols
		if k, ok := of[p]; ok {
			for later := k + 1; later < len(units); later++ {
				all[later] = at
			}
		}
	}
	return all
}
