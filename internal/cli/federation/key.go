package federation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// SiteWriter writes site.yaml.
type SiteWriter interface {
	// WriteSite writes the file for the site of that name, with that key file (empty = the user's), in the present
	// folder, and to text what it guesses.
	WriteSite(name, identity string, text io.Writer) error
}

// newInit returns the command init, which takes the name of a site if there is a writer.
func newInit(sites SiteWriter) *cobra.Command {
	var path string
	var seal bool
	c := &cobra.Command{
		Use:   "init",
		Args:  cobra.NoArgs,
		Short: "Make this peer's key and print its ID",
		Long: `Make this peer's key and print its ID, by which rosters and plans name it. The key stays on this
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
				if err := (admission.Member{Name: args[0]}).CheckTexts(); err != nil {
					return cli.Invalid(err)
				}
				own := path
				if own == cli.DefaultIdentity() {
					own = ""
				}
				if err := sites.WriteSite(args[0], own, c.ErrOrStderr()); err != nil {
					return err
				}
				if id, err := cli.LoadKey(path); err == nil { // of a site that takes part in more
					fmt.Fprintf(c.OutOrStdout(), "%s=%s\n", args[0], id.PeerID())
					return nil
				} else if !errors.Is(err, fs.ErrNotExist) {
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
			fmt.Fprintln(c.OutOrStdout(), strings.Join(append(args, id.PeerID()), "="))
			return nil
		},
	}
	if sites != nil {
		c.Use, c.Args, c.Short = "init [SITE]", cobra.MaximumNArgs(1), "Make this site's key, and site.yaml"
		c.Long = `Make this site's key, and print its ID. With the name of the site also write site.yaml for the
tables in this folder: the role of each column as it looks, and what may leave. Read it, then heddle take-part.

` + c.Long
		c.Example = "  heddle init west\n" + c.Example
	}
	c.Flags().StringVar(&path, "identity", cli.DefaultIdentity(), "key file to make")
	c.Flags().BoolVar(&seal, "passphrase", false, "encrypt the key by a passphrase")
	return c
}
