package federation

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
)

func newRoster() *cobra.Command {
	c := &cobra.Command{
		Use:   "roster",
		Short: "List, change and sign the members of a federation",
		Long: `A roster lists the members of a federation. Its administrators sign it: a site accepts a version when
more than half of the administrators of the previous version have signed it. heddle plan --federation writes the first
version, in the same file as the plan. To add or revoke a member, sign a new version of this file.

docs/how-to/federation.md sets up a federation of three hospitals step by step.`,
	}
	c.AddCommand(newRosterAdd(), newRosterRevoke(), newRosterShow(), newRosterSign(), newRosterVerify())
	return c
}

type roster = admission.Signed[admission.Roster]

func readRoster(path string) (*roster, error) {
	s, err := admission.ReadFile[admission.Roster](path)
	return s, cli.Invalid(err)
}

// inForce is the file of the roster in force at this site: path, if it is given.
func inForce(path, federation string) admission.Trusted {
	return admission.Trusted(gate.Files{Trusted: path, TrustedDir: cli.TrustedDir()}.InForce(federation))
}

// firstPort is the port of a host's first peer, unless another is given.
const firstPort = 4001

// entry has the flags of new members.
type entry struct {
	role, expires, carrier string
	port                   int
	addresses              []string
}

func (e *entry) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&e.role, "role", string(admission.Trainer), "role (trainer, coordinator, observer, relay)")
	f.StringVar(&e.expires, "expires", string(admission.Day(time.Now().AddDate(1, 0, 0))), "last day of membership")
	f.StringVar(&e.carrier, "carrier", "quic", "protocol of @HOST (quic, tcp, ws, auto = QUIC and TCP)")
	f.IntVar(&e.port, "port", firstPort, "port of @HOST")
}

// members reads arguments of the form NAME=ID[@HOST[:PORT]].
func (e *entry) members(args []string) ([]admission.Member, error) {
	p := heddle.Plan{Carrier: e.carrier}
	if err := p.AddMembers(args, e.port); err != nil {
		return nil, cli.Invalid(err)
	}
	var out []admission.Member
	for _, m := range p.Members {
		out = append(out, admission.Member{Name: m.Name, ID: m.ID, Role: admission.Role(e.role),
			Expires: admission.Date(e.expires), Addresses: append(m.Addresses, e.addresses...)})
	}
	return out, nil
}

// founded is the first roster of a federation: all members administer it, for a year.
func founded(name string, members []plan.Member) admission.Roster {
	r := admission.Roster{Federation: name, Serial: 1, Quorum: len(members)/2 + 1}
	for _, m := range members {
		r.Members = append(r.Members, admission.Member{Name: m.Name, ID: m.ID, Role: admission.Trainer,
			Administrator: true, Expires: admission.Day(time.Now().AddDate(1, 0, 0)), Addresses: m.Addresses})
	}
	return r
}

func newRosterAdd() *cobra.Command {
	var e entry
	var admin bool
	var quorum int
	c := &cobra.Command{
		Use:   "add FILE NAME=ID[@HOST[:PORT]] ...",
		Short: "Add or change members in the next version",
		Long: `Add members in the next version of a roster, which replaces FILE. An existing member gets a new entry:
a later day, another address, another role. Several changes before the first signature form one version.`,
		Example: "  heddle roster add federation.yaml east=12D3KooW...@10.0.0.4\n" +
			"  heddle roster add federation.yaml eye=12D3KooW... --role observer --expires 2027-03-31",
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			members, err := e.members(args[1:])
			if err != nil {
				return err
			}
			return changeRoster(c.OutOrStdout(), args[0], func(r *admission.Roster) error {
				for _, m := range members {
					m.Administrator = admin
					if err := r.Add(m, quorum); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	e.bind(c)
	c.Flags().StringSliceVar(&e.addresses, "address", nil, "multiaddress of the member (may be repeated)")
	c.Flags().BoolVar(&admin, "administrator", false, "the new members are administrators")
	c.Flags().IntVar(&quorum, "quorum", 0, "administrators who must sign (default: as before)")
	return c
}

func newRosterRevoke() *cobra.Command {
	var quorum int
	c := &cobra.Command{
		Use:     "revoke FILE NAME|ID ...",
		Short:   "Remove members for good in the next version",
		Example: "  heddle roster revoke federation.yaml west",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return changeRoster(c.OutOrStdout(), args[0], func(r *admission.Roster) error {
				for _, who := range args[1:] {
					if err := r.Revoke(who, quorum); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.Flags().IntVar(&quorum, "quorum", 0, "administrators who must sign (default: as before)")
	return c
}

// changeRoster edits the roster in path: its next version if it is signed, otherwise the same version,
// which is still a draft.
func changeRoster(w io.Writer, path string, edit func(*admission.Roster) error) error {
	s, err := readRoster(path)
	if err != nil {
		return err
	}
	r := s.Body
	if len(s.Signatures) > 0 {
		r = r.Next()
	}
	if err := edit(&r); err != nil {
		return cli.Invalid(err)
	}
	for _, line := range s.Body.Changes(r) {
		fmt.Fprintln(w, line)
	}
	return saveDraft(w, path, r)
}

func saveDraft(w io.Writer, path string, r admission.Roster) error {
	if err := r.Validate(); err != nil {
		return cli.Invalid(err)
	}
	if err := admission.WriteFile(path, admission.Unsigned(r)); err != nil {
		return cli.Invalid(err)
	}
	fmt.Fprintf(w, "%s: serial %d of %s, not signed yet: heddle roster sign %s\n", path, r.Serial, r.Federation, path)
	return nil
}

func newRosterShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show a roster and its signatures",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := readRoster(args[0])
			if err != nil {
				return err
			}
			w, r, now := c.OutOrStdout(), s.Body, time.Now()
			fmt.Fprintf(w, "federation   %s\nserial       %d\nfingerprint  %s\n", r.Federation, r.Serial,
				admission.Grouped(r.Fingerprint()))
			fmt.Fprintf(w, "quorum       %d of %d administrators sign the next version\n", r.Quorum,
				len(r.Administrators()))
			for _, m := range r.Members {
				remark := ""
				if m.Expires.Past(now) {
					remark = "  (ENDED)"
				} else if m.Expires.Past(now.AddDate(0, 0, 30)) {
					remark = "  (ends within 30 days)"
				}
				fmt.Fprintf(w, "member       %s%s\n", m, remark)
			}
			for _, v := range r.Revoked {
				fmt.Fprintf(w, "revoked      %s  %s, in serial %d\n", v.Name, v.ID, v.Serial)
			}
			for _, id := range s.Signers() {
				name := "not in this version"
				if m, ok := r.Find(id); ok {
					name = m.Name
				}
				fmt.Fprintf(w, "signed by    %s  %s\n", name, id)
			}
			if len(s.Signatures) == 0 {
				fmt.Fprintln(w, "signed by    nobody yet")
			}
			return nil
		},
	}
}

func newRosterSign() *cobra.Command {
	var key, trusted string
	c := &cobra.Command{
		Use:   "sign FILE",
		Short: "Show the changes of a version and sign it",
		Long: `Show what FILE changes relative to the version in force here, and add this administrator's signature.
Then give FILE to the next administrator and, with enough signatures, to all members.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := readRoster(args[0])
			if err != nil {
				return err
			}
			id, err := cli.LoadKey(key)
			if err != nil {
				return err
			}
			return signRoster(c.OutOrStdout(), args[0], s, id, trusted)
		},
	}
	c.Flags().StringVar(&key, "identity", cli.DefaultIdentity(), "key file of the administrator")
	c.Flags().StringVar(&trusted, "trusted", "", "file of the roster in force (default: next to the key)")
	return c
}

// signRoster prints what a version changes, adds a signature to it, and writes it to path.
func signRoster(w io.Writer, path string, s *roster, id identity.Identity, trusted string) error {
	before, err := maySign(s, id.PeerID(), inForce(trusted, s.Body.Federation))
	if err != nil {
		return cli.Invalid(err)
	}
	for _, line := range before.Changes(s.Body) {
		fmt.Fprintln(w, line)
	}
	if err := s.Sign(id.PeerID(), id.Sign); err != nil {
		return err
	}
	if err := admission.WriteFile(path, s); err != nil {
		return cli.Invalid(err)
	}
	fmt.Fprintf(w, "%s: serial %d of %s, fingerprint %s, signed by %d; %d must sign\n", path, s.Body.Serial,
		s.Body.Federation, admission.Grouped(s.Body.Fingerprint()), len(s.Signatures), before.Quorum)
	return nil
}

// maySign returns the version whose administrators sign s, after checking that id is one and that s
// may follow.
func maySign(s *roster, id string, trusted admission.Trusted) (admission.Roster, error) {
	by := s.Body
	held, err := trusted.Read()
	switch {
	case err == nil && s.Body.Serial > held.Body.Serial:
		by = held.Body
		var refusal *admission.Refusal
		// A quorum is what it lacks before this signature; any other refusal is one of signing, too.
		if err := admission.Accept(held, s, time.Now()); errors.As(err, &refusal) && refusal.Rule != "roster.quorum" {
			return by, err
		}
	case err == nil:
		if err := admission.Accept(held, s, time.Now()); err != nil {
			return by, err
		}
		return by, fmt.Errorf("serial %d of %s is already in force here", s.Body.Serial, s.Body.Federation)
	case !errors.Is(err, admission.ErrUnknownFederation):
		return by, err
	case s.Body.Serial > 1:
		return by, fmt.Errorf("%w, so the changes of serial %d cannot be shown: run heddle roster verify on an "+
			"earlier version first", err, s.Body.Serial)
	}
	if m, ok := by.Find(id); !ok || !m.Administrator {
		var names []string
		for _, m := range by.Administrators() {
			names = append(names, m.Name)
		}
		return by, fmt.Errorf("the signer must be an administrator of serial %d of %s: %s (got %s)", by.Serial,
			by.Federation,
			strings.Join(names, ", "), id)
	}
	return by, nil
}

func newRosterVerify() *cobra.Command {
	var trusted, told string
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check a roster's signatures and put it in force at this site",
		Long: `Check that FILE may follow the roster in force at this site, and put it in force: it needs a higher
serial and the signatures of a quorum of administrators. For a federation that this site does not know yet, give the
fingerprint that an administrator has read out to you; heddle roster show prints it there.`,
		Example: "  heddle roster verify federation.yaml --fingerprint '1f2e 3d4c ...'\n" +
			"  heddle roster verify federation.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := readRoster(args[0])
			if err != nil {
				return err
			}
			at := inForce(trusted, s.Body.Federation)
			if err := at.Update(s, told, time.Now()); err != nil {
				return cli.Invalidf("%s: %w", args[0], err)
			}
			fmt.Fprintf(c.OutOrStdout(), "serial %d of %s, fingerprint %s, is in force here\n", s.Body.Serial,
				s.Body.Federation, admission.Grouped(s.Body.Fingerprint()))
			return nil
		},
	}
	c.Flags().StringVar(&trusted, "trusted", "", "file of the roster in force (default: next to the key)")
	c.Flags().StringVar(&told, "fingerprint", "", "fingerprint from an administrator; needed once")
	return c
}
