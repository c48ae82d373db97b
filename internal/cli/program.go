package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Program is a program of commands.
type Program struct {
	Name, Short, Long string
	Full              string // program with all commands (empty = this one), in whose name help and errors are written
	Commands          func() []*cobra.Command
	Groups            [][]string // a title and names of commands each, as help lists them (nil = no groups)
}

// Main runs the program as this process. Exit codes: 0 done, 1 failed, 2 bad usage or input, 130 and 143 interrupted by
// SIGINT and SIGTERM.
func (p Program) Main() {
	// Most of a run's memory has no pointers and costs the collector nothing: it may run four times as often.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var by atomic.Int64 // number of the signal that interrupted the program (0 = none)
	go func() {
		s := <-signals
		if n, ok := s.(syscall.Signal); ok {
			by.Store(int64(n))
		}
		// From now on the default action: a second signal ends the program immediately.
		signal.Stop(signals)
		stop()
	}()
	exit := p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if n := by.Load(); n > 0 && exit == 1 {
		exit = 128 + int(n) // as of a program that a signal ends
	}
	os.Exit(exit)
}

// LittleGarbage keeps garbage to a tenth of the memory in use while a run by that method trains, unless GOGC is set,
// and returns what ends that. It costs little for these methods: their large matrices stay or are used again.
func LittleGarbage(method string) (end func()) {
	if os.Getenv("GOGC") != "" || method != plan.FullBatch && method != plan.ClassMeans {
		return func() {}
	}
	before := debug.SetGCPercent(10)
	return func() { debug.SetGCPercent(before) }
}

// Run is the program in a process that goes on, such as a test.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) (exit int) {
	out := &sink{to: stdout}
	if slices.Equal(args, []string{"--version"}) {
		p.Commands = func() []*cobra.Command { return nil } // which take some MB
	}
	root, began := p.Root(out)
	root.SetArgs(args)
	root.SetErr(stderr)
	err := kernels.Choice()
	if err == nil {
		var c *cobra.Command
		if c, err = root.ExecuteContextC(ctx); err != nil && !*began {
			err = incomplete(c, err)
		}
	}
	if err == nil && out.err != nil {
		err = fmt.Errorf("standard output: %w", out.err)
	}
	if err == nil {
		return 0
	}
	crowded := errors.Is(err, syscall.EMFILE)
	if crowded { // on a line before the last, which is the same at all sites
		fmt.Fprintf(stderr, "%s: raise the limit of open files (ulimit -n)\n", p.Name)
	}
	fmt.Fprintf(stderr, "%s: %s\n", p.Name, p.renamed(root, Flags(err.Error())))
	if crowded || errors.Is(err, syscall.ENOSPC) { // the input is right: the same command works with more space
		return 1
	}
	var input *heddle.InputError
	var plan *p2p.MemberMismatchError
	var state *checkpoint.MismatchError
	if !*began || errors.As(err, &input) || errors.As(err, &plan) || errors.As(err, &state) ||
		errors.Is(err, links.ErrNone) {
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

// Root returns all commands, which print to stdout (nil = os.Stdout). began is set when one of them runs: every
// error before that is one of usage.
func (p Program) Root(stdout io.Writer) (root *cobra.Command, began *bool) {
	root = &cobra.Command{
		Use: p.Name, Short: p.Short, Long: p.Long,
		SilenceErrors: true, SilenceUsage: true,
		Version: Version(),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(p.Commands()...)
	root.SetOut(stdout)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.InitDefaultCompletionCmd() // now, so that its arguments are checked as well
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", meant(c, badValue(err), c.Flags().Args()), c.CommandPath())
	})
	fitHelp(root, p.Groups)
	began = new(bool)
	for _, c := range root.Commands() {
		mark(c, began)
	}
	explain(root)
	if p.Full != "" {
		root.Annotations = map[string]string{fullProgram: p.Full}
		for _, c := range root.Commands() {
			c.Long, c.Example = p.renamed(root, c.Long), p.renamed(root, c.Example)
		}
	}
	return root, began
}

// fullProgram annotates a root with the program that has all commands.
const fullProgram = "full"

// renamed is text in which this program's own commands have its name.
func (p Program) renamed(root *cobra.Command, text string) string {
	if p.Full == "" {
		return text
	}
	for _, c := range root.Commands() {
		text = strings.ReplaceAll(text, p.Full+" "+c.Name(), p.Name+" "+c.Name())
	}
	return text
}

// explain adds the usage of c, and of each command below it, to errors about their arguments, and --help-all. A command
// without a check of its arguments takes none.
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
	all := c.Flags().VarPF(helpAll{c.Flags()}, "help-all", "", "help with all flags")
	all.NoOptDefVal, all.Hidden = "true", true
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
		return Missing(c, args, runE(c, args))
	}
	for _, below := range c.Commands() {
		mark(below, began)
	}
}
