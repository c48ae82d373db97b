package runs

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

func newBench() *cobra.Command {
	bench := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine and its network",
	}
	var turns int
	var only string
	var large bool
	table := &cobra.Command{
		Use:   "kernels",
		Short: "Measure the kernels against this machine's peaks",
		Long: `Print what this machine reaches, as medians over turns: multiply-adds on registers, triad and gathered rows of
memory, then each kernel with its fraction of the peak that bounds it. Kernel and peak are measured in turn.
HEDDLE_KERNELS chooses the instruction set and GOMAXPROCS the number of threads.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if turns < 1 {
				return cli.Invalidf("turns must be at least 1 (got %d)", turns)
			}
			return benchKernels(c.OutOrStdout(), turns, only, large)
		},
	}
	table.Flags().IntVar(&turns, "turns", 7, "runs of each kernel")
	table.Flags().StringVar(&only, "only", "", "part of the names of the kernels to run")
	table.Flags().BoolVar(&large, "large", false, "also kernels that take seconds or gigabytes")
	bench.AddCommand(table, newBenchComm())
	return bench
}

func benchKernels(w io.Writer, turns int, only string, large bool) error {
	var cases []measure.Case
	for _, c := range measure.Cases(large) {
		if strings.Contains(c.Name, only) {
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		return cli.Invalidf("only must be part of the name of a kernel (got %q)", only)
	}
	fmt.Fprintf(w, "kernels %s, %d threads, medians of %d turns\n\n", kernels.Name(), runtime.GOMAXPROCS(0), turns)
	for _, p := range measure.Peaks() {
		if p.Rate > 0 {
			fmt.Fprintf(w, "%-34s %10.1f %s\n", p.Name, p.Rate, p.Unit)
		}
	}
	fmt.Fprintf(w, "\n%-34s %10s %-8s %9s\n", "kernel", "rate", "", "of peak")
	for _, c := range cases {
		r, err := c.Run(turns, measure.Wall, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		peak := "-"
		if r.OfPeak > 0 {
			peak = fmt.Sprintf("%.2f", r.OfPeak)
		}
		fmt.Fprintf(w, "%-34s %10.1f %-8s %9s\n", c.Name, r.Rate, c.Unit, peak)
	}
	return nil
}
