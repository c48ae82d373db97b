package recorded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/comm/wire"
	"github.com/heddle-gnn/heddle/internal/privacy/attack"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// Recovery is what an attack got out of rows of features.
type Recovery struct {
	attack.Recovery
	Claimed int // rows that the attack itself takes for right
	Many    int // of Exact: rows of more than attack.Few values other than 0
	Tested  int // of Tried: such rows

	Hits, Values int // columns guessed right, of the columns that are not 0
	Linear       int // the same, guessed by the best linear estimate
	Learned      int // the same, by what the attacker learned of its own nodes beside
	Base         int // the same without a row, guessed by column means of the node's class
	BaseLearned  int // the same, by what the attacker learned of its own nodes beside

	guesses []guessed // of each row whose columns were guessed with and without it
}

// score adds a guess of row i of x.
func (r *Recovery) score(x graph.Features, i int32, guess attack.Guess, claimed bool) {
	col, _ := attack.NonZeros(x, i)
	right := r.Score(x, i, guess)
	if claimed {
		r.Claimed++
	}
	if len(col) > attack.Few {
		r.Tested++
		if right {
			r.Many++
		}
	}
	r.Values += len(col)
	for _, j := range guess.Col {
		if _, found := slices.BinarySearch(col, j); found {
			r.Hits++
		}
	}
}

// guessed is how many columns of a row were guessed right, and how many it has.
type guessed struct{ values, linear, learned, base, baseLearned int }

// Gap returns by how much more of the columns the best of the guesses has than the baseline, and its standard error
// over rows.
func (r Recovery) Gap() (gap, deviation float64) {
	attack, base := r.Share()
	gap = attack - base
	square := 0.0
	for _, g := range r.guesses {
		with, without := g.linear, g.base
		if r.Learned > r.Linear {
			with = g.learned
		}
		if r.BaseLearned > r.Base {
			without = g.baseLearned
		}
		left := float64(with-without) - gap*float64(g.values) // of the linearised ratio
		square += left * left
	}
	return gap, math.Sqrt(square) / float64(max(r.Values, 1))
}

// Share returns the fraction of stored values whose columns the best of the guesses has, and the baseline's fraction.
func (r Recovery) Share() (attack, base float64) {
	n := float64(max(r.Values, 1))
	return float64(max(r.Hits, r.Linear, r.Learned)) / n, float64(max(r.Base, r.BaseLearned)) / n
}

// ComponentRows attacks at most `most` rows that a victim sends with encoder "pca": each is the direction of x·V for a
// V that is in every member's model (Dictionary.Even).
func (run *Run) ComponentRows(ctx context.Context, victim, most int) (Recovery, error) {
	var sum Recovery
	v := run.Model.Encoder.Proj
	if v == nil {
		return sum, errors.New("encoder must be pca")
	}
	own := run.Shards[victim]
	rows, err := run.Rows(victim, run.Model.Encoder.Spec.Out)
	if err != nil {
		return sum, err
	}
	components := rows[0].ColRange(0, v.W.Value.Cols) // columns of classes may follow them
	dictionary := attack.NewDictionary(v.W.Value)
	for i, of := range own.Boundary[run.Attacker] {
		if i == most {
			break
		}
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		y := components.Row(i)
		guess := dictionary.Even(y, run.Plan.Rows, components.Cols/2)
		noise, _ := attack.Noise(y, run.Plan.Rows)
		sum.score(own.X, of, guess, guess.Miss*guess.Miss <= 2*noise)
	}
	return sum, nil
}

// Rows returns the rows of `cols` columns that a victim sent the attacker of its boundary nodes, in the order of their
// messages.
func (run *Run) Rows(victim, cols int) ([]mat.Dense, error) {
	return run.RowsIn(run.Record.Received(victim, comm.Halo), len(run.Shards[victim].Boundary[run.Attacker]), cols)
}

// RowsIn returns the rows of n nodes and cols columns in messages, in their order.
func (run *Run) RowsIn(messages []Message, n, cols int) (all []mat.Dense, err error) {
	coding := comm.Coding{}
	if run.Plan.Rows != "float32" {
		coding = comm.Coding{Values: run.Plan.Rows, Columns: run.Plan.Method == plan.ClassMeans &&
			run.Plan.Rows != "bf16"}
	}
	if run.Plan.Compress == "zstd" {
		coding.Compress = "zstd"
	}
	coder := wire.New(coding)
	for _, m := range messages {
		switch {
		case m.Op == "exchange" && len(m.Payload) == 4*n*cols:
			x := mat.New(n, cols)
			for i := range x.Data {
				x.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(m.Payload[4*i:]))
			}
			all = append(all, x)
		case m.Op == "sendrecv":
			x, err := coder.Parse(m.Payload, n, cols)
			if err != nil {
				continue // of other columns
			}
			if x.Sparse != nil {
				x.Dense = x.Sparse.Dense()
			}
			all = append(all, x.Dense)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no message of %d rows of %d columns: exchange must be halo (got %s)", n, cols,
			run.Plan.Federation().Exchange)
	}
	return all, nil
}

// ComponentSum attacks the victim's part of the first product with the Gram matrix, XᵀXQ, as the owner of a chunk of
// this sum sees it: Q is Gaussian and known. If only one node of the site has a column, its row of XᵀXQ is a multiple
// of K+8 random measurements of that node: compressed sensing (Donoho 2006). A claim is right if it is a row of the
// victim.
func (run *Run) ComponentSum(ctx context.Context, victim int) (Recovery, error) {
	var sum Recovery
	own := run.Shards[victim]
	f := own.X.Cols()
	w := min(run.Plan.LayerWise.Encoder.K+8, f)
	if run.Plan.LayerWise.Encoder.Kind != "pca" || run.Plan.Federation().Sums != "float32" {
		return sum, errors.New("encoder must be pca and sums float32")
	}
	q := mat.New(f, w)
	key := rng.New(run.Plan.Seed).FoldString("pca")
	for i := range q.Data {
		q.Data[i] = float32(key.Normal(uint64(i)))
	}
	lo, hi := chunk(f*w, len(run.Shards), run.Attacker)
	part := run.part(victim, hi-lo)
	if part == nil {
		return sum, errors.New("the victim's part of the sum did not come")
	}
	dictionary := attack.NewDictionary(q)
	truth := make(map[string]bool) // the victim's rows
	for i := range own.Owned {
		col, _ := attack.NonZeros(own.X, int32(i))
		truth[fmt.Sprint(col)] = true
	}
	claimed := make(map[string]bool)
	y := make([]float32, w)
	for j := (lo + w - 1) / w; (j+1)*w <= hi; j++ {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		zero := true
		for i := range y {
			y[i] = part[j*w-lo+i]
			zero = zero && y[i] == 0
		}
		if zero {
			continue // no node of the site has the column
		}
		sum.Tried++
		guess := dictionary.Pursue(y, w/3, attack.Sound)
		if _, has := slices.BinarySearch(guess.Col, int32(j)); guess.Miss > attack.Sound || !has || !guess.Equal() {
			continue
		}
		name := fmt.Sprint(guess.Col)
		if claimed[name] {
			continue
		}
		claimed[name] = true
		sum.Claimed++
		if truth[name] {
			sum.Exact++
		}
	}
	return sum, nil
}

// part returns the first part of a sum of n numbers that the victim gave the attacker (nil = none came). It has numbers
// or, in secure sums, the masked integers as received.
func (run *Run) part(victim, n int) []float32 {
	for _, m := range run.Record.Received(victim, comm.Reduce) {
		x := make([]float32, n)
		switch {
		case !m.Given || n == 0:
			continue
		case len(m.Payload) == 4*n && !run.Plan.Secure(len(run.Shards)):
			for i := range x {
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(m.Payload[4*i:]))
			}
		case len(m.Payload) == 4*n:
			for i := range x {
				x[i] = float32(int32(binary.LittleEndian.Uint32(m.Payload[4*i:])))
			}
		case len(m.Payload) == 8*n:
			for i := range x {
				x[i] = float32(int64(binary.LittleEndian.Uint64(m.Payload[8*i:])))
			}
		default:
			continue
		}
		return x
	}
	return nil
}

// chunk is the part of a long sum of n numbers that one member owns (comm.Group.AllReduce).
func chunk(n, size, rank int) (lo, hi int) {
	q, rest := n/size, n%size
	return rank*q + min(rank, rest), (rank+1)*q + min(rank+1, rest)
}

// HiddenRows attacks at most `most` hidden rows that a victim sends with encoder "mlp". Every member has the weights: a
// row is a linear map of the features where it is positive (unhidden). The features must be zeros and one other value
// for each node.
func (run *Run) HiddenRows(ctx context.Context, victim, most int) (Recovery, error) {
	var sum Recovery
	layer := run.Model.Encoder.Layer
	if layer == nil || run.Plan.LayerWise.LayerOutput != "hidden" {
		return sum, errors.New("encoder must be mlp and layer_output hidden")
	}
	rows, err := run.Rows(victim, layer.Spec.Out)
	if err != nil {
		return sum, err
	}
	own := run.Shards[victim]
	for i, v := range own.Boundary[run.Attacker] {
		if i == most {
			break
		}
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		set := attack.Unhidden(layer, rows[0].Row(i))
		sum.score(own.X, v, attack.Evenly(set), len(set) > 0)
	}
	return sum, nil
}
