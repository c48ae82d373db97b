package aggregate

import (
	"slices"
	"sort"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

const (
	batchLen = 1 << 13 // values of a matrix in a batch, which fit in a core's cache
	// batches that are computed at the same time; it sets the order in which gradients are summed
	messageLanes   = 8
	scatterColumns = 32 // columns of the destinations' gradient that one core sums
)

// messageLoop processes the edges of a block in rounds, with one batch for each lane. Edges are ordered by destination
// in the forward pass and by source in the backward pass, so that the edges of a row are adjacent. Cores compute the
// batches of a round and reduce the rows with all edges in one batch. Then they reduce the rows with edges in several
// batches, and the gradients of the destinations, by columns. So no two cores write to the same memory, and every sum
// has the order of the edges.
type messageLoop struct {
	f         *EdgeMessages
	acc, dacc *Acc // dacc is nil in the forward pass
	g         *graph.CSR
	rowPtr    []int64 // row pointers of g, or of its transpose
	col       []int32
	places    []int32 // [edge of the transpose] its index in g
	z         mat.Dense
	base      int       // number of edges in earlier blocks
	into      mat.Dense // result of the reduction

	size    int // edges of a batch
	width   int // columns of z
	to      int // edges before the next batch
	used    int // lanes with a batch in this round
	scatter bool
	lane    []messageLane
	all     []int32 // 0, 1, …: indices of the messages in a batch
	ptr     []int64 // 0, 1, …, one element more
}

// messageLane is one batch, and the work that it leaves until after the round.
type messageLane struct {
	EdgeBatch
	room   []float32
	row    []int32   // [edge] its row
	weight []float32 // [edge] its weight, in a batch by source
	from   int       // first edge
	to     int       // edge after the last one
	first  int       // a row at or before its first edge's row
	ptr    []int64   // pointers of the rows that are reduced at once
	arg    []int32   // edges of their maxima
	at     []int32   // [edge] its index among all edges, in the backward pass of a maximum
	carry  [2]carry
}

// carry is a partial reduction of a row that also has edges in other batches.
type carry struct {
	row int // −1 = none
	sum []float32
	arg []int32
}

// loop returns the loop over the edges of a block, in acc's memory.
func (f *EdgeMessages) loop(acc *Acc, g *graph.CSR, z mat.Dense, base int) *messageLoop {
	if f.EdgeWidth > 0 && (acc.EdgeX.Cols != f.EdgeWidth || g.Edge == nil && len(g.Col) > 0) {
		panic(shapeFault("columns of the edges for Messages", acc.EdgeX.Cols, f.EdgeWidth))
	}
	if acc.messages == nil {
		acc.messages = new(messageLoop)
	}
	w := acc.messages
	*w = messageLoop{f: f, acc: acc, g: g, rowPtr: g.RowPtr, col: g.Col, z: z, base: base, lane: w.lane, all: w.all,
		ptr: w.ptr, width: z.Cols}
	w.begin()
	return w
}

// loopBack is loop for the backward pass.
func (f *EdgeMessages) loopBack(acc, dacc *Acc, g *graph.CSR, z mat.Dense) *messageLoop {
	w := acc.messages
	tr := acc.patterns().Transpose(g.RowPtr, g.Col, g.NumSrc)
	*w = messageLoop{f: f, acc: acc, dacc: dacc, g: g, rowPtr: tr.RowPtr, col: tr.Col, places: tr.Places(), z: z,
		base: acc.base(g), lane: w.lane, all: w.all, ptr: w.ptr, width: z.Cols}
	w.begin()
	return w
}

func (w *messageLoop) begin() {
	w.size = max(1, batchLen/max(w.z.Cols, w.acc.sum.Cols, w.f.EdgeWidth, 1))
	lanes := min(messageLanes, (len(w.col)+w.size-1)/w.size)
	for len(w.lane) < lanes {
		w.lane = append(w.lane, messageLane{})
	}
	w.lane = w.lane[:lanes]
	for k := range w.lane {
		w.lane[k].begin(w)
	}
	for k := len(w.all); k < w.size; k++ {
		w.all = append(w.all, int32(k))
	}
	for k := len(w.ptr); k <= w.size; k++ {
		w.ptr = append(w.ptr, int64(k))
	}
}

// begin allocates the batches.
func (l *messageLane) begin(w *messageLoop) {
	f, n, in, out, dst := w.f, w.size, w.z.Cols, w.acc.sum.Cols, 0
	if f.ReadsDst {
		dst = w.acc.dst.Cols
	}
	size := n*(in+out+dst+f.EdgeWidth) + 2*max(out, in)
	if w.dacc != nil {
		size += n * (in + out + dst)
		for _, p := range f.Parameters {
			size += p.Value.Rows * p.Value.Cols
		}
	}
	l.room = slices.Grow(l.room[:0], size)[:size]
	l.row, l.weight = slices.Grow(l.row[:0], n)[:n], slices.Grow(l.weight[:0], n)[:n]
	room := l.room
	take := func(rows, cols int) mat.Dense {
		if cols == 0 {
			return mat.Dense{}
		}
		m := mat.View(rows, cols, room[:rows*cols:rows*cols])
		room = room[rows*cols:]
		return m
	}
	grads := l.Grads[:0]
	l.EdgeBatch = EdgeBatch{Src: take(n, in), Dst: take(n, dst), Edge: take(n, f.EdgeWidth), M: take(n, out)}
	for k := range l.carry {
		c := &l.carry[k]
		c.sum = take(1, max(out, in)).Data
		if f.Reduce == MaxOf {
			c.arg = slices.Grow(c.arg[:0], out)[:out]
		}
	}
	if w.dacc != nil {
		l.DM, l.DSrc, l.DDst = take(n, out), take(n, in), take(n, dst)
		for _, p := range f.Parameters {
			d := take(p.Value.Rows, p.Value.Cols)
			d.Zero()
			grads = append(grads, d)
		}
	}
	l.Grads = grads
}

// run processes all edges and reduces the messages, or the gradients of the sources, into rows of into. If into has no
// columns, these are not wanted.
func (w *messageLoop) run(into mat.Dense) {
	w.into = into
	for row := 0; w.to < len(w.col); {
		w.used, w.scatter = 0, false
		for w.used < len(w.lane) && w.to < len(w.col) {
			l := &w.lane[w.used]
			l.from, w.to = w.to, min(w.to+w.size, len(w.col))
			l.first, row = row, w.rowAt(row, w.to)
			if start := int(w.rowPtr[row]); w.to < len(w.col) && start > l.from+w.size/2 {
				w.to = start // whole rows need no carry
			}
			l.to = w.to
			w.used++
		}
		kernels.Parallel(w, w.used)
		for k := range w.used {
			w.lane[k].mergeCarries(w)
		}
		if w.dacc != nil && w.f.ReadsDst {
			w.scatter = true
			kernels.Parallel(w, (w.dacc.dst.Cols+scatterColumns-1)/scatterColumns)
		}
	}
}

// rowAt returns the row of an edge, or of the last edge at the end. The row is at or after the given one.
func (w *messageLoop) rowAt(row, edge int) int {
	edge = min(edge, len(w.col)-1)
	return row + sort.Search(len(w.rowPtr)-1-row, func(i int) bool { return w.rowPtr[row+i+1] > int64(edge) })
}

// Run computes one batch, or sums some columns of the destinations' gradient.
func (w *messageLoop) Run(part int) {
	if w.scatter {
		w.scatterTo(part*scatterColumns, min((part+1)*scatterColumns, w.dacc.dst.Cols))
		return
	}
	l := &w.lane[part]
	l.fill(w)
	if w.dacc == nil || !w.f.Linear {
		l.gather(w)
		w.f.Message(&l.EdgeBatch)
	}
	if w.dacc == nil {
		l.reduce(w, l.M)
		return
	}
	l.fillGrad(w)
	w.f.Gradient(&l.EdgeBatch)
	l.reduce(w, l.DSrc)
}

// gather gathers the rows of both ends of a batch's edges.
func (l *messageLane) gather(w *messageLoop) {
	src, dst := w.far(l), l.row
	if w.dacc != nil {
		src, dst = dst, src
	}
	w.gatherRows(l.Src, w.z, src)
	if w.f.ReadsDst {
		w.gatherRows(l.Dst, w.acc.dst, dst)
	}
}

// fill gathers the edges' columns and weights.
func (l *messageLane) fill(w *messageLoop) {
	n := l.to - l.from
	l.rows(n)
	for i, k := w.rowAt(l.first, l.from), 0; k < n; i++ {
		for end := min(n, int(w.rowPtr[i+1])-l.from); k < end; k++ {
			l.row[k] = int32(i)
		}
	}
	for k := range l.Edge.Rows {
		if e := w.g.Edge[w.place(l, k)]; e >= 0 {
			copy(l.Edge.Row(k), w.acc.EdgeX.Row(int(e)))
		} else {
			clear(l.Edge.Row(k))
		}
	}
	switch {
	case w.g.Weight == nil:
		l.Weight = nil
	case w.places == nil:
		l.Weight = w.g.Weight[l.from : l.from+n : l.from+n]
	default:
		l.Weight = l.weight[:n]
		for k := range l.Weight {
			l.Weight[k] = w.g.Weight[w.place(l, k)]
		}
	}
}

// far returns the other ends of a batch's edges.
func (w *messageLoop) far(l *messageLane) []int32 { return w.col[l.from : l.from+len(l.row)] }

// place returns the index in the block of a batch's edge.
func (w *messageLoop) place(l *messageLane, k int) int {
	if w.places == nil {
		return l.from + k
	}
	return int(w.places[l.from+k])
}

// rows sets the number of rows of every matrix.
func (l *messageLane) rows(n int) {
	l.row = l.row[:n]
	for _, m := range []*mat.Dense{&l.Src, &l.Dst, &l.Edge, &l.M, &l.DM, &l.DSrc, &l.DDst} {
		if m.Cols > 0 {
			m.Rows, m.Data = n, m.Data[:n*m.Cols]
		}
	}
}

// gatherRows writes the given rows of x to y. It multiplies by a matrix with one 1 in each row, which takes a third of
// the time of copying row by row.
func (w *messageLoop) gatherRows(y, x mat.Dense, rows []int32) {
	kernels.SpMM(w.ptr[:len(rows)+1], rows, nil, x.Cols, x.Data, x.Stride, y.Data, y.Stride, false)
}

// fillGrad gathers the gradients of the messages.
func (l *messageLane) fillGrad(w *messageLoop) {
	l.DSrc.Zero()
	l.DDst.Zero()
	if w.f.Reduce != MaxOf {
		w.gatherRows(l.DM, w.dacc.sum, w.far(l))
		return
	}
	l.at = slices.Grow(l.at[:0], len(l.row))[:len(l.row)]
	for k := range l.at {
		l.at[k] = int32(w.base + w.place(l, k))
	}
	n, of := l.DM.Cols, w.dacc.sum
	kernels.SpMaxGrad(w.far(l), l.at, n, w.acc.arg, n, of.Data, of.Stride, l.DM.Data, l.DM.Stride)
}

// reduce reduces a batch's values of edges into their rows, or into the carries.
func (l *messageLane) reduce(w *messageLoop, of mat.Dense) {
	l.carry[0].row, l.carry[1].row = -1, -1
	if w.into.Cols == 0 {
		return
	}
	lo, hi := 0, len(l.row) // edges of rows with all edges in the batch
	if i := l.row[0]; w.rowPtr[i] < int64(l.from) || w.rowPtr[i+1] > int64(l.from+hi) {
		for lo = 1; lo < hi && l.row[lo] == i; lo++ {
		}
		l.carry[0].take(w, l, of, 0, lo)
	}
	if i := l.row[hi-1]; lo < hi && w.rowPtr[i+1] > int64(l.from+hi) {
		end := hi
		for hi--; hi > lo && l.row[hi-1] == i; hi-- {
		}
		l.carry[1].take(w, l, of, hi, end)
	}
	if lo == hi {
		return
	}
	first, last := int(l.row[lo]), int(l.row[hi-1])
	l.ptr = l.ptr[:0]
	for i := first; i <= last+1; i++ {
		l.ptr = append(l.ptr, w.rowPtr[i]-int64(l.from+lo))
	}
	to := w.into.RowRange(first, last+1)
	n, x := of.Cols, of.Data[lo*of.Stride:]
	if !w.maximal() {
		kernels.SpMM(l.ptr, w.all[:hi-lo], nil, n, x, of.Stride, to.Data, to.Stride, true)
		return
	}
	arg, begin := w.acc.arg[first*n:(last+1)*n], int32(w.base+l.from+lo) // the kernel counts within the batch
	here := arg
	if w.base > 0 { // keep the maxima of earlier blocks
		here = ints(&l.arg, len(arg))
		for k := range here {
			here[k] = -1
		}
	}
	kernels.SpMax(l.ptr, w.all[:hi-lo], n, x, of.Stride, to.Data, to.Stride, here, n)
	for k, e := range here {
		if e >= 0 {
			arg[k] = begin + e
		}
	}
}

// maximal reports whether rows are reduced to their maximum.
func (w *messageLoop) maximal() bool { return w.dacc == nil && w.f.Reduce == MaxOf }

// take reduces edges [lo, hi) of a batch, which belong to one row.
func (c *carry) take(w *messageLoop, l *messageLane, of mat.Dense, lo, hi int) {
	c.row = int(l.row[lo])
	n, x, all := of.Cols, of.Data[lo*of.Stride:], w.all[:hi-lo]
	sum, ptr := c.sum[:n], [2]int64{0, int64(hi - lo)}
	if !w.maximal() {
		kernels.SpMM(ptr[:], all, nil, n, x, of.Stride, sum, n, false)
		return
	}
	lowest(sum, c.arg)
	kernels.SpMax(ptr[:], all, n, x, of.Stride, sum, n, c.arg, n)
	for k, e := range c.arg {
		if e >= 0 {
			c.arg[k] = e + int32(w.base+l.from+lo)
		}
	}
}

// mergeCarries adds the batch's carries to their rows.
func (l *messageLane) mergeCarries(w *messageLoop) {
	for k := range l.carry {
		c := &l.carry[k]
		if c.row < 0 {
			continue
		}
		to := w.into.Row(c.row)
		if !w.maximal() {
			kernels.Add(c.sum[:len(to)], to)
			continue
		}
		arg := w.acc.arg[c.row*len(to) : (c.row+1)*len(to)]
		for n, v := range c.sum[:len(to)] {
			if v > to[n] || arg[n] < 0 {
				to[n], arg[n] = v, c.arg[n]
			}
		}
	}
}

// scatterTo adds columns [lo, hi) of the destinations' gradients.
func (w *messageLoop) scatterTo(lo, hi int) {
	for k := range w.used {
		l := &w.lane[k]
		for n, i := range w.far(l) {
			kernels.Add(l.DDst.Row(n)[lo:hi], w.dacc.dst.Row(int(i))[lo:hi])
		}
	}
}
