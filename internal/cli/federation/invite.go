package federation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
)

// inviteDays is for how many days an invitation can be answered.
const inviteDays = 30

// inviting is a site that invites others to the federation of federation.yaml.
type inviting struct {
	site       *cli.SiteFile
	own        identity.Identity
	plan       *heddle.Plan
	federation string  // name (empty = members sign nothing)
	founding   bool    // federation.yaml has no members yet: the first answer has the federation
	held       *roster // of federation.yaml (nil = it has none)
	text       io.Writer
}

func newInvite() *cobra.Command {
	var federation string
	c := &cobra.Command{
		Use:   "invite [SITE ...]",
		Short: "Invite sites, and add those that answer",
		Long: `Print a line for each site, to be sent to it. It has this site's name and ID, the federation's name and
its relays, for 30 days. Nothing in it is secret. At the other site heddle init takes the line and prints an answer with
that site's ID and host. Paste the answers here, or later: the command without sites only reads answers.

Each answer is added to federation.yaml, which is written with default settings if there is none. With signatures this
site also signs the file. Anybody who has the line can answer it, so let each site read its ID out to you.`,
		Example: "  heddle init north 10.0.0.1\n  heddle invite south west\n  heddle invite < answers",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			v := inviting{federation: federation, text: c.ErrOrStderr()}
			if err := v.open(); err != nil {
				return err
			}
			if err := v.invite(c.OutOrStdout(), args); err != nil {
				return err
			}
			fmt.Fprintln(v.text, "Paste the answers, one after the other (Ctrl-D ends; later: heddle invite).")
			return v.collect(c.Context(), c.InOrStdin(), args)
		},
	}
	c.Flags().StringVar(&federation, "federation", "", "name of the federation whose members sign federation.yaml")
	return c
}

// open reads both files and the key. Without federation.yaml this site is the only member of a plan by default.
func (v *inviting) open() (err error) {
	if v.site, err = cli.ReadSite(); err != nil {
		return err
	}
	if v.own, err = cli.LoadKey(v.site.Identity); err != nil {
		return err
	}
	var text []byte
	v.plan, text, err = cli.ReadPlan(cli.FederationPath)
	if errors.Is(err, fs.ErrNotExist) {
		v.plan, _, err = cli.LoadPlan("join", "", nil, nil)
	}
	if err != nil {
		return err
	}
	if v.founding = len(v.plan.Members) == 0; v.founding { // heddle plan without members has only set how to train
		err := v.plan.AddMembers([]string{v.site.Member(v.own.PeerID())}, firstPort)
		return cli.Invalid(errors.Join(err, disclosure.CheckMembers(*v.plan)))
	}
	if _, err := v.plan.Rank(v.own.PeerID()); err != nil {
		return cli.Invalidf("%s: %w", cli.FederationPath, err)
	}
	name := admission.Federation(text)
	if v.federation != "" && v.federation != name {
		return cli.Invalidf("--federation must be %q, as in %s (got %s)", name, cli.FederationPath, v.federation)
	}
	if v.federation = name; name != "" {
		v.held, err = readRoster(cli.FederationPath)
	}
	return err
}

// invite prints an invitation for each site.
func (v *inviting) invite(w io.Writer, sites []string) error {
	var relays []string
	if relays = v.plan.Relays; v.held != nil {
		relays = append(slices.Clip(relays), v.held.Body.RelayAddresses(time.Now())...)
	}
	for _, site := range sites {
		signed := admission.Unsigned(admission.Invitation{Federation: v.federation, Site: site, By: v.site.Site,
			Relays: relays, Expires: admission.Day(time.Now().AddDate(0, 0, inviteDays))})
		if err := signed.Sign(v.own.PeerID(), v.own.Sign); err != nil {
			return cli.Invalid(err)
		}
		fmt.Fprintf(w, "%s: heddle init %s\n", site, signed.Line())
	}
	return nil
}

// collect adds answers until all sites have answered, or there are no more.
func (v *inviting) collect(ctx context.Context, stdin io.Reader, sites []string) error {
	pasted := make(chan string)
	go func() { // a read from a terminal cannot be interrupted
		defer close(pasted)
		text, s := "", bufio.NewScanner(stdin)
		for more := true; more; {
			more = s.Scan()
			line := strings.TrimSpace(s.Text())
			text += line // a mail may have broken the answer into several lines
			if text == "" || more && line != "" && !strings.HasSuffix(text, admission.LineEnd) {
				continue
			}
			select {
			case pasted <- text:
				text = ""
			case <-ctx.Done():
				return
			}
		}
	}()
	missing, added := slices.Clone(sites), 0
	for len(missing) > 0 || len(sites) == 0 {
		var text string
		var more bool
		select {
		case <-ctx.Done():
			return ctx.Err()
		case text, more = <-pasted:
		}
		if !more {
			break
		}
		site, err := v.add(text)
		if err != nil {
			return cli.Invalid(err)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == site })
		added++
	}
	if len(missing) > 0 {
		fmt.Fprintf(v.text, "not answered yet: %s\n", strings.Join(missing, ", "))
	}
	if added > 0 {
		fmt.Fprintf(v.text, "send %s to all members, who put it next to site.yaml\n", cli.FederationPath)
	}
	return nil
}

// add adds the site of an answer to federation.yaml, or replaces its address, and returns its name.
func (v *inviting) add(text string) (string, error) {
	read, err := admission.ReadLine[admission.Answer](text)
	if err != nil {
		return "", err
	}
	a, id := read.Body, read.Signatures[0].By
	site := cli.SiteFile{Site: a.Invitation.Site, Host: a.Host}
	if err := a.To(v.own.PeerID(), time.Now()); err != nil {
		return "", err
	}
	if v.founding && v.federation == "" {
		v.federation = a.Invitation.Federation
	}
	if a.Invitation.Federation != v.federation {
		return "", fmt.Errorf("%s must answer for federation %q, as %s has it (got %q)", site.Site, v.federation,
			cli.FederationPath, a.Invitation.Federation)
	}
	fmt.Fprintf(v.text, "%s has ID %s: let it read out its ID to you\n", site.Site, id)
	had := v.plan.Members
	if held := v.plan.IDOf(site.Site); held != "" && held != id {
		return "", fmt.Errorf("%s must have ID %s, as %s has it (got %s): a site with another key needs another name",
			site.Site, held, cli.FederationPath, id)
	}
	v.plan.Members = slices.DeleteFunc(slices.Clone(had), func(m plan.Member) bool { return m.ID == id })
	err = v.plan.AddMembers([]string{site.Member(id)}, firstPort)
	if err = errors.Join(err, disclosure.CheckMembers(*v.plan)); err != nil {
		return "", err
	}
	now := v.plan.Members[len(v.plan.Members)-1]
	if slices.ContainsFunc(had, func(m plan.Member) bool { // pasted twice
		return m.ID == now.ID && m.Name == now.Name && slices.Equal(m.Addresses, now.Addresses)
	}) {
		v.plan.Members = had
		return site.Site, nil
	}
	v.founding = false
	return site.Site, v.save()
}

// save writes federation.yaml whose last member is new or has another address, and signs it if members do.
func (v *inviting) save() error {
	if v.held == nil {
		text, err := v.plan.MarshalYAML()
		if err == nil {
			err = cli.WriteText(nil, cli.FederationPath, string(text))
		}
		if err != nil || v.federation == "" {
			return err
		}
	}
	r := founded(v.federation, v.plan.Members)
	if v.held != nil {
		one := r.Members[len(r.Members)-1]
		r = v.held.Body
		// A version with too few signatures, all by this site, is in force nowhere: it is a draft.
		if len(v.held.Signatures) >= r.Quorum || slices.ContainsFunc(v.held.Signatures,
			func(s admission.Signature) bool { return s.By != v.own.PeerID() }) {
			r = r.Next()
		}
		if err := r.Add(one, 0); err != nil {
			return err
		}
	}
	next := admission.Unsigned(r)
	if err := signRoster(v.text, cli.FederationPath, next, v.own, ""); err != nil {
		return err // the version before stays, with its signatures
	}
	v.held = next
	return nil
}
