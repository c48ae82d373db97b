package heddle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/ports"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/train"
)

// joined is a run of some sites in this process, on ports of their own.
type joined struct {
	plan  Plan
	sites []Site
}

func newJoined(t *testing.T, l Local) *joined {
	t.Helper()
	j := &joined{plan: l.Plan}
	j.plan.Peers, j.plan.Transport, j.plan.Policy = Auto, "libp2p", "auto"
	var members []string
	for r, own := range l.Shards {
		id, err := identity.New()
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, fmt.Sprintf("site-%d=%s@127.0.0.1", r, id.PeerID()))
		j.sites = append(j.sites, Site{Identity: id, Shard: own, Wait: time.Minute, Rejoin: time.Minute, State: filepath.Join(t.TempDir(), fmt.Sprint(r))})
	}
	if err := j.plan.AddMembers(members, ports.Free(t, len(members))); err != nil {
		t.Fatal(err)
	}
	return j
}

// join runs all sites and returns what they gave, by rank.
func (j *joined) join(ctx context.Context) ([]*Result, []error) {
	results, errs := make([]*Result, len(j.sites)), make([]error, len(j.sites))
	var wait sync.WaitGroup
	for r, s := range j.sites {
		wait.Go(func() { results[r], errs[r] = Join(ctx, j.plan, s) })
	}
	wait.Wait()
	return results, errs
}

// TestSitesTune: sites make the choice that one process makes, and have its model.
func TestSitesTune(t *testing.T) {
	l := contested(t, 3, "budget: 5")
	want, err := l.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j := newJoined(t, l)
	models, stages := 0, 0
	j.sites[1].OnEvent = func(e Event) {
		if e.Kind == train.StageEnd {
			if stages++; !math.IsNaN(e.Test) {
				t.Errorf("site 1 sees test %v of %q before the choice", e.Test, e.StageName)
			}
		}
	}
	j.sites[0].OnModel = func(*Result) error { models++; return nil }
	results, errs := j.join(t.Context())
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r, got := range results {
		if a, b := outcomes(got), outcomes(want); a != b {
			t.Errorf("site %d:\n%swant\n%s", r, a, b)
		}
		if !slices.Equal(parametersOf(got), parametersOf(want)) {
			t.Errorf("site %d has another model", r)
		}
	}
	if models != 1 || stages == 0 {
		t.Errorf("the model was final %d times, after %d stages", models, stages)
	}
}

// TestSitesTuneAfterARestart: a site that is stopped in the middle of the contest and starts again finds the others, which
// wait, and all come to the same end; when all are done, none needs another one to return its model.
func TestSitesTuneAfterARestart(t *testing.T) {
	l := contested(t, 3, "budget: 5")
	want, err := l.Train(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, when := range []func(Event) bool{
		func(e Event) bool { return e.Kind == train.CandidateBegin && e.Candidate == "labels" },
		func(e Event) bool { return e.Kind == train.CandidateEnd && e.Candidate == "own-rows" },
		func(e Event) bool { return e.Kind == train.StageEnd }, // of the first candidate
	} {
		j := newJoined(t, l)
		first, stop := context.WithCancel(t.Context())
		again := j.sites[1]
		j.sites[1].OnEvent = func(e Event) {
			if when(e) {
				stop()
			}
		}
		results, errs := make([]*Result, 3), make([]error, 3)
		var wait sync.WaitGroup
		for r, s := range j.sites {
			wait.Go(func() {
				if r != 1 {
					results[r], errs[r] = Join(t.Context(), j.plan, s)
				} else if _, err := Join(first, j.plan, s); err == nil || first.Err() == nil {
					t.Errorf("case %d: the site was not stopped: %v", i, err)
				} else {
					results[r], errs[r] = Join(t.Context(), j.plan, again)
				}
			})
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("case %d: %v", i, err)
		}
		for r, got := range results {
			if choice(t, got).Name != choice(t, want).Name || !slices.Equal(parametersOf(got), parametersOf(want)) {
				t.Errorf("case %d: site %d has another model than that of one process:\n%swant\n%s", i, r, outcomes(got), outcomes(want))
			}
			if a, b := outcomes(got), outcomes(results[0]); a != b {
				t.Errorf("case %d: site %d:\n%ssite 0\n%s", i, r, a, b)
			}
		}
		alone, err := Join(t.Context(), j.plan, again) // the others have left
		if err != nil || !slices.Equal(parametersOf(alone), parametersOf(want)) || outcomes(alone) != outcomes(results[0]) {
			t.Errorf("case %d: a site that is done starts again: %v", i, err)
		}
	}
}

// TestSitesWithDifferentPlans: sites whose budgets differ do not begin, and are told why.
func TestSitesWithDifferentPlans(t *testing.T) {
	l := contested(t, 2, "")
	j := newJoined(t, l)
	errs := make([]error, 2)
	var wait sync.WaitGroup
	for r, s := range j.sites {
		plan := j.plan
		if r > 0 {
			plan.Budget++
		}
		wait.Go(func() { _, errs[r] = Join(t.Context(), plan, s) })
	}
	wait.Wait()
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "budget is") {
			t.Errorf("site %d: %v, must say that the budgets differ", r, err)
		}
	}
}
