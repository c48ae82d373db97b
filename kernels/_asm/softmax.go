package main

// writeSoftmax writes the softmax of rows of up to 64 values, a block of rows at a time.
func (w *writer) writeSoftmax() {
	w.text(generated + `#include "go_asm.h"

// Softmax of a block of rows, times a weight for each row, minus the weight at the class. The last vector of a row is
// masked. Rows are processed three times, in the caches: for their maxima; for their exponentials, stored in the
// block's room, and their sums; and to scale them. In the room, the exponentials are followed by the lanes of sixteen
// rows, at byte 8192, and by each row's factor, at byte 9216. The lanes of sixteen rows are reduced at once, by a
// transpose, while the next sixteen rows are processed.
`)
	w.text(either(w, masksAVX2, maskAVX512))
	w.function("softmax", "(b *entropyBlock, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)", 48)
	w.textf(`	MOVQ n+8(FP), CX
	DECQ CX
	MOVQ CX, R12
	SHRQ $%d, R12 // full vectors of a row before the last one
	ANDQ $%d, CX
	INCQ CX
	MASK
	MOVQ b+0(FP), R8
	MOVQ ldx+24(FP), R10
	SHLQ $2, R10
	SPLAT 0xff800000, V4 // −Inf
	XORQ R9, R9`, either(w, 3, 4), w.lanes()-1)
	address := func(ld, base, to string) {
		w.textf("\tMOVQ entropyBlock_row(R8)(R9*8), %[1]s\n\tIMULQ %[2]s, %[1]s\n\tADDQ %[3]s, %[1]s", to, ld, base)
	}
	load := either(w, "\tVMASKMOVPS %d(SI), Y5, Y1\n\tVBLENDVPS Y5, Y1, Y4, Y1",
		"\tVMOVAPS Z4, Z1\n\tVMOVUPS %d(SI), K1, Z1")

	w.rows("max", func(v int) {
		address("R10", "x+16(FP)", "SI")
		w.text(`	MOVLQSX entropyBlock_class(R8)(R9*4), AX
	VMOVSS (SI)(AX*4), X1
	VMOVSS X1, entropyBlock_score(R8)(R9*4)
	VMOVAPS V4, V0`)
		w.vectors("max", v, func(at int, last bool) {
			if last {
				w.textf(load, at)
			} else {
				w.textf("\tVMOVUPS %d(SI), V1", at)
			}
			w.text("\tVMAXPS V0, V1, V0 // NaN is dropped: it is the first operand")
		})
		w.text("\tVMOVUPS V0, (R11)\n\tADDQ $BYTES, R11")
	}, "VMAXPS", func(at int) { w.textf("\tVMOVUPS V0, entropyBlock_top+%d(R8)(R9*4)", at) })

	w.text(`
	SPLAT 0x42b00000, V7 // 88
	SPLAT 0x3fb8aa3b, V8 // 1/ln 2
	SPLAT 0x4b40007f, V9 // 3·2²² + 127
	SPLAT 0x3f317218, V10 // ln 2
	SPLAT 0x3c083104, V11 // the polynomial
	SPLAT 0x3d2b951e, V12
	SPLAT 0x3e2aabd8, V13
	SPLAT 0x3efffefe, V14
	SPLAT 0x3f800000, V15
	LEAQ entropyBlock_room(R8), DI
	XORQ R9, R9

	// Prefetch the next rows of X and Y, assuming that all rows have a class.
	MOVQ entropyBlock_row(R8), BX
	ADDQ $32, BX
	MOVQ BX, DX
	IMULQ R10, BX
	ADDQ x+16(FP), BX
	MOVQ ldy+40(FP), R13
	SHLQ $2, R13
	IMULQ R13, DX
	ADDQ y+32(FP), DX`)
	w.rows("exp", func(v int) {
		address("R10", "x+16(FP)", "SI")
		w.text("\tVBROADCASTSS entropyBlock_top(R8)(R9*4), V0\n\tZERO V6")
		w.vectors("exp", v, func(at int, last bool) {
			if last {
				w.textf(load+"\n\tVSUBPS V1, V0, V1", at)
			} else {
				w.textf("\tVSUBPS %d(SI), V0, V1", at)
			}
			w.text(fusedExp)
			w.textf("\tVMOVUPS V3, %d(DI)\n\tVADDPS V3, V6, V6", at)
			if at%64 == 0 {
				w.textf("\tPREFETCHT0 %[1]d(BX)\n\tPREFETCHT0 %[1]d(DX)", at)
			}
		})
		w.text("\tADDQ R10, BX\n\tADDQ R13, DX")
		w.textf("\tADDQ $%d, DI\n\tVMOVUPS V6, (R11)\n\tADDQ $BYTES, R11", max(v, 1)*w.bytes())
	}, "VADDPS", func(at int) {
		w.text(either(w, "\tVEXTRACTF128 $1, Y0, X1\n\tVCVTPS2PD X0, Y2\n\tVCVTPS2PD X1, Y3",
			"\tVEXTRACTF64X4 $1, Z0, Y1\n\tVCVTPS2PD Y0, Z2\n\tVCVTPS2PD Y1, Z3"))
		w.textf(`	VMOVUPD V2, entropyBlock_sum+%[1]d(R8)(R9*8)
	VMOVUPD V3, entropyBlock_sum+%[2]d(R8)(R9*8)
	VMOVUPS entropyBlock_w+%[3]d(R8)(R9*4), V1
	VDIVPS  V0, V1, V1
	VMOVUPS V1, entropyBlock_room+%[4]d(R8)(R9*4)`, 2*at, 2*at+w.bytes(), at, 9216+at)
	})

	w.text(`
	MOVQ y+32(FP), R11
	TESTQ R11, R11
	JZ   done
	MOVQ ldy+40(FP), R10
	SHLQ $2, R10
	LEAQ entropyBlock_room(R8), SI
	XORQ R9, R9`)
	w.rows("scale", func(v int) {
		address("R10", "R11", "DI")
		w.text(`	MOVQ DI, BX
	VBROADCASTSS entropyBlock_room+9216(R8)(R9*4), V1
	MOVLQSX entropyBlock_class(R8)(R9*4), AX
	VMULSS (SI)(AX*4), X1, X2
	VSUBSS entropyBlock_w(R8)(R9*4), X2, X2`)
		w.vectors("scale", v, func(at int, last bool) {
			w.textf("\tVMULPS %d(SI), V1, V0", at)
			if last {
				w.textf("\tSTORE V0, %d(DI)", at)
			} else {
				w.textf("\tVMOVUPS V0, %d(DI)", at)
			}
		})
		w.textf("\tVMOVSS X2, (BX)(AX*4)\n\tADDQ $%d, SI", max(v, 1)*w.bytes())
	}, "", nil)
	w.end()
}

// rows appends a loop over the block's rows, R9. For AVX-512 it is written for each number of vectors that a row may
// have, for AVX2 for any number (0). If op is not empty, row leaves one vector a row in the block's lanes, at R11.
// Every sixteen rows these vectors are reduced by op, and store stores the results.
func (w *writer) rows(name string, row func(vectors int), op string, store func(at int)) {
	w.textf("\n%s:", name)
	if op != "" {
		w.text("\tLEAQ entropyBlock_room+8192(R8), R11")
	}
	if w.wide {
		w.textf("\tCMPQ R12, $1\n\tJLT  %[1]s1\n\tJEQ  %[1]s2\n\tCMPQ R12, $3\n\tJLT  %[1]s3\n\tJMP  %[1]s4", name)
	}
	for _, v := range either(w, []int{0}, []int{1, 2, 3, 4}) {
		w.textf("\n%s%d:", name, v)
		row(v)
		w.text("\tINCQ R9")
		if op != "" {
			w.textf("\tTESTQ $15, R9\n\tJNZ  %s%d", name, v)
		} else {
			w.textf("\tCMPQ R9, $32\n\tJLT  %s%d", name, v)
		}
		if v < 4 && w.wide {
			w.textf("\tJMP  %sturn", name)
		}
	}
	w.textf("\n%sturn:", name)
	if op != "" {
		w.turned(op, store)
		w.textf("\tCMPQ R9, $32\n\tJLT  %s", name)
	}
}

// vectors appends code for each vector of a row, at an offset from SI and DI. If the number of vectors is not known, SI
// and DI advance instead.
func (w *writer) vectors(name string, n int, vector func(at int, last bool)) {
	if n > 0 {
		for i := range n {
			vector(i*w.bytes(), i == n-1)
		}
		return
	}
	w.textf("\tMOVQ R12, CX\n\tTESTQ CX, CX\n\tJZ   %[1]slast\n\n%[1]sfull:", name)
	vector(0, false)
	w.textf("\tADDQ $BYTES, SI\n\tADDQ $BYTES, DI\n\tDECQ CX\n\tJNZ  %[1]sfull\n\n%[1]slast:", name)
	vector(0, true)
}

// fusedExp makes V3 the exponential of −V1 ≤ 0. With t = −V1 and k = round(t/ln 2), eᵗ = 2ᵏ·eʳ, r = t − k·ln 2. A
// polynomial gives eʳ: it is 1 at 0, and has the least relative error of degree 5. 2ᵏ is built from the last bits of k
// after 3·2²² + 127 has been added, so it is 0 for k = −127.
const fusedExp = `	VMINPS V1, V7, V1 // NaN stays: it is the second operand
	VMOVAPS V9, V2
	VFNMADD231PS V8, V1, V2
	VSUBPS V9, V2, V3
	VFMADD231PS V10, V3, V1 // −r
	VPSLLD $23, V2, V2
	VMOVAPS V11, V3
	VFNMADD213PS V12, V1, V3
	VFNMADD213PS V13, V1, V3
	VFNMADD213PS V14, V1, V3
	VFNMADD213PS V15, V1, V3
	VFNMADD213PS V15, V1, V3
	VMULPS V2, V3, V3`

// turned appends code that reduces each of the sixteen vectors in the block's lanes to one value by op. It calls store
// for each vector V0 of such values, with its offset in bytes; they belong to the rows before R9. Halves and quarters
// of vectors are exchanged until each lane has its row.
func (w *writer) turned(op string, store func(at int)) {
	w.text("\tLEAQ entropyBlock_room+8192(R8), R11")
	pair := func(row, to int) {
		w.textf("\tVMOVUPS %[1]d(R11), V0\n\tVUNPCKLPS %[2]d(R11), V0, V%[3]d\n\tVUNPCKHPS %[2]d(R11), V0, V0\n"+
			"\t%[4]s V0, V%[3]d, V%[3]d", row*w.bytes(), (row+1)*w.bytes(), to, op)
	}
	both := func(low, high string, a, b, to int) {
		w.textf("\t%[1]s V%[2]d, V%[3]d, V0\n\t%[4]s V%[2]d, V%[3]d, V1\n\t%[5]s V1, V0, V%[6]d", low, b, a, high, op,
			to)
	}
	quarter := either(w, []int{2, 3}, []int{16, 17, 18, 19})
	for first := 0; first < 16; first += w.lanes() {
		for i, q := range quarter {
			pair(first+4*i, 1)
			pair(first+4*i+2, q)
			both("VUNPCKLPD", "VUNPCKHPD", 1, q, q)
		}
		low, high := either(w, "VPERM2F128 $0x20,", "VSHUFF32X4 $0x88,"),
			either(w, "VPERM2F128 $0x31,", "VSHUFF32X4 $0xdd,")
		for left := len(quarter) / 2; left > 1; left /= 2 {
			for i := range left {
				both(low, high, quarter[2*i], quarter[2*i+1], quarter[i])
			}
		}
		both(low, high, quarter[0], quarter[1], 0)
		store(4 * (first - 16))
	}
}
