// Results runs the experiments of docs/results.md and prints their tables: means and deviations over seeds (and over a
// data set's splits), all peers in this process over the in-memory transport. Every choice is made on validation nodes.
//
//	go run ./bench/results -table citation
//	go run ./bench/results -data cora -mode retexo -model gcn -encoder pca:128 -hops 2 -layers 1 -solver ridge
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var e experiment
	table := flag.String("table", "", "print the named table of docs/results.md: "+strings.Join(tableNames(), ", "))
	root := flag.String("root", "../shared/data", "folder of the data sets")
	only := flag.String("only", "", "with -table: the one data set to run")
	part := flag.String("row", "", "with -table: only rows whose name has this in it")
	seeds := flag.Int("seeds", 10, "runs, each with a seed of its own and, where the data set has several splits, the next split")
	e.flags(flag.CommandLine)
	flag.Parse()
	if env := os.Getenv("HEDDLE_DATA"); env != "" {
		*root = env
	}
	ctx := context.Background()
	var err error
	if *table != "" {
		err = printTable(ctx, *table, *only, *part, *root, *seeds)
	} else {
		var s summary
		if s, err = e.run(ctx, filepath.Join(*root, e.Data), *seeds); err == nil {
			fmt.Println(s)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}
