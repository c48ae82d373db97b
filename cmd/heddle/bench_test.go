package main

import (
	"strings"
	"testing"
)

func TestBenchKernels(t *testing.T) {
	out := must(t, "bench", "kernels", "--turns", "1", "--only", "GemmNN 2708×7")
	for _, want := range []string{"kernels ", "threads, medians of 1 turns", "GemmNN 2708×7×256", "GFLOP/s"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, args := range [][]string{{"--turns", "0"}, {"--only", "no such kernel"}} {
		if exit, _, stderr := call(t.Context(), append([]string{"bench", "kernels"}, args...)...); exit != 2 || stderr == "" {
			t.Errorf("%v: exit %d, %q", args, exit, stderr)
		}
	}
}
