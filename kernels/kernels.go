// Package kernels has the numerical loops of all other packages, over slices of float32, and of bfloat16 where memory
// traffic counts: dense and sparse products, row operations, optimizer steps. Plain Go is the reference and builds
// everywhere; assembly for AVX2 and AVX-512 on amd64, for NEON on arm64, is chosen once at start-up (see Name, Choice).
//
// Every instruction set guarantees:
//   - A result does not depend on the number of workers, nor a row's bits on the row's index in its matrix: each
//     element is summed over k in ascending order, from zero or, if acc is set, from its value.
//   - The products (Gemm*, SpMM*, Dot, the sums over edges of Attention) fuse multiply and add in assembly, and so
//     differ from plain Go within k·ε·Σ|a·b|; the float32 Gemms, both SpMMs and Attention.Forward agree between AVX2,
//     AVX-512 and NEON. CrossEntropy fuses them in its exponentials for AVX2 and AVX-512, and so differs in the last
//     bits. Products of bfloat16 (Gemm*BF16) sum in float32 in another order if the processor has AMX, and numbers
//     below 2⁻¹²⁶ are then zeros. All other functions give the same bits on every set.
//   - NaN and infinity follow IEEE 754; a zero factor does not hide them. Which NaN results is not fixed.
//   - Lengths, strides and indices are checked before memory is read: a wrong one is the caller's bug and panics
//     with "kernels: …". If that happens in a sparse product, Y may be partly written.
//   - No argument is kept after the call, and no call allocates.
//
// Inputs and outputs must not overlap unless a function allows it.
package kernels

import "fmt"

// checkMatrix panics unless data has rows×cols values at the stride ld.
func checkMatrix[T any](name string, rows, cols, ld int, data []T) {
	if rows < 0 || cols < 0 || rows > 1 && ld < cols {
		panic(fmt.Sprintf("kernels: %s is %d×%d with stride %d", name, rows, cols, ld))
	}
	// Compared by division, so that no product can overflow.
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
