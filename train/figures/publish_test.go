package figures

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// TestPublish: sites that allow it send the others their metric, rounded, and only if the totals do not then reveal the
// metric of a site that does not allow it.
func TestPublish(t *testing.T) {
	g, logits := example(t, 1200, 3, false, true)
	shards := parts(t, g, 4)
	for _, c := range []struct {
		least [4]int
		told  []int // ranks
	}{
		{[4]int{}, nil},
		{[4]int{20, 20, 20, 20}, []int{0, 1, 2, 3}},
		{[4]int{20, 20, 20, 0}, nil}, // the last would follow
		{[4]int{20, 0, 20, 0}, nil},  // each of the two would know the other's
		{[4]int{0, 0, 20, 0}, []int{2}},
		{[4]int{20, 500, 500, 500}, []int{0}}, // nobody has this many
		{[4]int{0, 0, 500, 0}, nil},
	} {
		all := exchanges(shards, "accuracy", eval.Goal{})
		for r, e := range all {
			e.Publish = c.least[r]
		}
		together(t, all, logits, -1)
		for r, e := range all {
			f, err := e.Figures("", modelOf(t, 3))
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, one := range f.Published {
				got = append(got, one.Rank)
				theirs, err := all[one.Rank].Figures("", modelOf(t, 3))
				if err != nil {
					t.Fatal(err)
				}
				own := theirs.Sites[0].Test
				if one.Rows != own.Rows/10*10 || one.Rows == 0 ||
					math.Abs(one.Metric-float64(own.Metric)) > 0.005+1e-9 {
					t.Errorf("%v: site %d has %d nodes at %v, and told site %d %+v", c.least, one.Rank, own.Rows,
						own.Metric, r, one)
				}
			}
			var want []int
			for _, rank := range c.told {
				if rank != r {
					want = append(want, rank)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v: site %d must know the figures of %v (got %v)", c.least, r, want, got)
			}
			told := e.Told() != nil
			if own := len(want) < len(c.told); told != own {
				t.Errorf("%v: site %d told %t", c.least, r, told)
			}
		}
	}
}

// TestMayTell: figures of single sites are not sent if figures of a hidden site, or of a few nodes, would follow from
// the totals.
func TestMayTell(t *testing.T) {
	for of, want := range map[[standings]int64]bool{
		{0, 0, 0}: false,
		{0, 3, 3}: false,
		{3, 0, 0}: true,
		{3, 1, 1}: false, // it follows
		{3, 1, 0}: false,
		{3, 2, 2}: false, // each of the two knows the other's
		{3, 3, 2}: false, // nearly
		{3, 3, 0}: false, // few nodes
		{1, 3, 3}: true,
		{1, 5, 3}: true,
	} {
		if got := mayTell(of); got != want {
			t.Errorf("%v: %t", of, got)
		}
	}
}

// TestPublishedIsCoarse: a site does not reveal that all of its nodes are right, or wrong. A ranking of very few is not
// sent, and a site that has the model from another adds nothing and hides nothing.
func TestPublishedIsCoarse(t *testing.T) {
	for _, c := range []struct {
		rows   int64
		metric Value
		want   Published
	}{{57, 1, Published{Rows: 50, Metric: 0.96}}, {57, 0, Published{Rows: 50, Metric: 0.04}},
		{999, 0.8449, Published{Rows: 990, Metric: 0.84}}} {
		if got := publishedOf(Set{Rows: c.rows, Metric: c.metric}); got != c.want {
			t.Errorf("%d nodes at %v: %+v, must be %+v", c.rows, c.metric, got, c.want)
		}
	}
	g, logits := example(t, 400, 2, false, true)
	e := exchanges(parts(t, g, 1), "auc", eval.Goal{})[0]
	e.Publish, e.logits = 20, logits
	if is, err := e.standing(); err != nil || is != [standings]int64{1, 0, 0} {
		t.Errorf("a site that publishes is %v (%v)", is, err)
	}
	for i := range e.Shard.Labels.Class {
		e.Shard.Labels.Class[i] = 0
	}
	if is, err := e.standing(); err != nil || is != [standings]int64{0, 1, 1} {
		t.Errorf("a ranking of one class must not be told (%v, %v)", is, err)
	}
	e.logits = mat.Dense{}
	if is, err := e.standing(); err != nil || is != [standings]int64{} {
		t.Errorf("a site without logits is %v (%v)", is, err)
	}
}

// TestPublishedBytes: a site that publishes its figures sends a few more bytes, which are control.
func TestPublishedBytes(t *testing.T) {
	g, logits := example(t, 1200, 3, false, true)
	shards := parts(t, g, 3)
	used := func(least int) comm.Counts {
		all := exchanges(shards, "accuracy", eval.Goal{})
		for _, e := range all {
			e.Publish = least
		}
		together(t, all, logits, -1)
		return all[0].Used()
	}
	none, told := used(0), used(20)
	if more := told.Control - none.Control; more != 2*(PublishedBytes+comm.HeaderLen) || told.Reduce != none.Reduce ||
		told.Halo != none.Halo {
		t.Errorf("%+v, and with figures of sites %+v", none, told)
	}
}

func FuzzPublished(f *testing.F) {
	f.Add(Published{Rows: 120, Metric: 0.84}.encode())
	f.Add([]byte{1, 2, 3, 4, 101})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := readPublished(b)
		if err != nil {
			return
		}
		if p.Rows < 0 || p.Metric < 0 || p.Metric > 1 || !bytes.Equal(p.encode(), b) {
			t.Errorf("%x is %+v, which is %x", b, p, p.encode())
		}
	})
}
