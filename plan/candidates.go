package plan

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/graph/target"
)

// Auto is the value of settings that are chosen by what else is known.
const Auto = "auto"

// closedForms are the plans that method class-means compares, simpler ones first: each is a single closed form. The other
// settings are those of the plan. docs/measurements/candidates.md has the figures. Of nodes with few values only one plan
// sends rows, the usual one or, with residuals of many features, the first: rows of all plans together could give such a node
// back.
var closedForms = []struct {
	name, settings string
	kind           kind
}{
	{"own-rows", "class_target=labels hops=0", closedForm},
	{"own-residual", "class_target=residual hops=0", wide},
	{"classes", "withhold_few=true", narrow},
	{"own-part-out", "hops=4 leave_one_out=true withhold_few=true", narrow},
	{"residual", "class_target=residual withhold_few=true", closedForm},
	{"last-hop", "class_target=labels hops=4 random_features=128 withhold_few=true", narrow},
	{"all-hops", "hops_kept=all random_features=128 withhold_few=true", narrow},
	{"labels", "class_target=labels hops=6 hops_kept=all random_features=128", usual},
	{"residual-wide", "class_target=residual class_rounds=5 random_features=512 withhold_few=true", manyLabels},
}

// kind says when a candidate is tried.
type kind int

const (
	closedForm kind = iota // whatever the others give
	narrow                 // in the same way, of few features only: rows of several plans tell many of them
	wide                   // in the same way, of more features only, where it says which targets rows are made of
	usual                  // in the same way; chosen unless another is better by more than a standard error
	manyLabels             // in the same way, where training nodes are many beside its random features
)

// mostNarrow is how many features a node may have for rows of several plans to be sent, of any targets (package closedform
// has rows of residuals by the same bound).
const mostNarrow = 64

// ofContest are the settings of a plan that its candidates do not take from it.
var ofContest = []string{"method", "single", "budget"}

// Candidate is a single closed form that a plan of method class-means may try.
type Candidate struct {
	Name string
	Plan Plan
	Sets string // of model and training, as "hops=4"

	Usual  bool   // chosen unless another validates better by more than a standard error
	Target string // of class means that many features are told by: "labels" or "residual"; empty: not such a plan
	Many   bool   // tried only where training nodes are many beside its random features
	Fault  error  // why the data, or the site, rules it out; nil: nothing does

	kind kind
}

// fitTo is c for nodes of such data, or why it is not tried there. Where a node has one class and many features, rows of
// few plans may cross, all of them of one target.
func (c Candidate) fitTo(t task) (Candidate, error) {
	if t.Kind != target.Single {
		c = c.ofOwnResiduals()
	}
	many := t.Kind == target.Single && t.Features > mostNarrow && !t.Numbered
	switch {
	case many && c.kind == narrow:
		return c, fmt.Errorf("rows of several plans tell too much of %d features", t.Features)
	case !many && c.kind == wide:
		return c, errors.New("the others may all send rows")
	case many:
		c.Target = c.Plan.ClassTarget
		if c.kind == closedForm { // of its target it alone sends rows of nodes with few values
			c = c.ofAllNodes()
		}
	}
	return c, nil
}

// ofAllNodes is c that sends rows of nodes with few values, too.
func (c Candidate) ofAllNodes() Candidate {
	c.Plan.WithholdFew = false
	c.Sets = strings.Replace(c.Sets, " withhold_few=true", "", 1)
	return c
}

// Candidates returns the plans that p compares, simpler ones first; nil if it compares none.
func (p Plan) Candidates() (all []Candidate) {
	if !p.Contest() {
		return nil
	}
	for _, c := range closedForms {
		given := map[string]string{"method": ClassMeans, "single": "true"}
		for pair := range strings.FieldsSeq(c.settings) {
			name, value, _ := strings.Cut(pair, "=")
			given[name] = value
		}
		q, err := Read(nil, given, nil)
		must(err)
		for _, s := range settings() {
			if p.reads(s) && !slices.Contains(ofContest, s.Name) {
				q.value(s).Set(p.value(s))
			}
		}
		q.Members = p.Members
		all = append(all, Candidate{Name: c.name, Plan: *q, Sets: c.settings, Usual: c.kind == usual,
			Many: c.kind == manyLabels, kind: c.kind})
	}
	return all
}

// ofOwnResiduals is c where nodes have numbers or several classes: own rows alone have no means of labels there.
func (c Candidate) ofOwnResiduals() Candidate {
	if c.Plan.Hops == 0 {
		c.Plan.ClassTarget = Auto
		c.Sets = strings.Replace(c.Sets, "class_target=labels ", "", 1)
	}
	return c
}

// fitting is Candidates for nodes of such data, with the faults that check finds. Of plans with the same fingerprint only the
// first may be tried. If there is none to try, the error says why.
func (p Plan) fitting(t task, check func(Plan) ([32]byte, error)) ([]Candidate, error) {
	all := p.Candidates()
	var seen [][32]byte
	for i := range all {
		c, err := all[i].fitTo(t)
		all[i] = c
		var id [32]byte
		if err == nil {
			id, err = check(c.Plan)
		}
		if err == nil && slices.Contains(seen, id) {
			err = errors.New("the same as a plan before it, for these data")
		}
		if all[i].Fault = err; err == nil {
			seen = append(seen, id)
		}
	}
	if len(seen) > 0 {
		return all, nil
	}
	return nil, allFaults(all)
}

// allFaults is the error of candidates of which none can be tried: each fault once, behind the names of those that have it.
func allFaults(all []Candidate) error {
	var errs []error
	done := map[string]bool{}
	for i, c := range all {
		text := c.Fault.Error()
		if done[text] {
			continue
		}
		done[text] = true
		names := c.Name
		for _, other := range all[i+1:] {
			if other.Fault.Error() == text {
				names += ", " + other.Name
			}
		}
		errs = append(errs, fmt.Errorf("%s: %w", names, c.Fault))
	}
	return errors.Join(errs...)
}

// identifyCandidates is identify of a plan that compares candidates: a hash of theirs.
func (p Plan) identifyCandidates(t task) (id [32]byte, err error) {
	_, errs := p.sound()
	if len(errs) > 0 {
		return id, errors.Join(errs...)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%v\n", p.Budget)
	_, err = p.fitting(t, func(q Plan) ([32]byte, error) {
		id, err := q.identify(t)
		if err == nil {
			text.Write(id[:])
		}
		return id, err
	})
	return sha256.Sum256(text.Bytes()), err
}

// CandidatesFor returns the candidates of p with the faults that own, one of the parts, shows. If there is none to try,
// the error says why.
func (p Plan) CandidatesFor(own *shard.Shard) ([]Candidate, error) {
	return p.fitting(p.taskOf(own), func(q Plan) ([32]byte, error) {
		id, _ := q.Identify(own)
		return id, q.Check([]*shard.Shard{own})
	})
}
