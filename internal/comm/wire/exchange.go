package wire

import (
	"context"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/mat"
)

// Halo lists which rows are sent to whom, as a shard knows it.
type Halo struct {
	Give [][]int32 // [Size] own rows that go to each peer, ascending
	Ptr  []int     // peer q's rows are [Ptr[q], Ptr[q+1]) of all, after the own ones
	// Into is space for all rows, with the own ones in it (empty = new space). Further own rows, which are only sent,
	// may be where others' rows go: they are in messages before others' are written.
	Into mat.Dense
}

// all returns space for all rows, with own in it. No further own rows are read from then on.
func (h Halo) all(own mat.Dense) mat.Dense {
	if !h.Into.Empty() {
		h.Into.RowRange(h.Ptr[0], h.Into.Rows).Zero() // rows of absent members stay so
		return h.Into
	}
	x := mat.New(h.Ptr[len(h.Ptr)-1], own.Cols)
	x.RowRange(0, own.Rows).CopyFrom(own)
	return x
}

// Exchange returns own, this member's rows, followed by those that the others send. The result is
// sparse if all of them are. mixed, which must be the same at every member, means that rows are
// sparse or have been: members may differ in how full theirs are by now. Such rows, and all that
// are not float32, are sent in messages that state their layout; dense float32 is sent as it is, 4
// bytes a value. Rows of a rank that is not a member of g are zero.
func (k *Coder) Exchange(
	ctx context.Context, g *comm.Group, h Halo, own Block, mixed bool, what string,
) (Block, error) {
	switch size, me := g.Size(), g.Rank(); {
	case size == 1:
		return own, nil
	case mixed || k.coding != (coding{}):
		return k.exchangeCoded(ctx, g, h, own, what)
	default:
		out, in := make([][]float32, size), make([][]float32, size)
		for q := range size {
			if q != me {
				out[q] = own.Dense.Select(h.Give[q]).Data
			}
		}
		d, x := own.Cols(), h.all(own.Dense)
		for q := range size {
			if q != me {
				in[q] = x.Data[h.Ptr[q]*d : h.Ptr[q+1]*d]
			}
		}
		if err := g.Exchange(ctx, comm.Halo, what, out, in); err != nil {
			return Block{}, err
		}
		return Block{Dense: x}, finiteRows(x, h.Ptr, what)
	}
}

// finiteRows returns an error that names a member that has sent a value which is not finite. Own rows, the first ones,
// may have such values, too: then training has diverged, and there is no error.
func finiteRows(x mat.Dense, ptr []int, what string) error {
	bad := slices.IndexFunc(x.Data, func(v float32) bool { return !finite(v) })
	if bad < 0 || bad/x.Cols < ptr[0] {
		return nil
	}
	for q := range len(ptr) - 1 {
		if i := bad / x.Cols; i >= ptr[q] && i < ptr[q+1] {
			err := notFinite(i-ptr[q], bad%x.Cols, x.Data[bad])
			return &comm.PeerError{Rank: q, Op: what, Err: comm.Refused("%v", err)}
		}
	}
	return nil
}

func (k *Coder) exchangeCoded(ctx context.Context, g *comm.Group, h Halo, own Block, what string) (Block, error) {
	size, me, d := g.Size(), g.Rank(), own.Cols()
	out, largest := make([][]byte, size), 0
	for q := range size {
		if err := ctx.Err(); err != nil { // a message of wide rows takes long
			return Block{}, err
		}
		if q != me {
			out[q] = k.Append(nil, own, h.Give[q])
			largest = max(largest, len(h.Give[q]), h.Ptr[q+1]-h.Ptr[q]) // the limit applies in both directions
		}
	}
	in, err := g.SendRecv(ctx, comm.Halo, what, out, k.coding.MaxLen(largest, d))
	if err != nil {
		return Block{}, err
	}
	all, parts, sparse := Block{}, []Block{own}, true // the peers' rows follow in the order of their ranks
	if own.Sparse == nil {
		all.Dense = h.all(own.Dense)
	}
	for q := range size {
		if q == me {
			continue
		}
		if err := ctx.Err(); err != nil {
			return Block{}, err
		}
		var into mat.Dense
		if own.Sparse == nil {
			into = all.Dense.RowRange(h.Ptr[q], h.Ptr[q+1])
		}
		part, err := k.parse(in[q], h.Ptr[q+1]-h.Ptr[q], d, into)
		if in[q] = nil; err != nil {
			return Block{}, &comm.PeerError{Rank: q, Op: what, Err: comm.Refused("%v", err)}
		}
		if own.Sparse == nil {
			if !k.coding.Columns {
				into.CopyFrom(part.dense())
			}
			continue
		}
		parts, sparse = append(parts, part), sparse && part.Sparse != nil
	}
	if own.Sparse == nil {
		return all, nil
	}
	return stack(parts, h.Ptr[size], d, sparse), nil
}

// dense returns the rows with all zeros.
func (x Block) dense() mat.Dense {
	if x.Sparse != nil {
		return x.Sparse.Dense()
	}
	return x.Dense
}

// stack puts parts, rows×cols in all, one below the other.
func stack(parts []Block, rows, cols int, sparse bool) Block {
	if sparse {
		n := 0
		for _, p := range parts {
			n += p.Sparse.NNZ()
		}
		x := &mat.Sparse{Rows: rows, Cols: cols, RowPtr: make([]int64, 1, rows+1), Col: make([]int32, 0, n),
			Val: make([]float32, 0, n)}
		for _, p := range parts {
			for _, end := range p.Sparse.RowPtr[1:] {
				x.RowPtr = append(x.RowPtr, int64(len(x.Col))+end)
			}
			x.Col, x.Val = append(x.Col, p.Sparse.Col...), append(x.Val, p.Sparse.Val...)
		}
		return Block{Sparse: x}
	}
	x, at := mat.New(rows, cols), 0
	for _, p := range parts {
		x.RowRange(at, at+p.Rows()).CopyFrom(p.dense())
		at += p.Rows()
	}
	return Block{Dense: x}
}
