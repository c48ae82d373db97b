package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Approval is a site's consent to train by one plan.
type Approval struct {
	Federation string `json:"federation"`
	Plan       string `json:"plan"`    // PlanFingerprint of the plan's file
	Site       string `json:"site"`    // peer ID of the peer that may train by it
	Expires    Date   `json:"expires"` // the last day
}

func (Approval) kind() string { return "approval 1" }

// PlanFingerprint is the SHA-256 of a plan's file as it is, in hexadecimal: what sha256sum prints.
// A plan that differs in a single byte is another plan.
func PlanFingerprint(file []byte) string {
	h := sha256.Sum256(file)
	return hex.EncodeToString(h[:])
}

// Validate reports all faults at once.
func (a Approval) Validate() error {
	var errs []error
	if !named(a.Federation, lower+digits+"-") {
		errs = append(errs, fmt.Errorf("approval: federation must be 1 to %d small letters, digits and dashes (got %q)",
			maxName, a.Federation))
	}
	if !isFingerprint(a.Plan) {
		errs = append(errs, fmt.Errorf("approval: plan must be 64 hexadecimal digits (got %q)", a.Plan))
	}
	if _, err := publicKey(a.Site); err != nil {
		errs = append(errs, fmt.Errorf("approval: site: %w", err))
	}
	if err := a.Expires.validate(); err != nil {
		errs = append(errs, fmt.Errorf("approval: expires: %w", err))
	}
	return errors.Join(errs...)
}

// Approved checks that the approval is for this plan and site, has not expired, and has the signatures that the policy
// asks for: from its approvers, or from the site itself if it lists none. The error is a *Refusal.
func (p Policy) Approved(a *Signed[Approval], plan, site string, now time.Time) error {
	b := a.Body
	switch {
	case b.Federation != p.Federation:
		return refuse("approval.federation", "it is for %s, this site's policy is for %s", b.Federation, p.Federation)
	case b.Plan != plan:
		return refuse("approval.plan",
			"it is for plan %.16s…, this one is %.16s…: read the plan as it is now, then heddle approve", b.Plan, plan)
	case b.Site != site:
		return refuse("approval.site", "it is for %s, this peer is %s", b.Site, site)
	case b.Expires.Past(now):
		return refuse("approval.expired", "it was good until %s", b.Expires)
	}
	approvers, need := p.Approvers, max(1, p.Approvals)
	if len(approvers) == 0 {
		approvers = []string{site}
	}
	signers := a.Signers()
	var good, missing []string
	for _, id := range approvers {
		if slices.Contains(signers, id) {
			good = append(good, id)
		} else {
			missing = append(missing, id)
		}
	}
	if len(good) < need {
		return refuse("approval.signatures", "%d of the %d that this site's policy asks for: signed by %s; missing %s",
			len(good), need, list(good), list(missing))
	}
	return nil
}
