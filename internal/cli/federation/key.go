package federation

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// SiteWriter writes site.yaml.
type SiteWriter interface {
	// WriteSite writes the file in the present folder, and to text what it guesses. of has the first settings; an empty
	// federation is none.
	WriteSite(of cli.SiteFile, federation string, text io.Writer) error
}

// newcomer is a site that has just been described.
type newcomer struct {
	cli.SiteFile
	invitation *admission.Signed[admission.Invitation] // (nil = none)
}

// describe writes site.yaml by the arguments of init: a name or an invitation, and a host. A site that answers an
// invitation again keeps its file.
func describe(sites SiteWriter, args []string, key string, text io.Writer) (s newcomer, err error) {
	s.Site, s.Host = args[0], strings.Join(args[1:], "")
	if key != cli.DefaultIdentity() {
		s.Identity = key
	}
	federation := ""
	if strings.HasPrefix(args[0], "heddle-") || strings.HasSuffix(args[0], admission.LineEnd) {
		if s.invitation, err = admission.ReadLine[admission.Invitation](args[0]); err != nil {
			return s, cli.Invalid(err)
		}
		i := s.invitation.Body
		if err := i.Due(time.Now()); err != nil {
			return s, cli.Invalid(err)
		}
		s.Site, s.Inviter, federation = i.Site, s.invitation.Signatures[0].By, i.Federation
		fmt.Fprintf(text, "invited  by %s, %s, until %s\n", i.By, s.Inviter, i.Expires)
		for _, relay := range i.Relays {
			fmt.Fprintf(text, "relay    %s\n", relay)
		}
		if held, err := cli.ReadSite(); err == nil && held.Site == s.Site && held.Inviter == s.Inviter {
			s.Host = cmp.Or(s.Host, held.Host)
			return s, nil
		}
	}
	if s.Host != "" { // is checked as in a plan
		if err := new(heddle.Plan).AddMembers([]string{s.Member("ID")}, firstPort); err != nil {
			return s, cli.Invalid(err)
		}
	}
	if err := (admission.Member{Name: s.Site}).CheckTexts(); err != nil {
		return s, cli.Invalid(err)
	}
	return s, sites.WriteSite(s.SiteFile, federation, text)
}

// print prints what other sites need of this one: the ID of its key, with the site's name and host if it has any, or
// the answer to an invitation.
func (s newcomer) print(c *cobra.Command, id identity.Identity) error {
	line := id.PeerID()
	if s.Site != "" {
		line = s.Member(line)
	}
	if s.invitation != nil {
		signed := admission.Unsigned(admission.Answer{Invitation: s.invitation.Body,
			Signature: s.invitation.Signatures[0], Host: s.Host})
		if err := signed.Sign(id.PeerID(), id.Sign); err != nil {
			return cli.Invalid(err)
		}
		line = signed.Line()
		fmt.Fprintf(c.ErrOrStderr(), "answer   of %s, whose ID is %s: send it to the site that invites\n", s.Site,
			id.PeerID())
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), line)
	return err
}

// newInit returns the command init, which takes the name of a site if there is a writer.
func newInit(sites SiteWriter) *cobra.Command {
	var path string
	var seal bool
	var site newcomer
	c := &cobra.Command{
		Use:   "init",
		Args:  cobra.NoArgs,
		Short: "Make this peer's key and print its ID",
		Long: `Make this peer's key and print its ID, which names it in rosters and plans. The key stays on this
machine, and only its owner can read the file. With --passphrase a copy of the file is of no use without the
passphrase. An existing key is never replaced.

Without a terminal the passphrase comes from the file that the environment variable ` + cli.PassphraseFile + `
names. A key file with a passphrase is an age file: age --decrypt opens it as well.`,
		Example: "  heddle init\n  heddle init --passphrase --identity site-a.key",
		RunE: func(c *cobra.Command, args []string) error {
			if err := cli.KeyPlace(path); err != nil {
				return err
			}
			if len(args) > 0 {
				var err error
				if site, err = describe(sites, args, path, c.ErrOrStderr()); err != nil {
					return err
				}
				id, err := cli.LoadKey(path) // of a site that takes part in more
				if err == nil {
					return site.print(c, id)
				}
				if !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			var word string
			if seal {
				var err error
				if word, err = cli.NewPassphrase(); err != nil {
					return err
				}
			}
			id, err := identity.Create(path, word)
			if err != nil {
				return cli.Invalid(err)
			}
			return site.print(c, id)
		},
	}
	if sites != nil {
		c.Use, c.Args = "init [SITE|INVITATION [HOST[:PORT]]]", cobra.MaximumNArgs(2)
		c.Short = "Make this site's key, and site.yaml"
		c.Long = `Make this site's key, and print its ID. With the name of the site also write site.yaml for the
tables in this folder: the role of each column as it looks, and what may leave. Read it, then heddle take-part.

A line of heddle invite has the name; the answer to it is printed. HOST is where others reach this site: without it, it
only dials out.

` + c.Long
		c.Example = "  heddle init west 10.0.0.3\n" + c.Example
	}
	c.Flags().StringVar(&path, "identity", cli.DefaultIdentity(), "key file to make")
	c.Flags().BoolVar(&seal, "passphrase", false, "encrypt the key by a passphrase")
	return c
}
