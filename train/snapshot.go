package train

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
)

// Snapshot is what all members of a run have alike between two rounds: a checkpoint has it, and members without it
// fetch it. There are no rows in it.
type Snapshot struct {
	At      Position
	Labels  []float64   // label counts of all peers: labels.Counts.Sums
	Rounds  []float64   // what was measured: Result.Encode
	Stages  []float64   // the same
	Params  []float32   // of the whole model, if Slab has only a stage of it
	Heads   []float32   // of the stages that have ended, if the model does not keep them
	Slab    []float32   // parameters in training (nil = the initial ones)
	Best    []float32   // the best state so far, as long as Slab
	Steps   int64       // of the optimiser
	Moments [][]float32 // of the optimiser

	Agreed uint64 // generation in which the members agreed on it; it is not sent
}

// SnapshotShape bounds the snapshots of a run.
type SnapshotShape struct {
	Stages, Rounds int // of the run, and at most of a stage
	Labels, Params int // lengths
	Heads          int // length at most
	Slab           int // length of Slab at most
}

// Final is the round, after the last stage, of a model that all members have saved; 0 is a model that this peer has.
const Final = 1

// Final reports whether a final model has this position.
func (s SnapshotShape) Final(at Position) bool { return at.Stage == s.Stages }

// encode: u64 position (Position.Seq) · f64 best · f64 its loss · u64 its round + 1 · u64 steps · u32 n · n f64
// label counts · u32 n · n rounds of 5 f64 · u32 n · n stages of 6 f64 · u32 n · n f32 parameters · u32 n · n f32 of
// heads · u32 n · n f32 in training · n f32 of the best state · u32 m · m times: u32 n · n f32 moments.
func (s Snapshot) encode() (b []byte) {
	u64 := func(x uint64) { b = binary.LittleEndian.AppendUint64(b, x) }
	u32 := func(n int) { b = binary.LittleEndian.AppendUint32(b, uint32(n)) }
	f32s := func(x []float32) { b = append(b, comm.FloatBytes(x)...) }
	u64(s.At.Seq())
	u64(math.Float64bits(s.At.Best))
	u64(math.Float64bits(s.At.BestLoss))
	u64(uint64(s.At.BestRound + 1))
	u64(uint64(s.Steps))
	rows := func(x []float64, columns, kept int) {
		u32(len(x) / columns)
		for ; len(x) > 0; x = x[columns:] {
			for _, v := range x[:kept] {
				u64(math.Float64bits(v))
			}
		}
	}
	rows(s.Labels, 1, 1)
	rows(s.Rounds, roundColumns, roundColumns-sentColumns)
	rows(s.Stages, stageColumns, stageColumns-sentColumns)
	u32(len(s.Params))
	f32s(s.Params)
	u32(len(s.Heads))
	f32s(s.Heads)
	u32(len(s.Slab))
	f32s(s.Slab)
	f32s(s.Best)
	u32(len(s.Moments))
	for _, m := range s.Moments {
		u32(len(m))
		f32s(m)
	}
	return b
}

// Digest is what greetings compare. It leaves out what the best state measured: parameters and position identify a
// state.
func (s Snapshot) Digest() [32]byte {
	s.At.Best, s.At.BestLoss = 0, 0
	return sha256.Sum256(s.encode())
}

// maxMoments is how many vectors an optimiser keeps at most.
const maxMoments = 2

// most bounds the bytes of a snapshot: the message of a peer that announces more is refused.
func (s SnapshotShape) most() int {
	const round, stage = roundColumns - sentColumns, stageColumns - sentColumns
	return 5*8 + 8*(s.Labels+s.Stages*(s.Rounds*round+stage)) + (7+maxMoments)*4 +
		4*(s.Params+s.Heads+s.Slab*(2+maxMoments))
}

// parse reads a snapshot. b is a peer's: nothing in it is believed.
func (s SnapshotShape) parse(b []byte) (got Snapshot, err error) {
	r := snapshotReader{b: b}
	seq := r.u64()
	got.At = Position{Stage: int(seq >> 32), Round: int(uint32(seq)) - 1, Best: r.f64(), BestLoss: r.f64(),
		BestRound: int(min(r.u64(), 1<<30)) - 1}
	got.Steps = int64(r.u64())
	got.Labels = r.rows(1, 0)
	got.Rounds = r.rows(roundColumns-sentColumns, sentColumns)
	got.Stages = r.rows(stageColumns-sentColumns, sentColumns)
	got.Params = r.f32s(r.count(4))
	got.Heads = r.f32s(r.count(4))
	n := r.count(8)
	got.Slab, got.Best = r.f32s(n), r.f32s(n)
	for range r.count(4) {
		got.Moments = append(got.Moments, r.f32s(r.count(4)))
	}
	if r.short || len(r.b) > 0 {
		return Snapshot{}, fmt.Errorf("a state of %d bytes, some too many or too few", len(b))
	}
	if err := s.fits(got); err != nil {
		return Snapshot{}, err
	}
	for _, x := range append([][]float32{got.Params, got.Heads, got.Slab, got.Best}, got.Moments...) {
		for i, v := range x {
			if !(math.Abs(float64(v)) <= math.MaxFloat32) {
				return Snapshot{}, fmt.Errorf("a state with %g among its values, at %d of %d", v, i, len(x))
			}
		}
	}
	return got, nil
}

// fits reports what of a snapshot is not of a run of this shape.
func (s SnapshotShape) fits(got Snapshot) error {
	at := got.At
	switch {
	case at.Stage < 0 || at.Stage > s.Stages || at.Round < 0 || at.Round > s.Rounds || at.BestRound < -1 ||
		at.BestRound > s.Rounds:
		return fmt.Errorf("a state of stage %d, round %d, best of round %d: there are %d stages of %d rounds", at.Stage,
			at.Round, at.BestRound, s.Stages, s.Rounds)
	case at.Best != at.Best || at.BestLoss != at.BestLoss:
		return fmt.Errorf("a state whose best metric is not a number")
	case len(got.Labels) != s.Labels:
		return fmt.Errorf("a state must have %d label counts (got %d)", s.Labels, len(got.Labels))
	case slices.ContainsFunc(got.Labels, func(n float64) bool { return !(n >= 0 && n < 1<<53 && n == math.Trunc(n)) }):
		return fmt.Errorf("the label counts of a state must be whole numbers of at least 0 (got %v)", got.Labels)
	case len(got.Params) != s.Params:
		return fmt.Errorf("a state must have %d parameters (got %d)", s.Params, len(got.Params))
	case len(got.Heads) > s.Heads:
		return fmt.Errorf("a state must have at most %d values of heads (got %d)", s.Heads, len(got.Heads))
	case len(got.Slab) > s.Slab || len(got.Best) != len(got.Slab) || len(got.Moments) > maxMoments:
		return fmt.Errorf("a state must have at most %d parameters in training, as many of its best and %d moments "+
			"(got %d, %d and %d)", s.Slab, maxMoments, len(got.Slab), len(got.Best), len(got.Moments))
	}
	return nil
}

// countSent fills in the bytes that this peer has sent by each round and stage; peers do not send these to each other.
// They come from mine, its state before, or are sent, all bytes until now, for rounds that it took no part in.
func (s Snapshot) countSent(mine Snapshot, sent comm.Counts) {
	fill := func(rows, own []float64, columns int) {
		key := func(row []float64) [2]float64 { return [2]float64(row) } // stage and round
		known := map[[2]float64][]float64{}
		for ; len(own) > 0; own = own[columns:] {
			known[key(own)] = own[columns-sentColumns : columns]
		}
		for ; len(rows) > 0; rows = rows[columns:] {
			was, ok := known[key(rows)]
			if !ok {
				was = []float64{float64(sent.Halo), float64(sent.Reduce), float64(sent.Control)}
			}
			copy(rows[columns-sentColumns:columns], was)
		}
	}
	fill(s.Rounds, mine.Rounds, roundColumns)
	fill(s.Stages, mine.Stages, stageColumns)
}

// snapshotReader takes numbers off b; short reports that there were too few.
type snapshotReader struct {
	b     []byte
	short bool
}

func (r *snapshotReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, 8)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *snapshotReader) u32() uint32  { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *snapshotReader) u64() uint64  { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *snapshotReader) f64() float64 { return math.Float64frombits(r.u64()) }

// count reads how many things of size bytes follow; it returns 0 if b is too short for them.
func (r *snapshotReader) count(size int) int {
	n := int64(r.u32())
	if n*int64(size) > int64(len(r.b)) {
		r.short, r.b = true, nil
		return 0
	}
	return int(n)
}

// rows reads rows of `columns` numbers, and appends `zeros` zeros to each.
func (r *snapshotReader) rows(columns, zeros int) (x []float64) {
	for range r.count(8 * columns) {
		for range columns {
			x = append(x, r.f64())
		}
		x = append(x, make([]float64, zeros)...)
	}
	return x
}

func (r *snapshotReader) f32s(n int) []float32 {
	if 4*n > len(r.b) {
		r.short, r.b = true, nil
		return nil
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.take(4)))
	}
	return x
}
