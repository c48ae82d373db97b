package main

import (
	"bytes"
	"fmt"
)

const packArguments = "(rows, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)"

// writePack appends the kernel that copies n values of each row, 32 columns at a time. It copies four rows by masked
// vectors while it prefetches the rows eight later: in a wide matrix each row is on its own page.
func writePack(w *bytes.Buffer) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("\n// func packAVX512%s", packArguments)
	p("TEXT ·packAVX512(SB), NOSPLIT, $0-48")
	p("\tMOVQ n+8(FP), BX\n\tMOVQ x+16(FP), R13\n\tMOVQ ldx+24(FP), R8\n\tMOVQ y+32(FP), R14\n\tMOVQ ldy+40(FP), R9")
	p("\tSHLQ $2, R8\n\tSHLQ $2, R9\n\tLEAQ (R8)(R8*2), R11\n\tLEAQ (R9)(R9*2), R12")
	p("\nblock:\n\tMOVL $-1, AX\n\tMOVQ BX, CX\n\tCMPQ CX, $32\n\tJGE whole\n\tMOVL $1, AX\n\tSHLL CX, AX\n\tDECL AX")
	p("\nwhole:\n\tKMOVW AX, K1\n\tSHRL $16, AX\n\tKMOVW AX, K2")
	p("\tMOVQ R13, SI\n\tMOVQ R14, DI\n\tLEAQ (SI)(R8*8), R10\n\tMOVQ rows+0(FP), DX\n\tSUBQ $4, DX\n\tJLT few\n\n" +
		"four:")
	from := []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R11*1)"}
	to := []string{"(DI)", "(DI)(R9*1)", "(DI)(R9*2)", "(DI)(R12*1)"}
	ahead := []string{"(R10)", "(R10)(R8*1)", "(R10)(R8*2)", "(R10)(R11*1)"}
	load := func(r int) {
		p("\tVMOVUPS.Z %s, K1, Z%d\n\tVMOVUPS.Z 64%s, K2, Z%d", from[r], 2*r, from[r], 2*r+1)
	}
	store := func(r int) {
		p("\tVMOVUPS Z%d, K1, %s\n\tVMOVUPS Z%d, K2, 64%s", 2*r, to[r], 2*r+1, to[r])
	}
	for r := range 4 {
		load(r)
	}
	for r := range 4 {
		p("\tPREFETCHT0 %s\n\tPREFETCHT0 64%s", ahead[r], ahead[r])
	}
	for r := range 4 {
		store(r)
	}
	p("\tLEAQ (SI)(R8*4), SI\n\tLEAQ (R10)(R8*4), R10\n\tLEAQ (DI)(R9*4), DI\n\tSUBQ $4, DX\n\tJGE four")
	p("\nfew:\n\tADDQ $4, DX\n\tJZ next\n\none:")
	load(0)
	store(0)
	p("\tADDQ R8, SI\n\tADDQ R9, DI\n\tDECQ DX\n\tJNZ one")
	p("\nnext:\n\tADDQ $128, R13\n\tADDQ $128, R14\n\tSUBQ $32, BX\n\tJG block\n\tVZEROUPPER\n\tRET")
}

// pack writes the same kernel for AVX2: 32 columns at a time and then 8, 4, 2 and 1, since masked stores are slow.
func (w *writer) pack() {
	w.function("pack", packArguments, 48)
	w.text("\tMOVQ n+8(FP), BX\n\tMOVQ x+16(FP), R13\n\tMOVQ ldx+24(FP), R8\n\tMOVQ y+32(FP), R14\n" +
		"\tMOVQ ldy+40(FP), R9\n\tSHLQ $2, R8\n\tSHLQ $2, R9")
	for _, cols := range []int{32, 8, 4, 2, 1} {
		next := fmt.Sprintf("%d", cols/2)
		if cols == 32 {
			next = "8"
		}
		w.textf("\ncols%d:\n\tCMPQ BX, $%d\n\tJLT  cols%s\n\tMOVQ R13, SI\n\tMOVQ R14, DI\n\tLEAQ (SI)(R8*8), R10\n"+
			"\tMOVQ rows+0(FP), DX\n\nrow%[2]d:", cols, cols, next)
		switch cols {
		case 32:
			for v := range 4 {
				w.textf("\tVMOVUPS %d(SI), V%d", 32*v, v)
			}
			w.text("\tPREFETCHT0 (R10)\n\tPREFETCHT0 64(R10)\n\tADDQ R8, R10")
			for v := range 4 {
				w.textf("\tVMOVUPS V%d, %d(DI)", v, 32*v)
			}
		case 8:
			w.text("\tVMOVUPS (SI), V0\n\tVMOVUPS V0, (DI)")
		case 4:
			w.text("\tVMOVUPS (SI), X0\n\tVMOVUPS X0, (DI)")
		case 2:
			w.text("\tMOVQ (SI), AX\n\tMOVQ AX, (DI)")
		case 1:
			w.text("\tMOVL (SI), AX\n\tMOVL AX, (DI)")
		}
		w.textf("\tADDQ R8, SI\n\tADDQ R9, DI\n\tDECQ DX\n\tJNZ  row%d\n\tADDQ $%d, R13\n\tADDQ $%[2]d, R14\n"+
			"\tSUBQ $%[1]d, BX\n\tJMP  cols%[1]d", cols, 4*cols)
	}
	w.text("\ncols0:\n\tVZEROUPPER\n\tRET")
}
