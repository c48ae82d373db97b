package fullbatch

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/train"
)

// What the reductions of a run sum. With generation, epoch and step (comm.ReduceID) no two IDs are the same.
const (
	ofLabels     = "label counts"
	ofLinks      = "counts of links"
	ofMemory     = "workers short of memory"
	ofHops       = "workers with dense sums" // the step is the hop
	ofEdges      = "edges of a split's view" // the step is the split
	ofGradient   = "gradient"                // the step is the bucket
	ofStatistics = "batch norm statistics"   // the step counts the sums
	ofValidation = "validation"
	ofResult     = "result" // the step is the split
	ofSmoothing  = "residuals to smooth"
)

// sumCounts adds counts up over the workers.
func sumCounts(ctx context.Context, r comm.Reducer, id comm.ReduceID, n []int64) error {
	_, err := r.Reduce(ctx, &comm.Contribution{ID: id, Counts: n})
	return err
}

// bucket is the least number of gradients that are summed at once: a megabyte, so that the latency of two messages
// matters little.
const bucket = 1 << 18

// reduction sums the workers' gradients during the backward pass. Gradients of the last layers are summed while
// gradients of earlier layers are computed and rows are sent (Li et al., PyTorch Distributed, VLDB 2020, §3.2.3). Sums
// are by element, so that their bits do not depend on which gradients are summed together.
type reduction struct {
	t      *Trainer
	r      comm.Reducer // sums the last gradients, when no rows are sent any more
	beside *comm.Group  // sums the earlier ones (nil = all are summed at the end)
	ctx    context.Context
	cancel context.CancelFunc
	work   chan *comm.Contribution
	done   chan error
	hi     int // gradients from this index on are already being summed
	parts  int // number of buckets so far

	// The loss, and a checksum of each worker's parameters, are sent with the first gradients.
	loss    [eval.RealLen]int64
	digests [][]byte // checksum of each worker's parameters, by rank
}

// reduction begins the sums of a step with this worker's loss. All gradients are summed at the end, through r, unless r
// is the group itself. The group then has a second group for earlier sums (comm.Group.Dup).
func (t *Trainer) reduction(ctx context.Context, r comm.Reducer) *reduction {
	s := &reduction{t: t, r: r, hi: len(t.Params.Grad), work: make(chan *comm.Contribution, len(t.units)),
		done: make(chan error, 1)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if t.beside {
		s.beside = t.line.group.Dup()
	}
	go func() {
		var err error
		for c := range s.work {
			if err == nil {
				err = s.reduce(s.beside, c)
			}
		}
		s.done <- err
	}()
	return s
}

// ready reports that the gradients of unit k, and of all units after it, are complete. It returns after the gradients
// of the first unit have been summed.
func (s *reduction) ready(k int) error {
	lo := s.t.begins[k]
	if k > 0 && (s.beside == nil || s.hi-lo < s.t.bucket) {
		return nil
	}
	c := &comm.Contribution{ID: s.t.ID(ofGradient, s.parts), Update: s.t.Params.Grad[lo:s.hi]}
	if s.parts == 0 {
		c.Counts, c.Meta = s.loss[:], s.t.Digest()
	}
	s.hi = lo
	s.parts++
	if k == 0 {
		return s.reduce(s.r, c)
	}
	s.work <- c
	return nil
}

func (s *reduction) reduce(r comm.Reducer, c *comm.Contribution) error {
	sums, err := r.Reduce(s.ctx, c)
	if c.ID.Step == 0 {
		s.digests = sums.Meta
	}
	return err
}

// end waits for the sums and returns their error, or the backward pass's error err.
func (s *reduction) end(err error) error {
	if err != nil {
		s.cancel()
	}
	close(s.work)
	sum := <-s.done
	s.cancel()
	var lost *comm.PeerError
	if err == nil || errors.As(sum, &lost) && !errors.As(err, &lost) {
		return sum
	}
	return err
}

// sum returns the loss of all workers, and checks that they have the same parameters.
func (s *reduction) sum() (float64, error) {
	if err := s.t.Alike(s.digests); err != nil {
		return 0, err
	}
	loss := eval.Real(s.loss[:])
	if loss != loss {
		return 0, train.ErrDiverged
	}
	return loss, nil
}

// begins returns, for each unit, the index in the slab from which all gradients are complete after its backward pass.
// They belong to this unit, to a later one, or to none.
func begins(params []*tape.Param, units []unit) []int {
	of := make(map[*tape.Param]int)
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
