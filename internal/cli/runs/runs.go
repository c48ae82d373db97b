// Package runs has the commands that train and predict on this machine, or simulate sites and phones there.
package runs

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newTrain(), newPredict(), newServe(), newRecommend(), newSimulate(), newTakePart()}
}
