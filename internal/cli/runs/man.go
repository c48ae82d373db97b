package runs

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/internal/cli"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands",
		Example: "  heddle man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		Hidden:  true, // installers run it
		RunE: func(c *cobra.Command, args []string) error {
			if err := cli.WritableDir(args[0]); err != nil {
				return err
			}
			// SOURCE_DATE_EPOCH replaces the day on which they are written.
			head := &doc.GenManHeader{Section: "1", Source: "Heddle", Manual: "Heddle"}
			root := c.Root()
			root.DisableAutoGenTag = true
			if config, err := os.UserConfigDir(); err == nil {
				elsewhere(root, config)
			}
			if err := doc.GenManTree(root, head, args[0]); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			return nil
		},
	}
}

// elsewhere puts ~/.config in place of this machine's directory in the defaults of flags of c and of the commands below
// it.
func elsewhere(c *cobra.Command, config string) {
	c.Flags().VisitAll(func(f *pflag.Flag) { f.DefValue = strings.ReplaceAll(f.DefValue, config, "~/.config") })
	for _, below := range c.Commands() {
		elsewhere(below, config)
	}
}
