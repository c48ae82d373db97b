// Package federation has the commands of a site that takes part in a federation: keys, plans, rosters, approvals, runs
// that it joins, how far they are, audit logs, relays and checks.
package federation

import "github.com/spf13/cobra"

// Site returns the commands that a site's server needs, which the program peer has. pages (nil = none) is what they
// write besides, sites (nil = nothing) writes site.yaml.
func Site(pages Pages, sites SiteWriter) []*cobra.Command {
	return []*cobra.Command{NewJoin(pages, nil), newInit(sites), newApprove(), newStatus(), newDoctor()}
}

// Commands returns all commands.
func Commands(pages Pages, sites SiteWriter) []*cobra.Command {
	return append(Site(pages, sites), newPlan(), newInvite(), newRoster(), newPolicy(), newCheck(), newAudit(),
		newRelay())
}
