package external

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/graphtest"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/partition/vertexcut"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// A vertex cut of a stored graph is worth what it is in memory, be edges one-way or not, and says
// how far it is.
func TestVertexCutsStream(t *testing.T) {
	oneWay, err := graph.FromEdges(6, []int32{0, 1, 2, 2, 5, 4}, []int32{1, 2, 0, 5, 4, 2}, nil, graph.Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	for k, g := range []*graph.Graph{graphtest.Communities(3000, 8, 12, 0.8, rng.New(2)), graphtest.Star(1001), {Adj: oneWay}} {
		g.Split, g.Labels = make([]graph.Split, g.N()), graph.Labels{Classes: 1, Class: make([]int32, g.N())}
		s := store(t, t.TempDir(), g)
		for _, name := range []string{"dbh", "hvc", "cvc", "gvc", "svc", "hdrf", "2ps-l"} {
			cut := vertexcut.Parse(name)
			want, err := vertexcut.Measure(partition.Memory{Graph: g}, cut, 5, partition.Key(3))
			if err != nil {
				t.Fatal(err)
			}
			var last Progress
			got, err := s.Replicas(cut, Job{Parts: 5, Meta: shard.Meta{Seed: 3}, Watch: func(p Progress) error {
				if p.Step < last.Step || p.Step >= p.Steps || p.Done > p.Total {
					t.Errorf("%s: %+v after %+v", name, p, last)
				}
				last = p
				return nil
			}})
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("graph %d, %s: %+v, %v, want %+v", k, name, got, err, want)
			}
			if last.Step != last.Steps-1 {
				t.Errorf("%s: ended with %+v", name, last)
			}
			stop := errors.New("stop")
			if _, err := s.Replicas(cut, Job{Parts: 5, Watch: func(Progress) error { return stop }}); err != stop {
				t.Errorf("%s stopped: %v", name, err)
			}
			if _, err := s.Replicas(cut, Job{Parts: 5, Memory: 1 << 20}); err == nil || !strings.Contains(err.Error(), "with 1 allowed") {
				t.Errorf("%s in 1 MiB: %v", name, err)
			}
			if _, err := s.Replicas(cut, Job{Parts: g.N() + 1}); err == nil || !strings.Contains(err.Error(), "as many as nodes") {
				t.Errorf("%s in too many parts: %v", name, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
