package heddle

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/tune"
)

// auto is the preset that tries several plans.
const auto = "auto"

// presetCandidates are the plans that preset auto tries, simpler ones first. Each sets model and training only; what
// travels, the network and faults are those of the plan. trained says that its layers are trained in rounds.
var presetCandidates = []struct {
	name, settings string
	trained        bool
}{
	{"classes", "preset=frugal", false},
	{"classes-1round", "preset=frugal class_rounds=1", false},
	{"classes-4hops", "preset=frugal hops=4", false},
	{"classes-all-hops", "preset=frugal hops_kept=all random_features=128", false},
	{"classes-own-rows", "preset=frugal hops_kept=all random_features=128 class_target=residual", false},
	{"classes+pca16", "preset=frugal encoder=classes+pca:16", false},
	{"pca16-2hops", "preset=frugal-pca encoder=pca:16 hops=2", false},
	{"pca64-2hops", "preset=frugal-pca encoder=pca:64 hops=2", false},
	{"pca64-4hops", "preset=frugal-pca encoder=pca:64 hops=4", false},
	{"pca128-4hops", "preset=frugal-pca", false},
	{"gcn", "model=gcn encoder=pca:64 hidden=64 lr=0.01 patience=20", true},
	{"sage", "model=sage encoder=pca:64 hidden=64 lr=0.01 patience=20", true},
	{"gat", "model=gat encoder=pca:64 hidden=64 lr=0.01 patience=20", true},
}

// commonSettings are those about model and training that all candidates of preset auto take from the plan, autoSettings
// those that a plan of preset auto may set.
var (
	commonSettings = []string{"seed", "balanced", "inductive", "metric", "min_class"}
	autoSettings   = append([]string{"mode", "preset", "budget", "goal"}, commonSettings...)
	chosenGroups   = []string{"model", "training", "closed form"}
)

// Candidate is a plan that a plan of preset auto may try.
type Candidate struct {
	Name string
	Plan Plan

	trained bool
	fault   error // why the data, or the site, rules it out; nil: nothing does
}

// Candidates returns the plans that p, of preset auto, may try, simpler ones first; nil for any other plan.
func (p Plan) Candidates() (all []Candidate) {
	if p.Preset != auto {
		return nil
	}
	for _, c := range presetCandidates {
		given := map[string]string{}
		for pair := range strings.FieldsSeq(c.settings) {
			name, value, _ := strings.Cut(pair, "=")
			given[name] = value
		}
		q, _, err := ReadPlan(nil, given, nil)
		must(err)
		for _, s := range settings() {
			if s.Auto && (!slices.Contains(autoSettings, s.Name) || slices.Contains(commonSettings, s.Name)) && q.reads(s) {
				q.value(s).Set(p.value(s))
			}
		}
		q.Members = p.Members
		all = append(all, Candidate{Name: c.name, Plan: *q, trained: c.trained})
	}
	return all
}

// fitting is Candidates with the faults that check finds. Of plans with the same fingerprint only the first may be tried.
// If there is none to try, the error says why.
func (p Plan) fitting(check func(Plan) ([32]byte, error)) ([]Candidate, error) {
	all := p.Candidates()
	var seen [][32]byte
	var errs []error
	for i, c := range all {
		id, err := check(c.Plan)
		if err == nil && slices.Contains(seen, id) {
			err = errors.New("the same as a plan before it, for these data")
		}
		if all[i].fault = err; err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		} else {
			seen = append(seen, id)
		}
	}
	if len(seen) > 0 {
		return all, nil
	}
	return nil, errors.Join(errs...)
}

// identifyCandidates is identify of a plan of preset auto: a hash of those of its candidates.
func (p Plan) identifyCandidates(t task) (id [32]byte, err error) {
	_, errs := p.sound()
	if p.Mode != "retexo" {
		return id, errors.Join(errs...) // preset says so
	}
	if p.MinPeers > 0 {
		errs.add("min_peers must be 0 with preset auto (got %d): all peers must be there to choose alike", p.MinPeers)
	}
	if len(errs) > 0 {
		return id, errors.Join(errs...)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s %v\n", p.Goal, p.Budget)
	_, err = p.fitting(func(q Plan) ([32]byte, error) {
		id, err := q.identify(t)
		if err == nil {
			text.Write(id[:])
		}
		return id, err
	})
	return sha256.Sum256(text.Bytes()), err
}

// candidates returns those of p with the faults that own, one of the parts, shows.
func (p Plan) candidates(own *shard.Shard) ([]Candidate, error) {
	all, err := p.fitting(func(q Plan) ([32]byte, error) {
		id, _ := q.Identify(own)
		return id, q.Check([]*shard.Shard{own})
	})
	if err != nil && numbered(own) {
		model := "gcn"
		if own.Typed.Count() > 0 {
			model = "rgcn"
		}
		err = fmt.Errorf("preset auto has no plan for %s, whose nodes have no features: train with mode fullbatch and "+
			"model %s, which learn a row for each node", own.Name, model)
	}
	return all, err
}

// limit returns the bytes that all peers of a run by p send at most.
func (p Plan) limit(t task, e tune.Extent) (int64, error) {
	if p.closedForm() {
		c, err := p.closedFormConfig(t)
		return tune.ClosedLimit(c, e), err
	}
	c, err := p.layerwise(t)
	if err != nil {
		return 0, err
	}
	return tune.Limit(c, e)
}

// extent is what one peer adds to the extent of a contest between candidates.
func (p Plan) extent(own *shard.Shard, all []Candidate) tune.Extent {
	e := tune.Extent{Peers: 1, Nodes: int64(own.Owned), Halo: int64(own.Halo()), Labels: labels.Numbers(own, p.Seed), Barred: make([]int64, len(all))}
	for i, c := range all {
		if c.fault != nil {
			e.Barred[i] = 1
		}
	}
	return e
}

// entrant is what a contest knows of c.
func (c Candidate) entrant() tune.Entrant {
	return tune.Entrant{Name: c.Name, Plan: c.Plan.agreed(), Trained: c.trained}
}

// contest returns the contest between candidates for a task that all peers share, of whose extents e is the sum.
func (p Plan) contest(all []Candidate, e tune.Extent, t task) (*tune.Contest, error) {
	list := make([]tune.Entrant, len(all))
	for i, c := range all {
		list[i] = c.entrant()
		err := c.fault
		if err == nil && e.Barred[i] > 0 {
			err = errors.New("another site does not allow it")
		}
		if err == nil {
			list[i].Limit, err = c.Plan.limit(t, e)
		}
		if err != nil {
			list[i].Barred = err.Error()
		}
	}
	contest, err := tune.New(p.Goal, int64(math.Round(float64(p.Budget)*1e6)), int64(e.Counts(t.Kind == "multi", p.Seed).Validating()), list)
	if err != nil {
		return nil, input(fmt.Errorf("preset auto: %w; use another preset: retexo or frugal", err))
	}
	return contest, nil
}
