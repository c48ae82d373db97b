package main

import (
	"bytes"
	"fmt"
)

const transposeArguments = "(rows, k int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)"

// writeTranspose appends the kernel that transposes up to 16 rows r of k columns q: y[q·ldy+r] = x[r·ldx+q]. It
// processes sixteen columns at a time in registers, by four rounds of shuffles.
func writeTranspose(w *bytes.Buffer) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("\n// func transposeAVX512%s", transposeArguments)
	p("TEXT ·transposeAVX512(SB), NOSPLIT, $0-48")
	// a row of y has one value for each row of x
	p("\tMOVQ rows+0(FP), CX\n\tMOVL $1, AX\n\tSHLL CX, AX\n\tDECL AX\n\tKMOVW AX, K2")
	p("\tMOVQ k+8(FP), DX\n\tMOVQ x+16(FP), SI\n\tMOVQ ldx+24(FP), R8\n\tMOVQ y+32(FP), DI\n\tMOVQ ldy+40(FP), R9")
	p("\tSHLQ $2, R8\n\tSHLQ $2, R9\n\tXORL R12, R12")
	p("\nblock:\n\tMOVQ DX, CX\n\tMOVL $0xffff, AX\n\tCMPQ CX, $16\n\tJGE whole\n\tMOVL $1, AX\n\tSHLL CX, AX\n" +
		"\tDECL AX")
	p("\nwhole:\n\tKMOVW AX, K1\n\tMOVQ SI, R10\n\tMOVQ R8, R11\n\tMOVQ rows+0(FP), CX\n\tPREFETCHT0 256(SI)")
	for r := range 16 { // a missing row repeats the last one
		p("\tVMOVUPS.Z (R10), K1, Z%d", r)
		if r < 15 {
			p("\tCMPQ CX, $%d\n\tCMOVQLE R12, R11\n\tADDQ R11, R10", r+1)
		}
	}
	// pairs writes the two shuffles of registers a and b, from one half of the register file to the other.
	pairs := func(low, high string, a, b, to int) {
		p("\t%s Z%d, Z%d, Z%d\n\t%s Z%d, Z%d, Z%d", low, b, a, to, high, b, a, to+1)
	}
	for i := range 8 { // Z16+2i, +1: rows 2i and 2i+1 interleaved
		pairs("VUNPCKLPS", "VUNPCKHPS", 2*i, 2*i+1, 16+2*i)
	}
	for i := range 4 { // Z4i+c: column c of each four, of rows 4i to 4i+3
		pairs("VUNPCKLPD", "VUNPCKHPD", 16+4*i, 18+4*i, 4*i)
		pairs("VUNPCKLPD", "VUNPCKHPD", 17+4*i, 19+4*i, 4*i+2)
	}
	for c := range 4 { // groups of four columns: 0 and 8, 4 and 12, of rows 0 to 7 and 8 to 15
		for i := range 2 {
			p("\tVSHUFF32X4 $0x88, Z%d, Z%d, Z%d", 8*i+4+c, 8*i+c, 16+4*c+2*i)
			p("\tVSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", 8*i+4+c, 8*i+c, 17+4*c+2*i)
		}
	}
	for c := range 4 {
		at := 16 + 4*c
		p("\tVSHUFF32X4 $0x88, Z%d, Z%d, Z%d", at+2, at, c)
		p("\tVSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", at+2, at, c+8)
		p("\tVSHUFF32X4 $0x88, Z%d, Z%d, Z%d", at+3, at+1, c+4)
		p("\tVSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", at+3, at+1, c+12)
	}
	for q := range 16 {
		p("\tVMOVUPS Z%d, K2, (DI)", q)
		if q < 15 {
			p("\tADDQ R9, DI\n\tDECQ DX\n\tJZ end")
		}
	}
	p("\tADDQ R9, DI\n\tADDQ $64, SI\n\tDECQ DX\n\tJNZ block")
	p("\nend:\n\tVZEROUPPER\n\tRET")
}
