// Package federation has the commands of a federation's members: keys, rosters, approvals, audit
// logs, relays and checks.
package federation

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newInit(), newRoster(), newCheckPlan(), newApprove(), newAudit(), newRelay(), newDoctor()}
}
