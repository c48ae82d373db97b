// Bench runs the experiments behind docs/measurements: one subcommand each. It prints what it
// measures as Markdown, with the command, the processor and the date, and with -write keeps its rows
// in bench/results, from which page renders the pages.
//
//	go run ./bench                                       # lists the subcommands
//	go run ./bench epoch -threads 1
//	go run ./bench epoch -threads 1 -write -heading "One thread"
//	go run ./bench page
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/heddle-gnn/heddle/bench/attack"
	"github.com/heddle-gnn/heddle/bench/compare"
	"github.com/heddle-gnn/heddle/bench/cover"
	"github.com/heddle-gnn/heddle/bench/epoch"
	"github.com/heddle-gnn/heddle/bench/fullbatch"
	"github.com/heddle-gnn/heddle/bench/kernels"
	"github.com/heddle-gnn/heddle/bench/killrun"
	"github.com/heddle-gnn/heddle/bench/latency"
	"github.com/heddle-gnn/heddle/bench/links"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/bench/partition"
	"github.com/heddle-gnn/heddle/bench/poison"
	"github.com/heddle-gnn/heddle/bench/private"
	"github.com/heddle-gnn/heddle/bench/reorder"
	"github.com/heddle-gnn/heddle/bench/results"
	"github.com/heddle-gnn/heddle/bench/sample"
	"github.com/heddle-gnn/heddle/bench/sampled"
	"github.com/heddle-gnn/heddle/bench/scale"
	"github.com/heddle-gnn/heddle/bench/sizes"
	"github.com/heddle-gnn/heddle/bench/speed"
)

// Where measurements are kept, and where pages show them.
const (
	data  = "bench/results"
	pages = "docs/measurements"
)

// run measures and prints to a page, once its flags are parsed.
type run = func(context.Context, *page.Page) error

// experiments are the subcommands. command registers their flags.
var experiments = []struct {
	page.About
	command func(*flag.FlagSet) run
}{
	{attack.About, attack.Command},
	{attack.AboutInfer, attack.CommandInfer},
	{results.AboutDefaults, results.CommandDefaults},
	{compare.About, compare.Command},
	{cover.About, cover.Command},
	{epoch.About, epoch.Command},
	{results.AboutFrugal, results.CommandFrugal},
	{fullbatch.About, fullbatch.Command},
	{kernels.About, kernels.Command},
	{killrun.About, killrun.Command},
	{latency.About, latency.Command},
	{links.About, links.Command},
	{partition.About, partition.Command},
	{poison.About, poison.Command},
	{private.About, private.Command},
	{reorder.About, reorder.Command},
	{results.About, results.Command},
	{sample.About, sample.Command},
	{sampled.About, sampled.Command},
	{scale.About, scale.Command},
	{sizes.About, sizes.Command},
	{speed.About, speed.Command},
	{results.AboutTrained, results.CommandTrained},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	if name == "page" {
		return page.WritePages(data, pages)
	}
	for _, e := range experiments {
		if e.Name != name {
			continue
		}
		f := flag.NewFlagSet("bench "+name, flag.ExitOnError)
		write := f.Bool("write", false, "also keep the rows in "+data+"/"+name+".jsonl")
		heading := f.String("heading", "", "name of the table there (default: the title)")
		measure := e.command(f)
		f.Usage = func() {
			fmt.Fprintf(f.Output(), "%s. %s\n\nUsage: go run ./bench %s [flags]\n", e.Title, e.Text, name)
			f.PrintDefaults()
		}
		f.Parse(args[1:])
		if f.NArg() > 0 {
			return fmt.Errorf("%s takes flags only (got %q)", name, f.Arg(0))
		}
		p := page.New(os.Stdout, args)
		if err := measure(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if *write {
			return p.Write(filepath.Join(data, name+".jsonl"), cmp.Or(*heading, e.Title))
		}
		return nil
	}
	fmt.Fprintln(os.Stderr, "Usage: go run ./bench SUBCOMMAND [flags]; -h lists the flags.")
	for _, e := range experiments {
		fmt.Fprintf(os.Stderr, "  %-10s %s\n", e.Name, e.Title)
	}
	fmt.Fprintf(os.Stderr, "  %-10s %s\n", "page", "Write "+pages+" from what "+data+" has")
	if name == "" {
		return nil
	}
	return fmt.Errorf("subcommand must be one of the above (got %q)", name)
}
