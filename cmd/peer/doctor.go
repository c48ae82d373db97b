package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/kernels"
)

func newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what this program is and what the machine offers it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w := c.OutOrStdout()
			version := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
			}
			fmt.Fprintf(w, "heddle   %s, %s, %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			fmt.Fprintf(w, "kernels  %s (of %s; HEDDLE_KERNELS chooses)\n", kernels.Name(), strings.Join(kernels.Usable(), ", "))
			fmt.Fprintf(w, "cores    %d, of which %d are used (GOMAXPROCS)\n", runtime.NumCPU(), runtime.GOMAXPROCS(0))
			if peak := peakMemory(); peak > 0 {
				fmt.Fprintf(w, "memory   %d MB held by this program\n", peak/1e6)
			}
			return nil
		},
	}
}
