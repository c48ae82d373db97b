package links

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/rng"
)

// Pool is the nodes from which unlinked pairs are sampled.
type Pool struct {
	kind  []uint8   // [N] type of each node
	nodes [][]int64 // [T] global IDs of each type, ascending
}

// NewPool returns the pool of nodes of these types, by global ID; a node whose type is out is left out.
func NewPool(kind []uint8, types int, in func(id int64) bool) *Pool {
	p := &Pool{kind: kind, nodes: make([][]int64, max(types, 1))}
	for id, t := range kind {
		if in(int64(id)) {
			p.nodes[t] = append(p.nodes[t], int64(id))
		}
	}
	return p
}

// Drawer draws nodes that own ones are not linked with.
type Drawer struct {
	pool  *Pool
	cut   *Cut
	at    []int64               // [sources] global IDs
	first map[[2]int32][2]int32 // by relation and own node: its range of Cut.Links

	of   [3]int32 // relation, own node and 1 if it trains, as linked last got them
	last []int64  // what linked returned last
}

// NewDrawer returns a drawer for the links of c, which is of s.
func NewDrawer(p *Pool, c *Cut, s *shard.Shard) *Drawer {
	d := &Drawer{pool: p, cut: c, at: s.Global, first: make(map[[2]int32][2]int32), of: [3]int32{-1}}
	for lo := 0; lo < len(c.Links); {
		l, hi := c.Links[lo], lo+1
		for hi < len(c.Links) && c.Links[hi].Relation == l.Relation && c.Links[hi].At == l.At {
			hi++
		}
		d.first[[2]int32{l.Relation, l.At}] = [2]int32{int32(lo), int32(hi)}
		lo = hi
	}
	return d
}

// linked returns the global IDs of the own end of l and of the nodes linked with it, ascending; if l trains, only of
// nodes linked by links that train, because the others must not be known. It is valid until the next call.
func (d *Drawer) linked(l Link) []int64 {
	of := [3]int32{l.Relation, l.At}
	if l.Split == graph.Train {
		of[2] = 1
	}
	if of == d.of {
		return d.last
	}
	d.of, d.last = of, append(d.last[:0], d.at[l.At])
	r := d.first[[2]int32{l.Relation, l.At}]
	for _, o := range d.cut.Links[r[0]:r[1]] {
		if l.Split != graph.Train || o.Split == graph.Train {
			d.last = append(d.last, d.at[o.Other])
		}
	}
	slices.Sort(d.last)
	return d.last
}

// tries is how often a node that is linked is replaced by another random one before the next unlinked one is taken.
const tries = 16

// Draw appends n nodes, by global ID, of the type of the other end of l that are not linked with l's own end, or a
// linked one if all are. The key and the two ends determine the random choice.
func (d *Drawer) Draw(to []int64, key rng.Key, l Link, n int) []int64 {
	u, v := d.at[l.At], d.at[l.Other]
	of, known := d.pool.nodes[d.pool.kind[v]], d.linked(l)
	if len(of) == 0 {
		return to
	}
	k := key.Fold(uint64(l.Relation)).Fold(uint64(u)).Fold(uint64(v))
	for i := range uint64(n) {
		at := uint64(0)
		for try := range uint64(tries + len(of)) { // if all are linked, one of them
			if at = (at + 1) % uint64(len(of)); try < tries {
				at = k.Fold(i).Uint64(try) % uint64(len(of))
			}
			if _, is := slices.BinarySearch(known, of[at]); !is {
				break
			}
		}
		to = append(to, of[at])
	}
	return to
}

// Rivals appends the nodes that the other end of l, which is held out, is ranked among: n that Draw draws or, where
// there are no more, all nodes of its type that its own end is not linked with.
func (d *Drawer) Rivals(to []int64, key rng.Key, l Link, n int) []int64 {
	of := d.pool.nodes[d.pool.kind[d.at[l.Other]]]
	if len(of) > n {
		return d.Draw(to, key, l, n)
	}
	known := d.linked(l)
	for _, id := range of {
		if _, is := slices.BinarySearch(known, id); !is {
			to = append(to, id)
		}
	}
	return to
}

// Fresh appends the nodes of the pool, of those types, that node at is not linked with under a relation, whatever the
// links are used for.
func (d *Drawer) Fresh(to []int64, at, relation int32, types []bool) []int64 {
	known := d.linked(Link{At: at, Relation: relation, Split: graph.Test})
	for kind, nodes := range d.pool.nodes {
		if !types[kind] {
			continue
		}
		for _, id := range nodes {
			if _, is := slices.BinarySearch(known, id); !is {
				to = append(to, id)
			}
		}
	}
	return to
}
