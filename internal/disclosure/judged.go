package disclosure

import (
	"cmp"
	"errors"
	"math"
	"time"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/plan"
)

// judged returns what a site's policy checks of p. The number of values that rows store is not known.
func judged(p plan.Plan) admission.Plan {
	g := p.Gradient()
	j := admission.Plan{Method: p.Method, Encoder: p.Encoder().String(),
		LayerOutput: cmp.Or(p.LayerWise.LayerOutput, "hidden"), Rows: p.Rows, Layers: max(1, g.Layers),
		Hops: max(p.Hops(), p.ClassHops()), Rounds: g.Rounds, Members: len(p.Members), FiguresBy: p.FiguresBy}
	m := p.ClassMeans
	if m.Epsilon > 0 {
		j.Rows = "float32" // whatever is set: whole numbers
		j.Epsilon, j.Delta = m.Epsilon, m.Delta
	}
	if p.LayerWise.Encoder.Kind == "pca" {
		j.Passes = p.LayerWise.PCAPasses
	}
	if j.InSum = j.Members; len(p.Members) > 2 && !p.Secure(len(p.Members)) {
		j.InSum = 1
	}
	if p.Method == plan.ClassMeans {
		// The plan does not say how many features there are: as many as have the most rounds.
		j.Rounds = classmeans.Config{Features: math.MaxInt, ClassRounds: m.ClassRounds, Hops: m.Hops,
			Epsilon: m.Epsilon}.MostRounds()
		j.Labels = m.LeaveOneOut == "false" || m.LeaveOneOut == "auto" && m.ClassTarget != "labels"
	}
	return j
}

// Admitted returns a *Refusal for each member of p that r does not admit under this name, and for each relay that r
// does not list.
func Admitted(p plan.Plan, r admission.Roster, now time.Time) error {
	var errs []error
	for _, m := range p.Members {
		listed, err := r.Admit(m.ID, now, admission.Trainer, admission.Coordinator)
		if err == nil && listed.Name != m.Name {
			err = &admission.Refusal{Rule: "roster.name", Reason: "the plan calls " + m.ID + " " + m.Name +
				", the roster " + listed.Name}
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.AllowsRelays(now, p.Relays, p.Addresses()))...)
}
