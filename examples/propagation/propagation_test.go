package propagation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/examples/propagation"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// TestPropagation: three sites train by a method that is not part of Heddle, and one of them is killed in the middle.
// What they send is on the method's list, and a list of one step less refuses it. The model gives any program the same
// classes.
func TestPropagation(t *testing.T) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 900, Sites: 3, Classes: 3, Degree: 30, Train: 0.5}, rng.New(1))
	shards, err := partition.Partition(g, partition.ByColumn{}, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := propagation.Method{Steps: 10, Alpha: 0.9, Features: g.X.Cols(), Classes: g.Labels.Classes}
	dir := t.TempDir()
	run := func(listed propagation.Method, killed int) (all []*train.Trained, err error) {
		all = make([]*train.Trained, 3)
		err = session.Local(t.Context(), "", nil, make([]session.Terms,
			3), func(ctx context.Context, at *session.Session) error {
			own := shards[at.Rank]
			lists, err := listed.Messages(train.Members{Peers: 3, Nodes: own.Nodes, Train: own.Nodes})
			if err != nil {
				return err
			}
			gives, takes := make([]int, 3), make([]int, 3)
			for q := range gives {
				gives[q], takes[q] = len(own.Boundary[q]), own.HaloPtr[q+1]-own.HaloPtr[q]
			}
			at.Checkpoints = &checkpoint.Store{Dir: filepath.Join(dir, fmt.Sprint(at.Rank))}
			saved := 0
			at.Event = func(e train.Event) {
				if e.Kind == train.Saved {
					saved++
				}
			}
			all[at.Rank], _, err = at.Run(ctx, func(ctx context.Context, s *session.Session) (*train.Trained, error) {
				if s.Group != nil {
					s.Group.Under(train.NewApproval(gives, takes, lists...))
				}
				ctx, kill := context.WithCancelCause(ctx)
				defer kill(nil)
				heard := s.OnEvent
				s.OnEvent = func(e train.Event) {
					if heard(e); killed > 0 && saved == killed && at.Rank == 1 {
						kill(errKilled)
					}
				}
				return m.Train(ctx, &s.Place, own)
			})
			return err
		})
		return all, err
	}
	short := m
	short.Steps--
	if _, err := run(short, 0); !errors.Is(err, comm.ErrRefused) || !strings.Contains(err.Error(), "logits to smooth") {
		t.Fatalf("a list of %d steps must refuse the last one (%v)", short.Steps, err)
	}
	dir = t.TempDir()
	if _, err := run(m, 4); err == nil {
		t.Fatal("the run must end where a site is killed")
	}
	all, err := run(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	straight, err := run(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	z, err := infer.Graph(all[0].Model, g)
	if err != nil {
		t.Fatal(err)
	}
	for r, got := range all {
		if got.Final().Test < 0.5 || fmt.Sprint(got.Logits.Data) != fmt.Sprint(straight[r].Logits.Data) {
			t.Errorf("site %d: accuracy is %v, and a run that was killed must end as one that was not", r,
				got.Final().Test)
		}
		for i, node := range shards[r].Global[:shards[r].Owned] {
			for k, v := range got.Logits.Row(i) {
				here, there := v-got.Logits.At(i, 0), z.At(int(node), k)-z.At(int(node), 0)
				if math.Abs(float64(here-there)) > 1e-3 {
					t.Fatalf("node %d, class %d against 0: %v at the site, %v by the model", node, k, here, there)
				}
			}
		}
	}
}

var errKilled = errors.New("killed")
