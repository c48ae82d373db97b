//go:build !linux

package main

import "github.com/heddle-gnn/heddle/kernels/measure"

var processorTime measure.Clock
