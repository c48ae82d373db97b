// Command peer trains graph neural networks over a graph whose parts are on different machines.
package main

import "github.com/heddle-gnn/heddle/internal/cli/runs"

func main() { runs.Program("peer").Main() }
