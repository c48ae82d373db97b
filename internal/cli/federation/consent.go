package federation

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// Consent is what a person allows a site that takes part: the lines of the pages that were shown. They are kept in a
// file with this site's signature, and asked about again only if a line is new.
type Consent struct {
	Plan     heddle.Plan
	Rank     int
	Identity identity.Identity
	Gate     gate.Files
	Dir      string            // of the file, and of the approval
	Rules    *admission.Policy // (nil = the site bounds nothing)
	Yes      bool              // repeat an approval, ask nothing
	Roster   *admission.Signed[admission.Roster]

	Stdin  io.Reader
	Stdout io.Writer
}

// Page returns what training sends by the page of heddle check, without amounts, which each month changes. own may be a
// part as far as it is known before the sites meet.
func (a *Consent) Page(own *shard.Shard) (string, error) {
	k := checking{plan: cli.FederationPath, policy: a.Gate.Policy, trusted: a.Gate.Trusted, read: a.Plan,
		text: a.Gate.PlanText, rules: a.Rules}
	p, err := k.page(own)
	if err != nil {
		return "", err
	}
	if a.Rules != nil {
		if err := p.Judge(*a.Rules); err != nil {
			return "", cli.Invalidf("%s does not allow this plan: %w", a.Gate.Policy, err)
		}
	}
	var b bytes.Buffer
	p.printKinds(&b)
	fmt.Fprintf(&b, "  Of a node that another site reads %.4g numbers leave, %.4g of them not merely sums of such "+
		"numbers over neighbours.\n", p.Node, p.Fresh)
	p.printSettings(&b)
	return b.String(), nil
}

// Head returns how the page begins: who takes part in what.
func (a *Consent) Head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "site         %s\nplan         %s\n", a.Plan.Members[a.Rank].Name,
		admission.PlanFingerprint(a.Gate.PlanText))
	if a.Roster != nil {
		r := a.Roster.Body
		fmt.Fprintf(&b, "federation   %s, serial %d; compare over the phone: %s\n", r.Federation, r.Serial,
			admission.Grouped(r.Fingerprint()))
	}
	for _, m := range a.Plan.Members {
		fmt.Fprintf(&b, "member       %s  %s  %v\n", m.Name, m.ID, m.Addresses)
	}
	return b.String()
}

// path is the file of the lines that a person has allowed.
func (a *Consent) path() string { return filepath.Join(a.Dir, "approved.txt") }

// allowed returns the lines that a person has allowed, and when. A program that can write the folder could otherwise
// add lines that nobody has seen. The signature is over time and lines, by the key that also signs approvals.
func (a *Consent) allowed() (lines, when string, err error) {
	text, err := os.ReadFile(a.path())
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	head, lines, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(head)
	if len(fields) == 3 {
		var mark []byte
		if mark, err = hex.DecodeString(fields[2]); err == nil {
			err = identity.Verify(a.Identity.PeerID(), []byte(fields[1]+"\n"+lines), mark)
		}
	}
	if len(fields) != 3 || err != nil {
		return "", "", cli.Invalidf("%s must be as this site's key signed it (got a changed file): remove it, and "+
			"answer again", a.path())
	}
	return lines, fields[1], nil
}

// Ask shows the page, and asks for a yes unless a person has allowed each of its lines before. What is allowed is
// signed and kept.
func (a *Consent) Ask(ctx context.Context, page string) error {
	held, when, err := a.allowed()
	if err != nil {
		return err
	}
	// Lines are compared as a set, so a page in another order needs no answer. The plan's fingerprint is a line: a line
	// has the same sense as long as the plan is the same.
	had := map[string]bool{"": true}
	for line := range strings.Lines(held) {
		had[strings.TrimSpace(line)] = true
	}
	var fresh []string
	for line := range strings.Lines(page) {
		if !had[strings.TrimSpace(line)] {
			fresh = append(fresh, line)
		}
	}
	switch {
	case len(fresh) == 0:
		fmt.Fprintf(a.Stdout, "approved on %s, in %s: nothing else is sent\n", when, a.path())
		return nil
	case a.Yes && held == "":
		return cli.Invalidf("--yes repeats an approval, and there is none in %s: run heddle take-part once without it",
			a.Dir)
	case a.Yes:
		return cli.Invalidf("--yes repeats the approval of %s, which has no such lines:\n%s", when,
			strings.TrimRight(strings.Join(fresh, ""), "\n"))
	}
	fmt.Fprint(a.Stdout, page)
	if held != "" {
		fmt.Fprintf(a.Stdout, "\nNew since %s:\n%s", when, strings.Join(fresh, ""))
	}
	ask := approving{checking: checking{read: a.Plan, rank: a.Rank}, until: string(a.until())}
	if err := ask.confirm(ctx, a.Stdin, a.Stdout); err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	if held != "" {
		page = held + strings.Join(fresh, "")
	}
	mark, err := a.Identity.Sign([]byte(now + "\n" + page))
	if err != nil {
		return err
	}
	if err := cli.WritableDir(a.Dir); err != nil {
		return err
	}
	return disk.WriteFile(disk.OS{}, a.path(), 0o600, fmt.Appendf(nil, "# %s %x\n%s", now, mark, page))
}

// until is the last day of an approval.
func (a *Consent) until() admission.Date { return admission.Day(time.Now().AddDate(1, 0, 0)) }

// Sign puts the federation's roster in force, which the page showed, and signs this site's approval of the plan, unless
// there is one. First the roster: a roster that is older than the one in force is refused, and then nothing is signed.
// An approval by others stays and gets this site's signature, since a policy may ask for several.
func (a *Consent) Sign() error {
	if a.Roster == nil {
		return nil
	}
	r, now := a.Roster.Body, time.Now()
	if err := admission.Trusted(a.Gate.InForce(r.Federation)).Update(a.Roster, r.Fingerprint(), now); err != nil {
		return cli.Invalidf("%s: %w", a.Gate.Roster, err)
	}
	plan, id := admission.PlanFingerprint(a.Gate.PlanText), a.Identity.PeerID()
	signed := admission.Unsigned(admission.Approval{Federation: r.Federation, Plan: plan, Site: id,
		Expires: a.until()})
	held, err := admission.ReadFile[admission.Approval](a.Gate.Approval)
	if err == nil && held.Body.Plan == plan && held.Body.Site == id && !held.Body.Expires.Past(now) {
		if signed = held; a.Rules.Approved(held, plan, id, now) == nil { // else others sign it, too
			return nil
		}
	}
	if err := signed.Sign(id, a.Identity.Sign); err != nil {
		return cli.Invalid(err)
	}
	if err := cli.Invalid(admission.WriteFile(a.Gate.Approval, signed)); err != nil {
		return err
	}
	return cli.Invalid(a.Rules.Approved(signed, plan, id, now))
}

// Part is the part with which a site joins.
type Part struct {
	Shard, State, Out string
	Init              string // model file that training starts from, whatever the plan (empty = none)
	Page              *Live  // that all steps of the site share (nil = none)
}

// Join is heddle join with a part.
func (p Part) Join(ctx context.Context, c *cobra.Command, site cli.SiteFlags, w *cli.Watch, pages Pages) error {
	s := joining{SiteFlags: site, pages: pages, out: cli.Output{Pages: pages, Stdout: c.OutOrStdout(), Dir: p.Out},
		shard: p.Shard, init: p.Init, warm: p.Init != "", page: p.Page, name: "heddle join"}
	s.Site.State, s.Site.Rejoin = p.State, 10*time.Minute
	return s.joinRun(ctx, w, c.OutOrStdout())
}
