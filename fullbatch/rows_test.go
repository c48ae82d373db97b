package fullbatch

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// TestCountsAreExact: sums of counts beyond 2²⁴, which a float32 does not hold.
func TestCountsAreExact(t *testing.T) {
	c := Defaults(models(9)["gcn"])
	workers(t, c, cut(t, toy(rng.New(1), 30, 9), "uneven", 3), func(tr *Trainer, g *comm.Group) error {
		n := []int64{1<<24 + 1, 0, 1<<40 + int64(tr.shard.Rank), 4095}
		if err := sumCounts(context.Background(), g, comm.ReduceID{}, n); err != nil {
			return err
		}
		if want := []int64{3<<24 + 3, 0, 3<<40 + 3, 3 * 4095}; !slices.Equal(n, want) {
			t.Errorf("sums %d, want %d", n, want)
		}
		return nil
	})
}

// TestNarrowRows trains with rounded and compressed rows: the bytes of an epoch are those of the formula, at most where
// they are compressed, the same at every run, and the losses stay near those of float32.
func TestNarrowRows(t *testing.T) {
	g := toy(rng.New(4), 150, 9)
	for i := range g.Split {
		g.Split[i] = graph.Train
	}
	shards := cut(t, g, "uneven", 3)
	c := Defaults(models(9)["gat"])
	c.Rounds, c.EvalEvery, c.Fetch, c.Order = 20, 1000, "sar", "fixed"
	exact := trained(t, c, shards)[0].Result().Curve()
	halo := 0
	for _, s := range shards {
		halo += s.Halo()
	}
	for _, coding := range []comm.Coding{{Values: "bf16"}, {Values: "int8"}, {Compress: "zstd"},
		{Values: "int8", Compress: "zstd"}, {Values: "int4"}} {
		c.Rows = coding
		var sent [2]int64
		run := func() []train.Point {
			sent = [2]int64{}
			all := trained(t, c, shards)
			for _, tr := range all {
				for i := range sent {
					sent[i] += tr.Result().Curve()[i].Sent.Halo
				}
			}
			return all[0].Result().Curve()
		}
		first := run()
		want := int64(3 * halo * (coding.RowLen(12) + coding.RowLen(6))) // rows, rows again, gradients
		if got := sent[1] - sent[0]; got > want || coding.Compress == "" && got != want {
			t.Errorf("%+v: an epoch sent %d bytes of rows and gradients, want %d", coding, got, want)
		}
		for i, e := range run() {
			if e.Loss != first[i].Loss {
				t.Fatalf("%+v: epoch %d has another loss at the second run", coding, i)
			}
			off := 0.05
			switch coding.Values {
			case "":
				off = 0
			case "int4":
				off = 0.3
			}
			within(t, fmt.Sprintf("%+v, epoch %d: loss", coding, i), e.Loss, exact[i].Loss, off)
		}
	}
}
