// Package gate has what a site decides about the runs it takes part in: files of rules, a budget of privacy, and which
// phones it admits.
package gate

import (
	"cmp"
	"path/filepath"

	"github.com/heddle-gnn/heddle/graph/shard"
)

// Ledger is a log file of what runs spent of the privacy of a site's edges.
type Ledger struct {
	Path           string  // (empty = none is kept)
	Epsilon, Delta float64 // that all runs together must keep (0 = no limit)
}

// Files are what decides whether a site takes part in a run. Roster, Policy and Approval are given together
// or not at all.
type Files struct {
	Ledger     Ledger // of what runs spend
	Evidence   []byte // what a phone shows the sites to be admitted; at most 4 KiB
	Roster     string // file of the federation's roster: peers that it does not list are refused
	Trusted    string // file of the roster in force at this site
	TrustedDir string // if Trusted is empty, directory with such a file for each federation
	Policy     string // file of the site's policy: what it does not allow is refused
	Approval   string // file of the site's approval of the plan
	PlanText   []byte // the plan file, which approval and audit log name by its hash
	Audit      string // file of the log of runs and of what left this site (empty = none is kept)
}

// InForce returns the path of the roster of a federation that is in force at this site.
func (f Files) InForce(federation string) string {
	return cmp.Or(f.Trusted, filepath.Join(f.TrustedDir, federation+".json"))
}

// Runs returns the path of the ledger of the runs, of all federations, that sent rows of own's table.
func (f Files) Runs(own *shard.Shard) string {
	return filepath.Join(cmp.Or(f.TrustedDir, filepath.Dir(f.Trusted)), "runs-"+shard.Edges(own)[:16]+".jsonl")
}
