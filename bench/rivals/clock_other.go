//go:build !linux

package rivals

import "github.com/heddle-gnn/heddle/kernels/measure"

// ProcessorTime is nil: this system does not count it.
var ProcessorTime measure.Clock
