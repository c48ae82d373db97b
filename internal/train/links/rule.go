package links

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// Rule lists which edges are held out. Each pair of nodes is decided by itself, so that the fractions are met on
// average.
type Rule struct {
	Seed      uint64
	Val, Test float64         // fractions of the links; at least 0, less than 1 together
	Relations []string        // as in train.LinkTask
	Time      *train.LinkTime // links are held out by time instead of Val and Test (nil = at random)
}

// Link is an edge as the owner of one of its ends sees it.
type Link struct {
	At, Other int32 // source indices of a shard; At is an own node
	Relation  int32 // of Cut.Relations
	Split     graph.Split
}

// Cut is a shard by a rule.
type Cut struct {
	Messages  *shard.Shard // without the edges that are held out; nodes and halo are as before
	Relations []string     // names of the relations whose edges are links (one empty name = edges without types)
	// of each relation of the graph, the element of Relations for its edges or their reverses (−1 = none)
	Of    []int32
	Links []Link // of own nodes, by relation, node and other end
}

// inverse is what graph.WithInverses puts behind the name of a relation for its reverse.
const inverse = " (inverse)"

// Names returns the relations whose links a rule with relations given predicts in a graph with these relations: all but
// reverses if given is empty.
func Names(given, relations []string) (names []string, err error) {
	pairs, err := pairsOf(given, relations)
	if len(relations) == 0 && err == nil {
		return []string{""}, nil
	}
	for _, p := range pairs {
		names = append(names, relations[p.at])
	}
	return names, err
}

// inversePair is a relation and its reverse, as places among all relations.
type inversePair struct{ at, reverse int }

// pairsOf finds relations and their reverses by name.
func pairsOf(given, relations []string) (all []inversePair, err error) {
	if len(relations) == 0 {
		if len(given) > 0 {
			return nil, fmt.Errorf("task must be links where edges have no types (got links:%s)",
				strings.Join(given, ","))
		}
		return nil, nil
	}
	if len(given) == 0 {
		for _, name := range relations {
			if !strings.HasSuffix(name, inverse) {
				given = append(given, name)
			}
		}
	}
	for _, text := range given {
		name, reverse, ok := strings.Cut(text, "=")
		if !ok {
			reverse = name + inverse
		}
		p := inversePair{slices.Index(relations, name), slices.Index(relations, reverse)}
		switch {
		case p.at < 0:
			return nil, fmt.Errorf("task must name relations of the graph, which are %q (got %q)", relations, name)
		case p.reverse < 0 && ok:
			return nil, fmt.Errorf("the reverse of relation %q must be one of %q (got %q)", name, relations, reverse)
		case p.reverse < 0:
			return nil, fmt.Errorf("task must name the relation that runs the other way as %s, as in %s=REVERSE: it "+
				"would tell what is held out (got %q); edges of one direction have none", name, name, text)
		}
		all = append(all, p)
	}
	return all, nil
}

// Of(relation, u, v) returns what the link between two nodes, by global ID, may be used for: the same from both ends of
// it.
func (r Rule) Of(relation string, u, v int64) graph.Split {
	x := rng.New(r.Seed).FoldString("links").FoldString(relation).Fold(uint64(min(u, v))).Float64(uint64(max(u, v)))
	switch {
	case x < r.Val:
		return graph.Val
	case x < r.Val+r.Test:
		return graph.Test
	}
	return graph.Train
}

// Cut applies r to the shard of a peer. s stays as it is.
func (r Rule) Cut(s *shard.Shard) (*Cut, error) {
	pairs, err := pairsOf(r.Relations, s.Typed.Names)
	if err != nil {
		return nil, err
	}
	c := &Cut{}
	m := *s
	c.Messages = &m
	if s.Typed.Count() == 0 {
		c.Relations, c.Of = []string{""}, []int32{0}
		keep, err := c.divide(r, s, &s.Adj, 0)
		if err != nil {
			return nil, err
		}
		m.Adj = *s.Adj.Keep(keep)
		return c, nil
	}
	keep := make([]bool, s.Typed.Adj.NumEdges())
	for k := range keep {
		keep[k] = true
	}
	c.Of = slices.Repeat([]int32{-1}, s.Typed.Count())
	for _, p := range pairs {
		c.Of[p.at], c.Of[p.reverse] = int32(len(c.Relations)), int32(len(c.Relations))
		c.Relations = append(c.Relations, s.Typed.Names[p.at])
		for _, at := range slices.Compact([]int{p.at, p.reverse}) {
			lo := s.Typed.Adj.RowPtr[at*s.Owned]
			one, err := c.divide(r, s, s.Typed.Adj.Relation(at, s.Typed.Count()), len(c.Relations)-1)
			if err != nil {
				return nil, err
			}
			copy(keep[lo:], one)
		}
	}
	m.Typed.Adj = *s.Typed.Adj.Keep(keep)
	m.Adj = *s.Adj.Keep(stillJoined(s, &m.Typed.Adj))
	slices.SortStableFunc(c.Links, compare)
	return c, nil
}

// divide appends the links of one relation, [Owned × sources], and returns which edges stay for messages.
func (c *Cut) divide(r Rule, s *shard.Shard, g *graph.CSR, relation int) (keep []bool, err error) {
	var at timePlace
	if r.Time != nil {
		if at, err = placeOf(r.Time, s, c.Relations[relation]); err != nil {
			return nil, err
		}
	}
	keep = make([]bool, g.NumEdges())
	for i := range s.Owned {
		for k := g.RowPtr[i]; k < g.RowPtr[i+1]; k++ {
			j := g.Col[k]
			l := Link{At: int32(i), Other: j, Relation: int32(relation)}
			if r.Time != nil {
				l.Split = at.of(s, g, k)
			} else {
				l.Split = r.Of(c.Relations[relation], s.Global[i], s.Global[j])
			}
			keep[k] = l.Split == graph.Train
			if int(j) != i { // a self-loop is not a link
				c.Links = append(c.Links, l)
			}
		}
	}
	return keep, nil
}

func compare(a, b Link) int {
	for _, d := range [3]int32{a.Relation - b.Relation, a.At - b.At, a.Other - b.Other} {
		if d != 0 {
			return int(d)
		}
	}
	return 0
}

// stillJoined returns whether some relation still has each edge of s.Adj. An edge that had no relation goes with its
// reverse.
func stillJoined(s *shard.Shard, typed *graph.CSR) []bool {
	keep := make([]bool, s.Adj.NumEdges())
	relations := s.Typed.Count()
	for i := range s.Owned {
		lo := s.Adj.RowPtr[i]
		all, _ := s.Adj.Row(i)
		had, has := make([]bool, len(all)), make([]bool, len(all))
		for r := range relations {
			for g, mark := range map[*graph.CSR][]bool{&s.Typed.Adj: had, typed: has} {
				col, _ := g.Row(r*s.Owned + i)
				for _, j := range col {
					if k, ok := slices.BinarySearch(all, j); ok {
						mark[k] = true
					}
				}
			}
		}
		for k := range all {
			keep[lo+int64(k)] = has[k] || !had[k]
		}
	}
	return keep
}
