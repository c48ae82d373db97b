package comm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// clipped computes a sum that a few members cannot dominate: each member receives the whole part of every other one and
// computes their ClippedSum by itself. M members together send M·(M−1) parts of at most 8·len(Counts) + 4·Columns +
// len(Update)·Bits/8 bytes by the door Reduce, and digests of what came by the door Control.
func (g *Group) clipped(ctx context.Context, c *Contribution) (Reduced, error) {
	r := Reduced{Meta: make([][]byte, g.size)}
	if len(c.Meta) > 0 || c.Columns < 1 || len(c.Counts) != c.Columns || len(c.Update)%c.Columns != 0 || c.Parts != nil || c.Residual != nil {
		panic(fmt.Sprintf("comm: Reduce %v: a clipped sum must have a count for each of its columns, no meta, parts or residual (got %d numbers in %d columns, %d counts)",
			c.ID, len(c.Update), c.Columns, len(c.Counts)))
	}
	if g.size == 1 {
		return r, nil
	}
	own, err := c.whole()
	if err != nil {
		return r, g.breakWith(fmt.Errorf("comm: %v: %w", c.ID, err)) // the others wait for a part that will not come
	}
	parts, err := g.SendRecv(ctx, Reduce, c.ID.String(), g.toOthers(own), len(own))
	if err != nil {
		return r, err
	}
	parts[g.rank] = own
	if err := g.agreeOn(ctx, c.ID, parts); err != nil {
		return r, err
	}
	means, weights := make([][]float32, 0, g.size), make([][]float64, 0, g.size)
	counts := make([]int64, c.Columns)
	for q := range g.size {
		part, apart, err := c.parse(parts[q])
		if err == nil && q != g.rank {
			err = c.checkPart(part, apart)
		}
		if err != nil {
			return r, &PeerError{Rank: q, Op: c.ID.String(), Err: err}
		}
		weight := make([]float64, c.Columns)
		for k, n := range part.Counts {
			weight[k], counts[k] = float64(n), counts[k]+n
		}
		for i, v := range part.Update {
			if w := weight[i%c.Columns]; w > 0 {
				part.Update[i] = float32(float64(v) / w)
			}
		}
		means, weights = append(means, part.Update), append(weights, weight)
	}
	copy(c.Counts, counts)
	return r, ClippedSum(ctx, c.Update, means, weights, c.Columns)
}

// toOthers returns b for every other member, in the form of SendRecv.
func (g *Group) toOthers(b []byte) [][]byte {
	out := make([][]byte, g.size)
	for q := range g.others {
		out[q] = b
	}
	return out
}

// agreeOn returns an error unless all members got the same parts.
func (g *Group) agreeOn(ctx context.Context, id ReduceID, parts [][]byte) error {
	h := sha256.New()
	for q := range g.size {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(parts[q]))))
		h.Write(parts[q])
	}
	mine := h.Sum(nil)
	digests, err := g.SendRecv(ctx, Control, "digest of the parts of "+id.String(), g.toOthers(mine), sha256.Size)
	if err != nil {
		return err
	}
	for q := range g.others {
		if !bytes.Equal(digests[q], mine) {
			return Refused("%v: peer %d got other parts than this peer: some peer sent different parts to different peers", id, q)
		}
	}
	return nil
}

// whole returns c's part as every other member gets it: i64 counts, with Bits f32 largest magnitudes by column, and the
// numbers on a grid of this part alone.
func (c *Contribution) whole() ([]byte, error) {
	wide := Contribution{Counts: c.Counts}
	b := wide.PackCounts(1).B
	if c.Bits == 0 {
		if !floatVector(c.Update).finite() {
			return nil, fmt.Errorf("a number of the update must be finite")
		}
		return append(b, floatBytes(c.Update)...), nil
	}
	form, err := c.Fixed(1)
	if err == nil {
		err = form.Agree(form.Magnitudes())
	}
	if err != nil {
		return nil, err
	}
	b = append(b, floatBytes(form.Magnitudes())...)
	return append(b, form.Integers().B...), nil
}

// parse is the inverse of whole for a part like c's. apart is the largest rounding error of each column.
func (c *Contribution) parse(b []byte) (part Contribution, apart []float64, err error) {
	part = Contribution{ID: c.ID, Update: make([]float32, len(c.Update)), Counts: make([]int64, len(c.Counts)), Bits: c.Bits, Columns: c.Columns}
	size, numbers := 8*len(c.Counts), 4*len(c.Update)
	if c.Bits > 0 {
		size, numbers = size+4*c.Columns, len(c.Update)*c.Bits/8
	}
	if len(b) != size+numbers {
		return part, nil, Refused("a part must have %d bytes (got %d)", size+numbers, len(b))
	}
	part.TakeCounts(Integers{64, b}, 1)
	if c.Bits == 0 {
		copy(part.Update, floats(b[size:]))
		return part, nil, nil
	}
	form, err := part.Fixed(1)
	if err == nil {
		magnitudes := floats(b[8*len(c.Counts) : size])
		if i := slices.IndexFunc(magnitudes, func(v float32) bool { return !(v >= 0 && v <= largest(1)) }); i >= 0 {
			return part, nil, Refused("a largest magnitude must be between 0 and %g (got %g)", largest(1), magnitudes[i])
		}
		err = form.Agree(magnitudes)
	}
	if err != nil {
		return part, nil, err
	}
	form.Take(Integers{c.Bits, b[size:]})
	return part, form.Error(), nil
}

// checkPart returns an error unless another member's part is within the limits.
func (c *Contribution) checkPart(part Contribution, apart []float64) error {
	for i, v := range part.Update {
		if v-v != 0 {
			return Refused("update[%d] must be finite (got %g)", i, v)
		}
		if c.UpdateLimit == nil {
			continue
		}
		slack := float32Error(float64(v))
		if apart != nil {
			slack += apart[i%c.Columns]
		}
		if err := c.UpdateLimit(i).refusal(float64(v), slack); err != nil {
			return err
		}
	}
	for i, n := range part.Counts {
		if n < 0 {
			return Refused("a count must be at least 0 (got %d)", n)
		}
		if c.CountLimit == nil {
			continue
		}
		if err := c.CountLimit(i).refusal(float64(n), 0); err != nil {
			return err
		}
	}
	if c.CheckPart == nil {
		return nil
	}
	return c.CheckPart(part.Update, part.Counts, apart)
}

// clippings is how many times ClippedSum moves its centre.
const clippings = 3

// ClippedSum sets sum to the total weight of each column times a mean that a few of the means cannot dominate: centred
// clipping (Karimireddy, He and Jaggi, ICML 2021). Number i of a mean is of column i modulo columns, and weights[m] are those
// of mean m by column. The centre begins at the weighted median of each number, and moves by the weighted mean of the
// differences to all means, clipped to their median length. The result has the same bits on every processor.
func ClippedSum(ctx context.Context, sum []float32, means [][]float32, weights [][]float64, columns int) error {
	center, order := make([]float64, len(sum)/columns), make([]int, 0, len(means))
	for c := range columns {
		if err := ctx.Err(); err != nil {
			return err
		}
		order = order[:0]
		all := 0.0
		for m := range means {
			if w := weights[m][c]; w > 0 {
				order, all = append(order, m), all+w
			}
		}
		for k := range center {
			center[k] = 0
			at, i := 0.0, k*columns+c
			slices.SortFunc(order, func(a, b int) int { return cmp.Compare(means[a][i], means[b][i]) })
			for j, m := range order {
				if at += weights[m][c]; at > all/2 {
					center[k] = float64(means[m][i])
					break
				} else if at == all/2 {
					center[k] = (float64(means[m][i]) + float64(means[order[j+1]][i])) / 2
					break
				}
			}
		}
		slices.Sort(order)
		for range clippings {
			moveClipped(center, means, weights, order, columns, c)
		}
		for k, v := range center {
			sum[k*columns+c] = float32(v * all)
		}
	}
	return nil
}

// moveClipped moves the centre of column c once. of lists the means whose weights are above 0.
func moveClipped(center []float64, means [][]float32, weights [][]float64, of []int, columns, c int) {
	length, all := make([]float64, len(of)), 0.0
	for j, m := range of {
		for k, v := range center {
			d := float64(means[m][k*columns+c]) - v
			length[j] += float64(d * d) // no fused operation: the same bits on every processor
		}
		length[j] = math.Sqrt(length[j])
		all += weights[m][c]
	}
	if all == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(length))
	most := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	move := make([]float64, len(center))
	for j, m := range of {
		f := weights[m][c] / all
		if length[j] > most {
			f *= most / length[j]
		}
		for k, v := range center {
			move[k] += float64(f * (float64(means[m][k*columns+c]) - v))
		}
	}
	for k, v := range move {
		center[k] += v
	}
}
