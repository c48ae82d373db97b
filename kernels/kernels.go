// Package kernels holds the loops on slices of float32, and of bfloat16 where bytes count, that
// everything above is made of: dense and sparse products, row operations, optimiser steps. Plain Go
// is the truth and builds everywhere; assembly for AVX2 and AVX-512 on amd64, for NEON on arm64, is
// chosen once at start-up (see Name, Choice).
//
// What holds on every instruction set:
//   - A result does not depend on the number of workers, nor a row's bits on the row's place in its matrix: each
//     element is summed over k in ascending order, from zero or, where acc, from what was there.
//   - The products (Gemm*, SpMM*, Dot, the sums over edges of Attention) fuse multiply and add in assembly, and so
//     differ from plain Go within k·ε·Σ|a·b|; the float32 Gemms, both SpMMs and Attention.Forward agree between AVX2,
//     AVX-512 and NEON. CrossEntropy fuses them in its exponentials for AVX2 and AVX-512, and so differs in the last
//     bits. Products of bfloat16 (Gemm*BF16) are sums of float32 in another order where the processor has AMX, and
//     numbers below 2⁻¹²⁶ are then zeros. All else gives the same bits on every set.
//   - NaN and infinity follow IEEE 754; a zero factor does not hide them. Which NaN comes out is not fixed.
//   - Lengths, strides and indices are checked before memory is touched: a wrong one is the caller's bug and panics
//     with "kernels: …". Where that happens in a sparse product, Y may be partly written.
//   - Nothing is kept of what was passed, and nothing is allocated per call.
//
// Inputs and outputs must not overlap unless a function says so.
package kernels

import "fmt"

// checkMatrix panics unless data holds rows×cols values at the stride ld.
func checkMatrix[T any](name string, rows, cols, ld int, data []T) {
	if rows < 0 || cols < 0 || rows > 1 && ld < cols {
		panic(fmt.Sprintf("kernels: %s is %d×%d with stride %d", name, rows, cols, ld))
	}
	// Compared by division, so that no product can wrap.
	if rows > 0 && cols > 0 && (len(data) < cols || rows > 1 && (len(data)-cols)/ld < rows-1) {
		panic(fmt.Sprintf("kernels: %s, %d×%d with stride %d, has only %d values", name, rows, cols, ld, len(data)))
	}
}

// checkLength panics unless got equals want.
func checkLength(name string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("kernels: the length of %s must be %d (got %d)", name, want, got))
	}
}
