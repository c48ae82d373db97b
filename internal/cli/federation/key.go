package federation

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

func newInit() *cobra.Command {
	var path string
	var seal bool
	c := &cobra.Command{
		Use:   "init",
		Short: "Make this peer's key and print its ID",
		Long: `Make this peer's key and print its ID, by which rosters and plans name it. The key stays on this
machine, and only its owner can read the file. With --passphrase a copy of the file is of no use without the
passphrase. An existing key is never replaced.

Without a terminal the passphrase comes from the file that the environment variable ` + cli.PassphraseFile + `
names. A key file with a passphrase is an age file: age --decrypt opens it as well.`,
		Example: "  heddle init\n  heddle init --passphrase --identity site-a.key",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cli.KeyPlace(path); err != nil {
				return err
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
			fmt.Fprintln(c.OutOrStdout(), id.PeerID())
			return nil
		},
	}
	c.Flags().StringVar(&path, "identity", cli.DefaultIdentity(), "key file to make")
	c.Flags().BoolVar(&seal, "passphrase", false, "encrypt the key by a passphrase")
	return c
}
