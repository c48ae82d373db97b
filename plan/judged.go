package plan

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/retexo/closedform"
)

// Allowed returns an error unless policy allows p: of preset auto, unless it allows any of the
// candidates. The others are not tried.
func (p Plan) Allowed(policy admission.Policy) error {
	var errs []error
	for _, c := range p.Candidates() {
		err := c.Plan.Allowed(policy)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return policy.Check(p.Judged())
}

// Judged returns what a site's policy checks of p, which is not of preset auto.
func (p Plan) Judged() admission.Plan {
	least := len(p.Members)
	if p.MinPeers > 0 {
		least = p.MinPeers // sums of so few are seen, once others have failed
	}
	rounds := p.Rounds
	switch {
	case p.InClosedForm():
		rounds = closedform.Config{ClassRounds: p.ClassRounds}.MostRounds()
	case p.Solver == "ridge":
		rounds = 1
	}
	return admission.Plan{Encoder: p.Encoder.String(), LayerOutput: p.LayerOutput, Solver: p.Solver, Peers: least,
		Rounds: rounds}
}
