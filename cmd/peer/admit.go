package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/admission"
)

// bindGate adds the flags of what a site asks for before it takes part in a run.
func bindGate(f *pflag.FlagSet, g *heddle.Gate) {
	f.StringVar(&g.Roster, "roster", "", "roster of the federation, with --policy and --approval")
	f.StringVar(&g.Trusted, "trusted", "", "file of the roster in force; default: beside the key")
	f.StringVar(&g.Policy, "policy", "", "policy of this site")
	f.StringVar(&g.Approval, "approval", "", "approval of the plan by this site")
	f.StringVar(&g.Audit, "audit", "", "log of runs and of what left this peer; empty: none")
	g.TrustedDir = filepath.Join(siteDir(), "trusted")
}

// auditHead prints where an audit log ends, for people to keep elsewhere.
func auditHead(w io.Writer, path string) {
	if path == "" {
		return
	}
	if head, err := admission.VerifyLog(path, nil); err == nil {
		fmt.Fprintf(w, "audit:  %s, ends with %s\n", path, head)
	}
}
