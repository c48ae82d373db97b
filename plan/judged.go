package plan

import (
	"errors"
	"math"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/classmeans"
)

// Allowed returns an error unless policy allows p.
func (p Plan) Allowed(policy admission.Policy) error { return policy.Check(p.Judged()) }

// Judged returns what a site's policy checks of p. The number of values that rows store is not known.
func (p Plan) Judged() admission.Plan {
	j := admission.Plan{Method: p.Method, Encoder: p.Encoder.String(), LayerOutput: p.LayerOutput, Rows: p.Rows, Layers: p.Layers,
		Hops: p.Hops, Rounds: p.Rounds, Members: len(p.Members)}
	if p.Epsilon > 0 {
		j.Rows = "float32" // whatever is set: whole numbers
		j.Epsilon, j.Delta = p.Epsilon, p.Delta
	}
	if p.Encoder.Kind == "pca" {
		j.Passes = p.PCAPasses
	}
	if c, _ := p.classColumns(task{Classes: 2}); c != nil { // whatever the data
		j.Hops = max(j.Hops, c.Hops)
	}
	if j.InSum = j.Members; len(p.Members) > 2 && !p.Secure(len(p.Members)) {
		j.InSum = 1
	}
	switch {
	case p.Method == ClassMeans:
		// The plan does not say how many features there are: as many as have the most rounds.
		j.Rounds = classmeans.Config{Features: math.MaxInt, ClassRounds: p.ClassRounds, Hops: p.Hops,
			Epsilon: p.Epsilon}.MostRounds()
		j.Labels = p.LeaveOneOut == "false" || p.LeaveOneOut == "auto" && p.ClassTarget != "labels"
	}
	return j
}

// Admitted returns a *Refusal for each member of p that r does not admit under this name, and for each relay that r does
// not list.
func (p Plan) Admitted(r admission.Roster, now time.Time) error {
	var errs []error
	for _, m := range p.Members {
		listed, err := r.Admit(m.ID, now, admission.Trainer, admission.Coordinator)
		if err == nil && listed.Name != m.Name {
			err = &admission.Refusal{Rule: "roster.name", Reason: "the plan calls " + m.ID + " " + m.Name + ", the roster " + listed.Name}
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.AllowsRelays(now, p.Relays, p.Addresses()))...)
}
