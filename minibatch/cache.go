package minibatch

import (
	"math/bits"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// cache keeps features of other peers' nodes from one group of batches to the next ones. Batches are sampled before
// they are needed, so it knows what the next groups read. It keeps these rows first (as RapidGNN does for an epoch,
// arXiv 2509.05207, and Belady's rule in general), and fills the rest with nodes of the largest degrees. Rows are as
// their owners sent them, so that the cache does not change the model.
type cache struct {
	limit int // in bytes
	rows  graph.Features

	// rows are stored as bfloat16 if they are sent as bfloat16: half the memory then keeps their exact values.
	half   bool
	halves []uint16 // [ids × cols]
	cols   int

	ids []int32         // [rows]
	at  map[int32]int32 // row of each node
	use []uint8         // [N] number of the next group that reads the node, from 1 (0 = none, or not known)

	// degree is a node's degree as this peer estimates it, [N]: own edges from it plus batches that have read it. Only
	// its owner knows its true degree.
	degree []uint16
}

// lookAhead is how many groups are sampled before the group whose features are fetched next.
const lookAhead = 2

// newCache returns a cache of at most limit bytes for the peer that owns s. half means that rows are sent as bfloat16.
func newCache(limit int64, s *shard.Shard, half bool) *cache {
	c := &cache{limit: int(limit), half: half, at: map[int32]int32{}, use: make([]uint8, s.Nodes),
		degree: make([]uint16, s.Nodes)}
	for _, j := range s.Adj.Col {
		if int(j) >= s.Owned {
			c.warm(int32(s.Global[j]))
		}
	}
	return c
}

func (c *cache) warm(id int32) { c.degree[id] += 1 - c.degree[id]>>15 } // stays at 2¹⁵

// take splits nodes into cached ones and the others.
func (c *cache) take(ids []int32) (held, missing []int32) {
	if len(c.ids) == 0 {
		return nil, ids
	}
	for _, id := range ids {
		if _, ok := c.at[id]; ok {
			held = append(held, id)
		} else {
			missing = append(missing, id)
		}
	}
	return held, missing
}

// of returns the cached rows of nodes.
func (c *cache) of(ids []int32) graph.Features {
	at := make([]int32, len(ids))
	for k, id := range ids {
		at[k] = c.at[id]
	}
	if len(c.halves) == 0 {
		return c.rows.Select(at)
	}
	x := mat.New(len(ids), c.cols)
	for k, i := range at {
		kernels.FromBF16(c.halves[int(i)*c.cols:int(i+1)*c.cols], x.Row(k))
	}
	return graph.Features{Dense: x}
}

// keep chooses among the cached rows and rows of other nodes that have just arrived. read is the group that they were
// fetched for, next are the following groups.
func (c *cache) keep(rows graph.Features, ids []int32, read []sample.Batch, next [][]sample.Batch) {
	if len(ids)+len(c.ids) == 0 {
		return
	}
	for b := range read {
		for _, id := range read[b].Nodes {
			c.warm(id)
		}
	}
	mark := func(set bool) {
		for k := len(next) - 1; k >= 0; k-- {
			for b := range next[k] {
				for _, id := range next[k][b].Nodes {
					if c.use[id] = 0; set {
						c.use[id] = uint8(k) + 1
					}
				}
			}
		}
	}
	mark(true)
	room := c.limit / rowBytes(rows, c.rows)
	if c.half && rows.Sparse == nil && c.rows.Sparse == nil {
		c.cols = max(c.cols, rows.Cols())
		room = c.limit / max(1, 2*c.cols)
	}
	kept := c.best(room, c.ids, ids)
	mark(false)
	oldAt, newAt := make([]int32, 0, len(kept)), []int32(nil)
	all := make([]int32, 0, len(kept))
	for _, k := range kept {
		if int(k) < len(c.ids) {
			oldAt, all = append(oldAt, k), append(all, c.ids[k])
		} else {
			k -= int32(len(c.ids))
			newAt, all = append(newAt, k), append(all, ids[k])
		}
	}
	if c.half && rows.Sparse == nil && c.rows.Sparse == nil {
		c.putHalves(rows.Dense, oldAt, newAt)
	} else if len(oldAt) == 0 {
		c.rows = rows.Select(newAt)
	} else {
		c.rows = graph.Below([]graph.Features{c.rows.Select(oldAt), rows.Select(newAt)})
	}
	clear(c.at)
	for k, id := range all {
		c.at[id] = int32(k)
	}
	c.ids = all
}

// putHalves keeps some of the rows in halves and appends some new rows.
func (c *cache) putHalves(rows mat.Dense, oldAt, newAt []int32) {
	next := make([]uint16, 0, (len(oldAt)+len(newAt))*c.cols)
	for _, k := range oldAt {
		next = append(next, c.halves[int(k)*c.cols:int(k+1)*c.cols]...)
	}
	for _, k := range newAt {
		next = next[:len(next)+c.cols]
		kernels.ToBF16(rows.Row(int(k)), next[len(next)-c.cols:])
	}
	c.halves = next
}

// best returns the indices, in two concatenated lists, of as many nodes as fit, in the order of their rank.
func (c *cache) best(room int, old, fresh []int32) (kept []int32) {
	const classes = lookAhead + 17
	worth := func(id int32) int { // the smallest rank is best
		if u := c.use[id]; u > 0 {
			return int(u) - 1
		}
		return lookAhead + 16 - bits.Len16(c.degree[id])
	}
	var count [classes]int
	for _, list := range [][]int32{old, fresh} {
		for _, id := range list {
			count[worth(id)]++
		}
	}
	last, left := 0, room // all ranks before last are kept, and `left` nodes of rank last
	for ; last < classes && count[last] <= left; last++ {
		left -= count[last]
	}
	k := int32(0)
	for _, list := range [][]int32{old, fresh} {
		for _, id := range list {
			w := worth(id)
			if w == last && left > 0 {
				left--
				w = -1
			}
			if w < last {
				kept = append(kept, k)
			}
			k++
		}
	}
	return kept
}

// rowBytes returns about how many bytes a row takes, from the first list that has rows.
func rowBytes(list ...graph.Features) int {
	for _, f := range list {
		switch {
		case f.Rows() == 0:
		case f.Sparse != nil:
			return 8 + 8*(1+len(f.Sparse.Val)/f.Rows())
		default:
			return max(1, 4*f.Cols())
		}
	}
	return 1
}
