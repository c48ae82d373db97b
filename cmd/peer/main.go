// Command peer trains graph neural networks over a graph whose parts are on different machines.
//
// Exit codes: 0 done, 1 failed, 2 bad usage or input, 130 and 143 interrupted by SIGINT and SIGTERM.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/compare"
	"github.com/heddle-gnn/heddle/cmd/peer/federation"
	"github.com/heddle-gnn/heddle/cmd/peer/flags"
	"github.com/heddle-gnn/heddle/cmd/peer/graphs"
	"github.com/heddle-gnn/heddle/cmd/peer/links"
	"github.com/heddle-gnn/heddle/cmd/peer/live"
	"github.com/heddle-gnn/heddle/cmd/peer/simulate"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/p2p"
	trainlinks "github.com/heddle-gnn/heddle/train/links"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var by atomic.Int64 // number of the signal that interrupted the program; 0: none
	go func() {
		s := <-signals
		if n, ok := s.(syscall.Signal); ok {
			by.Store(int64(n))
		}
		// From now on the default action: a second signal ends the program immediately.
		signal.Stop(signals)
		stop()
	}()
	exit := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if n := by.Load(); n > 0 && exit == 1 {
		exit = 128 + int(n) // as of a program that a signal ends
	}
	os.Exit(exit)
}

// run is the program in a process that goes on, such as that of a test.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (exit int) {
	out := &sink{to: stdout}
	root, began := newRoot(out)
	root.SetArgs(args)
	root.SetErr(stderr)
	err := kernels.Choice()
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil && out.err != nil {
		err = fmt.Errorf("standard output: %w", out.err)
	}
	if err == nil {
		return 0
	}
	crowded := errors.Is(err, syscall.EMFILE)
	if crowded { // on a line before the last, which is the same at all sites
		fmt.Fprintln(stderr, "peer: raise the limit of open files (ulimit -n)")
	}
	fmt.Fprintf(stderr, "peer: %v\n", err)
	if crowded || errors.Is(err, syscall.ENOSPC) { // the input is right: the same command works when there is room
		return 1
	}
	var input *heddle.InputError
	var plan *p2p.MismatchError
	var state *checkpoint.MismatchError
	if !*began || errors.As(err, &input) || errors.As(err, &plan) || errors.As(err, &state) ||
		errors.Is(err, trainlinks.ErrNone) {
		return 2
	}
	return 1
}

// sink is standard output, whose first error is not lost.
type sink struct {
	to  io.Writer
	err error
}

// Write keeps the first error: a command that printed to a full disk must not exit with 0.
func (s *sink) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// newRoot returns all commands, which print to stdout (nil = os.Stdout). began is set when one of them runs: every
// error before that is one of usage.
func newRoot(stdout io.Writer) (root *cobra.Command, began *bool) {
	root = &cobra.Command{
		Use:   "peer",
		Short: "Train graph neural networks across sites without pooling",
		Long: `Heddle trains one graph neural network across sites that cannot share their data: hospitals, banks, servers, phones.

Start with:  peer demo`,
		SilenceErrors: true, SilenceUsage: true,
		Version: cli.Version(),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(newTrain(), newPlan(), newJoin(false), newPredict(), newBench(), newMan(), live.Command(), simulate.Command())
	root.AddCommand(compare.Commands(newJoin(true))...)
	root.AddCommand(links.Command())
	root.AddCommand(graphs.Commands()...)
	root.AddCommand(federation.Commands()...)
	root.SetOut(stdout)
	root.InitDefaultCompletionCmd() // now, so that its arguments are checked as well
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", meant(c, err, c.Flags().Args()), c.CommandPath())
	})
	flags.Help(root)
	began = new(bool)
	for _, c := range root.Commands() {
		mark(c, began)
	}
	explain(root)
	return root, began
}

// explain adds the usage of c, and of each command below it, to errors about their arguments. A
// command without a check of its arguments takes none.
func explain(c *cobra.Command) {
	check := c.Args
	if check == nil {
		check = cobra.NoArgs
	}
	c.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		switch {
		case err == nil:
			return nil
		case c.HasSubCommands():
			return fmt.Errorf("%w (see %s --help)", meant(c, err, args), c.CommandPath())
		case strings.HasPrefix(err.Error(), "unknown command"): // cobra.NoArgs takes it for one
			err = fmt.Errorf("%s takes flags only (got %q)", c.CommandPath(), args[0])
		}
		return fmt.Errorf("%w; usage: %s (see %s --help)", err, c.UseLine(), c.CommandPath())
	}
	for _, below := range c.Commands() {
		explain(below)
	}
}

// mark sets began when c or a command below it runs, which prints its help if it does nothing else.
func mark(c *cobra.Command, began *bool) {
	runE := c.RunE
	if runE == nil {
		runE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		*began = true
		return cli.Missing(c, args, runE(c, args))
	}
	for _, below := range c.Commands() {
		mark(below, began)
	}
}
