package heddle

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// asked reads the plan that lines of settings ask for, whatever their section.
func asked(lines string) (*Plan, error) {
	given, rest := map[string]string{}, ""
	for line := range strings.SplitSeq(lines, "\n") {
		name, value, _ := strings.Cut(line, ":")
		if _, ok := plan.Lookup("", name); ok {
			given[name] = strings.Trim(value, ` "[]`)
		} else {
			rest += line + "\n"
		}
	}
	return ReadPlan([]byte(rest), given, nil)
}

// read makes a plan that must be sound. Experimental settings may be anywhere in its text.
func read(t *testing.T, text string) Plan {
	t.Helper()
	p, err := asked(text)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return *p
}

// ofSites is a plan of class-means, with further settings, and a graph over several peers.
func ofSites(t *testing.T, peers int, given string) Local {
	t.Helper()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 1200}, rng.New(1))
	p := read(t, "method: class-means\npolicy: random\ntransport: memory\n"+given)
	p.Peers = peers
	shards, err := Split(g, p)
	if err != nil {
		t.Fatal(err)
	}
	return Local{Plan: p, Shards: shards, OnEvent: func(Event) {}}
}

func parametersOf(r *Result) (digests []uint32) {
	for _, l := range append(slices.Clone(r.Model.Layers), r.Model.Encoder.Layer) {
		if l != nil {
			for _, p := range l.Params() {
				digests = append(digests, train.Digest(p.Value.Data))
			}
		}
	}
	if p := r.Model.Encoder.Proj; p != nil {
		digests = append(digests, train.Digest(p.W.Value.Data))
	}
	return digests
}

// joined is a run of some sites in this process, on separate ports.
type joined struct {
	plan  Plan
	sites []Site
}

func newJoined(t *testing.T, l Local) *joined {
	t.Helper()
	j := &joined{plan: l.Plan}
	j.plan.Peers, j.plan.Transport, j.plan.Policy = plan.AutoPeers, "libp2p", "auto"
	var members []string
	for r, own := range l.Shards {
		id, err := identity.New()
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, fmt.Sprintf("site-%d=%s@127.0.0.1", r, id.PeerID()))
		j.sites = append(j.sites,
			Site{Identity: id, Shard: own, Wait: time.Minute, Rejoin: time.Minute,
				State: filepath.Join(t.TempDir(), fmt.Sprint(r))})
	}
	if err := j.plan.AddMembers(members, testenv.FreePorts(t, len(members))); err != nil {
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
