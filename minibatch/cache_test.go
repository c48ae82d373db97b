package minibatch

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
)

// TestCacheChangesNoBit: with a cache of any size, for sparse rows and rounded ones, the model is that without. One
// that holds everything is asked for each row once, and a small one finds some.
func TestCacheChangesNoBit(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, coding := range []comm.Coding{{}, {Values: "int8"}, {Values: "bf16"}} {
			g := toy(160)
			if sparse {
				g = traintest.Sparsed(g)
			}
			c := of(t, "sage", g)
			c.Rows = coding
			shards := cut(t, g, 3)
			without := trained(t, c, shards)
			for _, bytes := range []int64{1, 20 * 36, 1 << 20} {
				c.Cache = bytes
				for r, tr := range trained(t, c, shards) {
					name := fmt.Sprintf("sparse %v, %v, %d bytes, peer %d: ", sparse, coding, bytes, r)
					if !slices.Equal(tr.Params.Value, without[r].Params.Value) {
						t.Error(name + "another model than without a cache")
					}
					is, was := tr.Result().Fetched, without[r].Result().Fetched
					if is.Rows != was.Rows || was.Cached != 0 {
						t.Errorf("%s%+v, without a cache %+v", name, is, was)
					}
					switch distinct := int64(len(tr.groups.features.cache.ids)); {
					case bytes == 1 && is.Cached != 0:
						t.Errorf("%s%d rows were in a cache without room", name, is.Cached)
					case bytes == 720 && is.Rows > 0 && is.Cached == 0:
						t.Errorf("%sno row was in the cache", name)
					case bytes == 720 && !sparse && r == 2 && distinct != map[bool]int64{false: 20,
						true: 40}[coding.Values == "bf16"]:
						t.Errorf("%s%d rows were kept, must be 20, as bf16 40", name, distinct)
					case bytes == 1<<20 && is.Rows-is.Cached != distinct:
						t.Errorf("%s%d rows were fetched, must be %d: each once", name, is.Rows-is.Cached, distinct)
					}
				}
			}
		}
	}
}

// TestCacheKeeps: what the next groups read comes first, in their order, and then the nodes of the largest degrees.
func TestCacheKeeps(t *testing.T) {
	c := &cache{use: []uint8{0, 2, 1, 0, 1, 0}, degree: []uint16{9, 1, 1, 100, 0, 2}}
	for room, want := range [][]int32{{}, {2}, {2, 4}, {1, 2, 4}, {1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}} {
		if got := c.best(room, []int32{0, 1, 2}, []int32{3, 4, 5}); !slices.Equal(got, want) {
			t.Errorf("of %d rows %v are kept, must be %v", room, got, want)
		}
	}
}

// TestGroupFollowsLatency: a group is the smallest whose relays take a tenth of its steps' time, and no larger than
// memory allows.
func TestGroupFollowsLatency(t *testing.T) {
	for _, k := range []struct {
		latency, step time.Duration
		memory, rows  int64 // rows: bytes of a batch
		least, most   int
	}{
		{time.Millisecond, time.Second, 0, 1000, 2, 64},
		{time.Millisecond, 10 * time.Millisecond, 0, 1000, 4, 64}, // 3 relays of 1 ms are a tenth of 30 ms
		{50 * time.Millisecond, 100 * time.Millisecond, 0, 1000, 16, 64},
		{time.Second, time.Millisecond, 0, 1000, 64, 64},
		{time.Millisecond, time.Millisecond, 1 << 20, 1 << 16, 32, 8},
		{time.Millisecond, time.Second, 1, 1 << 16, 2, 1},
		{time.Millisecond, time.Second, 0, 1 << 30, 2, 1},
	} {
		p := pace{relays: 3, latency: k.latency, memory: k.memory}
		least, most := p.wants(2*k.step, 2, 2*k.rows)
		if least != k.least || most != k.most || bits.OnesCount(uint(most)) != 1 {
			t.Errorf("%+v: from %d to %d batches", k, least, most)
		}
	}
}

// TestGroupIsAgreedOn: peers that choose the group themselves take the same one, to the same model.
func TestGroupIsAgreedOn(t *testing.T) {
	g := toy(160)
	c := of(t, "gcn", g)
	want := trained(t, c, cut(t, g, 3))
	c.Group = 0
	size := 0
	for r, tr := range trained(t, c, cut(t, g, 3)) {
		f := tr.Result().Fetched
		if r == 0 {
			size = f.Group
		}
		if !slices.Equal(tr.Params.Value, want[r].Params.Value) || f.Group != size || size < firstGroup {
			t.Errorf("peer %d: groups of %d, of peer 0 %d, or another model", r, f.Group, size)
		}
	}
	if f := trained(t, c, cut(t, g, 1))[0].Result().Fetched; f.Group != 1 || f.Rows != 0 {
		t.Errorf("one peer: %+v, must take single batches and fetch nothing", f)
	}
}

// TestGroupOfAPeerIsNotBelieved: a size of groups that is none is refused, with its peer.
func TestGroupOfAPeerIsNotBelieved(t *testing.T) {
	g := toy(50)
	peers(t, of(t, "gcn", g), cut(t, g, 2), func(tr *Trainer, group *comm.Group) error {
		least := 2 + (MostGroup-1)*tr.shard.Rank // 65 at peer 1
		_, err := agree(t.Context(), group, least, 64)
		if tr.shard.Rank == 0 {
			refusedBy(t, err, 1)
		}
		return nil
	})
}
