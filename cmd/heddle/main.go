// Command heddle trains graph neural networks over a graph whose parts are on different machines.
package main

import "github.com/heddle-gnn/heddle/internal/cli/runs"

var program = runs.Program("peer")

func main() { program.Main() }
