package retexo

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
)

// stage is one stage in training: its parameters in a slab, its frozen inputs in batches.
type stage struct {
	layer *nn.Layer
	head  nn.Rows // turns hidden rows into scores; nil: they are the scores
	slab  *nn.Slab
	opt   *optim.Optimizer // nil: ridge
	best  []float32        // the best state's parameters

	train, val, test batch
	order            []int32 // straggler adapt: training nodes in the order in which shares of them are taken; nil: not yet needed
	tape, infer      *nn.Tape
	sum              []float32   // what a round reduces: update (in the slab's gradients), tally of training and validation, digests
	count            float64     // labels in sum's update
	weight           []float32   // of each class, or nil
	solutions        []mat.Dense // ridge: one a penalty, all of them in solved
	solved           []float32

	// Several local steps: what the round began with, so that one that does not commit leaves no trace.
	start   []float32
	moments [][]float32
	steps   int64
	round   int // whose steps were taken but not applied; −1: none
}

// batch is some owned nodes with what the layer computes their rows from.
type batch struct {
	in     nn.Input
	labels graph.Labels
	rows   int
}

func newBatch(v *view, l *nn.Layer, s *partition.Shard, split graph.Split) batch {
	return batchOf(v, l, s, nodesOf(s, split))
}

// nodesOf lists the owned nodes of a split.
func nodesOf(s *partition.Shard, split graph.Split) (rows []int32) {
	for i, sp := range s.Split {
		if sp == split {
			rows = append(rows, int32(i))
		}
	}
	return rows
}

func batchOf(v *view, l *nn.Layer, s *partition.Shard, rows []int32) batch {
	return batch{in: v.batch(l, s, rows), labels: s.Labels.Select(rows), rows: len(rows)}
}

// selectionBins is the resolution of AUC and AP while states are compared, every round: 4 floats a bin and ranking.
// What is reported at a stage's end has eval.DefaultBins.
const selectionBins = 256

// tally writes to v what b's rows, scored, add to the metric and the mean loss.
func (b batch) tally(t eval.Tally, v []float32, scores mat.Dense) {
	sum, count := nn.Loss(mat.Dense{}, scores, b.labels, nil)
	t.Write(v, sum, count, scores, b.labels)
}

// forward returns the scores of b's nodes in inference; they are valid until the next call.
func (st *stage) forward(b batch) mat.Dense {
	t := st.infer
	t.Reset()
	h := t.Scratch(b.rows, st.layer.Spec.Out)
	st.layer.Forward(h, b.in, t)
	if st.head == nil {
		return h
	}
	_, classes := st.head.Dims()
	scores := t.Scratch(b.rows, classes)
	st.head.Forward(scores, h, t)
	return scores
}

// gradient leaves in the slab the gradient of the loss summed over b.
func (st *stage) gradient(b batch, key rng.Key) (sum, count float64) {
	st.slab.ZeroGrad()
	if b.rows == 0 {
		return 0, 0
	}
	t := st.tape
	t.Reset()
	t.Key = key
	width := st.layer.Spec.Out
	h := t.Scratch(b.rows, width)
	st.layer.Forward(h, b.in, t)
	if st.head == nil {
		dh := t.Scratch(b.rows, width)
		sum, count = nn.Loss(dh, h, b.labels, st.weight)
		st.layer.Backward(mat.Dense{}, dh, t)
		return sum, count
	}
	_, classes := st.head.Dims()
	t.Nodes = b.in.Nodes[:b.rows] // destinations are the first sources
	scores, dscores, dh := t.Scratch(b.rows, classes), t.Scratch(b.rows, classes), t.Scratch(b.rows, width)
	st.head.Forward(scores, h, t)
	sum, count = nn.Loss(dscores, scores, b.labels, st.weight)
	dh.Zero()
	st.head.Backward(dh, dscores, t)
	st.layer.Backward(mat.Dense{}, dh, t)
	return sum, count
}

// update leaves in st.sum what this peer adds to the round: the gradient (one local step), or the way that several
// local steps went, times the labels that they stand for. Steps are computed from b, each of whose nodes stands for that
// many training nodes. It returns the first step's loss.
func (st *stage) update(c Config, b batch, each float64, key rng.Key, round int) (sum, count float64) {
	if c.LocalSteps == 1 {
		sum, count = st.gradient(b, key.Fold(0))
		if each != 1 {
			kernels.Scale(float32(each), st.slab.Grad)
		}
		return each * sum, each * count
	}
	copy(st.start, st.slab.Value)
	st.round = round
	var moments [][]float32
	st.steps, moments = st.opt.State()
	for i, m := range moments {
		copy(st.moments[i], m)
	}
	for step := range c.LocalSteps {
		s, k := st.gradient(b, key.Fold(uint64(step)))
		if k == 0 {
			break
		}
		if step == 0 {
			sum, count = each*s, each*k
		}
		st.opt.StepScaled(st.slab.Value, st.slab.Grad, float32(1/k), c.Optimizer.LR*c.Schedule.At(round*c.LocalSteps+step))
	}
	w := float32(count)
	for i, v := range st.slab.Value {
		st.sum[i] = w * (v - st.start[i])
	}
	copy(st.slab.Value, st.start)
	return sum, count
}

// keep remembers the state that the round at hand started from and validated.
func (st *stage) keep() { copy(st.best, st.slab.Value) }

// swap exchanges the parameters at hand for those of the best state.
func (st *stage) swap() {
	for i, v := range st.best {
		st.best[i], st.slab.Value[i] = st.slab.Value[i], v
	}
}

// carry computes what the next stage sees of n owned nodes: hidden rows, or the head's scores.
func (st *stage) carry(in nn.Input, n int, what string) mat.Dense {
	h := mat.New(n, st.layer.Spec.Out)
	st.layer.Forward(h, in, nil)
	if what != "scores" || st.head == nil {
		return h
	}
	_, classes := st.head.Dims()
	scores := mat.New(n, classes)
	st.head.Forward(scores, h, nil)
	return scores
}

// apply makes the round's sum over all peers, of count labels, the next parameters.
func (st *stage) apply(c Config, round int, count float64) {
	st.round = -1
	mean := float32(1 / count)
	if c.LocalSteps == 1 {
		st.opt.StepScaled(st.slab.Value, st.slab.Grad, mean, c.Optimizer.LR*c.Schedule.At(round))
		return
	}
	kernels.Axpy(mean, st.slab.Grad, st.slab.Value)
}

// undo forgets local steps of a round that did not commit.
func (st *stage) undo(c Config) error {
	if c.LocalSteps == 1 || st.round < 0 {
		return nil
	}
	st.round = -1
	return st.opt.Restore(st.steps, st.moments)
}

// digest returns 24 bits that name x: as many as a float32 carries exactly. They are of a CRC-32C, for which processors
// have an instruction.
func digest(x []float32) uint32 {
	b, ok := kernels.Bytes(x)
	if !ok {
		b = make([]byte, 0, 4*len(x))
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return crc32.Checksum(b, castagnoli) >> 8
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
