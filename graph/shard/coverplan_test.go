package shard

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/rng"
	"pgregory.net/rapid"
)

// bipartite is a small bipartite graph, weighted or not.
func bipartite(t *rapid.T) *graph.CSR {
	adj := &graph.CSR{NumDst: rapid.IntRange(0, 9).Draw(t, "destinations"),
		NumSrc: rapid.IntRange(0, 8).Draw(t, "sources"), RowPtr: []int64{0}}
	if rapid.Bool().Draw(t, "weighted") {
		adj.Weight = []float32{}
	}
	for range adj.NumDst {
		for j := range int32(adj.NumSrc) {
			if rapid.IntRange(0, 2).Draw(t, "edge") > 0 {
				continue
			}
			if adj.Col = append(adj.Col, j); adj.Weight != nil {
				adj.Weight = append(adj.Weight, float32(rapid.IntRange(0, 9).Draw(t, "weight")))
			}
		}
		adj.RowPtr = append(adj.RowPtr, int64(len(adj.Col)))
	}
	return adj
}

// TestCoverCarriesEveryEdgeOnce: the sums over rows and partial sums are those over the sources,
// whatever their values: source j is worth 3ʲ times its weight, so that no other set of edges adds
// up to the same.
func TestCoverCarriesEveryEdgeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		adj := bipartite(t)
		c := NewCover(adj)
		value, node := make([]float64, adj.NumSrc), make([]int32, adj.NumSrc)
		for j := range value {
			value[j], node[j] = math.Pow(30, float64(j)), int32(j)
		}
		to, virtual := make([]int32, adj.NumSrc), make([][]int32, adj.NumDst)
		n := c.Place(to, virtual, 0)
		if n != c.Len() {
			t.Fatalf("%d places for %d messages", n, c.Len())
		}
		sent := make([]float64, n)
		for j, k := range to {
			if k >= 0 {
				sent[k] = value[j]
			}
		}
		sums := c.Weigh(value, node, len(node))
		for i := range sums.NumDst {
			_, w := sums.Row(i)
			for _, v := range w {
				sent[len(c.Rows)+i] += float64(v)
			}
		}
		left := &graph.CSR{NumDst: adj.NumDst, NumSrc: n, RowPtr: []int64{0}}
		if adj.Weight != nil {
			left.Weight = []float32{}
		}
		for i := range adj.NumDst {
			col, weight := adj.Row(i)
			for k, j := range col {
				if to[j] < 0 {
					continue
				}
				if left.Col = append(left.Col, to[j]); weight != nil {
					left.Weight = append(left.Weight, weight[k])
				}
			}
			left.RowPtr = append(left.RowPtr, int64(len(left.Col)))
		}
		all := WithSums(left, virtual, nil)
		if err := all.Valid(); err != nil {
			t.Fatal(err)
		}
		for i := range adj.NumDst {
			total := func(g *graph.CSR, values []float64) (sum float64) {
				col, weight := g.Row(i)
				for k, j := range col {
					w := 1.0
					if weight != nil {
						w = float64(weight[k])
					}
					sum += w * values[j]
				}
				return sum
			}
			if got, want := total(all, sent), total(adj, value); math.Abs(got-want) > 1e-5*want {
				t.Fatalf("destination %d: %v, must be %v", i, got, want)
			}
		}
	})
}

func TestCoverIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		adj := bipartite(t)
		c := NewCover(adj)
		b := c.Append(nil)
		got, err := parseCover(b, adj.NumSrc, adj.Weight != nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Rows, c.Rows) || got.Len() != c.Len() || !slices.Equal(got.Sums.Col, c.Sums.Col) ||
			!slices.Equal(got.Sums.RowPtr, c.Sums.RowPtr) || !slices.Equal(got.Sums.Weight, c.Sums.Weight) {
			t.Fatalf("%+v is read as %+v", c, got)
		}
		for k := range b {
			if _, err := parseCover(b[:k], adj.NumSrc, adj.Weight != nil); err == nil {
				t.Fatalf("%d of %d bytes are taken for a cover", k, len(b))
			}
		}
	})
}

// FuzzParseCover: bytes from peers are refused or are the only way to write what they say.
func FuzzParseCover(f *testing.F) {
	f.Add([]byte{1, 1, 2, 2, 0, 0}, 4, false)
	f.Add(binary.LittleEndian.AppendUint32([]byte{0, 1, 1, 0}, math.Float32bits(2)), 2, true)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}, 3, false)
	f.Add([]byte{0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f}, 1<<31-1, false)
	f.Fuzz(func(t *testing.T, b []byte, sources int, weighted bool) {
		if sources < 0 || sources > 1<<31-1 {
			return
		}
		c, err := parseCover(b, sources, weighted)
		if err != nil {
			return
		}
		if !bytes.Equal(c.Append(nil), b) {
			t.Errorf("%x is read as %+v, which is written as %x", b, c, c.Append(nil))
		}
		if c.Len() > sources {
			t.Errorf("%d messages in place of %d rows", c.Len(), sources)
		}
		if err := c.Sums.Valid(); err != nil {
			t.Error(err)
		}
	})
}

// TestAgree: what one peer wants, the other is to give, and a peer that wants nonsense is named.
func TestAgree(t *testing.T) {
	const n = 300
	src, dst, owner := make([]int32, 3*n), make([]int32, 3*n), make([]int32, n)
	key := rng.New(2)
	for k := range src {
		src[k], dst[k] = int32(k%n), int32(key.Uint64(uint64(k))%n)
	}
	for i := range owner {
		owner[i] = int32(i % 3)
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	shards, err := Cut(&graph.Graph{Adj: adj, Split: make([]graph.Split, n),
		Labels: graph.Labels{Classes: 1, Class: make([]int32, n)}}, owner, 3)
	if err != nil {
		t.Fatal(err)
	}
	run := func(f func(p int, want []*Cover)) (want, give [3][]*Cover, errs [3]error) {
		net := netsim.New(3, netsim.Config{})
		var wait sync.WaitGroup
		for p, s := range shards {
			wait.Go(func() {
				group := comm.NewGroup(net.Transport(p), p, 3)
				defer group.Close()
				rows := make([]int, 3)
				for q := range rows {
					rows[q] = len(s.Boundary[q])
					if q != p {
						want[p] = append(want[p], NewCover(s.From(&s.Adj, q)))
					} else {
						want[p] = append(want[p], nil)
					}
				}
				f(p, want[p])
				give[p], errs[p] = Agree(want[p], rows, false, func(out [][]byte, limit int) ([][]byte, error) {
					return group.SendRecv(context.Background(), comm.Halo, "covers", out, limit)
				})
			})
		}
		wait.Wait()
		return want, give, errs
	}
	want, give, errs := run(func(p int, want []*Cover) {
		if p == 1 {
			want[2] = nil
		}
	})
	for p := range shards {
		if errs[p] != nil {
			t.Fatal(errs[p])
		}
		for q := range shards {
			switch a, b := want[p][q], give[q][p]; {
			case a == nil && b == nil:
			case a == nil || b == nil || !bytes.Equal(a.Append(nil), b.Append(nil)):
				t.Errorf("peer %d wants %+v of %d, which gives %+v", p, a, q, b)
			}
		}
	}
	_, _, errs = run(func(p int, want []*Cover) {
		if p == 1 {
			want[2].Rows = []int32{1 << 20}
		}
	})
	if errs[2] == nil || !strings.Contains(errs[2].Error(), "peer 1") {
		t.Errorf("nonsense of peer 1: %v", errs[2])
	}
}

// TestNoCoverIsLongerThanRows on the three smallest shapes.
func TestNoCoverIsLongerThanRows(t *testing.T) {
	// A star out of one part: one row. A star into another: one sum. A matching: as many rows as
	// sums, so rows.
	star := &graph.CSR{NumDst: 3, NumSrc: 1, RowPtr: []int64{0, 1, 2, 3}, Col: []int32{0, 0, 0}}
	if c := NewCover(star); len(c.Rows) != 1 || c.Sums.NumDst != 0 {
		t.Errorf("a star out: %+v", c)
	}
	into := &graph.CSR{NumDst: 1, NumSrc: 3, RowPtr: []int64{0, 3}, Col: []int32{0, 1, 2}}
	if c := NewCover(into); len(c.Rows) != 0 || !slices.Equal(c.Dst, []int32{0}) || len(c.Sums.Col) != 3 {
		t.Errorf("a star in: %+v", c)
	}
	match := &graph.CSR{NumDst: 2, NumSrc: 2, RowPtr: []int64{0, 1, 2}, Col: []int32{0, 1}}
	if c := NewCover(match); !slices.Equal(c.Rows, []int32{0, 1}) || c.Sums.NumDst != 0 {
		t.Errorf("a matching: %+v", c)
	}
}
