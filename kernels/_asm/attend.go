package main

import "fmt"

// writeAttend writes what an attention does with the edges of a row once their weights are known, and their dropout.
func (w *writer) writeAttend() {
	w.textf("%s\n// Edges of an attention, by heads: vectors of %d values. Nothing is fused but the sums of rows.\n", generated, w.lanes())
	w.text(either(w, masks+"\n", "") + attendMacros)
	w.attend()
	w.dropEdges()
}

const attendParameters = "(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)"

// attend writes the sums of rows under two weights: those of many columns, and those of what is left of them.
func (w *writer) attend() {
	w.textf(edge, either(w, "Y12", "Y24"), either(w, "Y13", "Y25")) // of eight heads
	head := either(w, 8, 16)                                        // the first register of what tells columns their heads
	for _, k := range either(w, []rows{{vectors: 4}, {vectors: 1, masked: true}}, []rows{{vectors: 8}, {vectors: 4, masked: true}}) {
		mask := func(v int) string {
			if !k.masked {
				return ""
			}
			return either(w, "V9", fmt.Sprintf("K%d", v+1))
		}
		w.function(fmt.Sprintf("attend%d", k.vectors*w.lanes()), attendParameters, 120)
		w.text("\tLOADARGS")
		if k.masked && w.wide {
			w.text(columnsAVX512)
		}
		w.text("\tMOVQ head+96(FP), AX")
		for v := range k.vectors {
			w.textf("\t%s %d(AX), V%d", either(w, "VMOVDQU", "VMOVDQU32"), v*w.bytes(), head+v)
		}
		if k.masked && !w.wide {
			w.text(columnsAVX2)
		}
		w.text("\nrow:\n\tROWEND\n\tCMPQ R8, CX\n\tJAE  none\n\tSLOPE")
		for i, pointer := range []string{"DI", "AX"} {
			for v := range k.vectors {
				w.load(mask(v), v*w.bytes(), pointer, i*k.vectors+v)
			}
		}
		w.text("\nedge:\n\tAHEAD(here)")
		for b := 0; b < k.vectors*w.bytes(); b += 64 {
			w.textf("\tPREFETCHT0 %d(R11)", b)
		}
		w.text("\nhere:\n\tEDGE")
		for v := range k.vectors {
			w.load(mask(v), v*w.bytes(), "AX", either(w, 14, 26))
			order := either(w, "\tVPERMPS V12, V%d, V15\n\tVFMADD231PS V14, V15, V%d\n\tVPERMPS V13, V%[1]d, V15\n\tVFMADD231PS V14, V15, V%[3]d",
				"\tVPERMPS V24, V%d, V27\n\tVPERMPS V25, V%[1]d, V28\n\tVFMADD231PS V26, V27, V%d\n\tVFMADD231PS V26, V28, V%d")
			w.textf(order, head+v, v, k.vectors+v)
		}
		w.text("\tNEXT(edge)\n\tSLOPE")
		for i, pointer := range []string{"DI", "AX"} {
			for v := range k.vectors {
				w.store(mask(v), i*k.vectors+v, v*w.bytes(), pointer)
			}
		}
		w.text("\nnext:\n\tADDQ R13, DI\n\tSLOPED\n\tDECQ DX\n\tJNZ  row\n\tVZEROUPPER\n\tRET\n\nnone:\n\tSLOPE\n\tJMP next")
	}
}

func (w *writer) dropEdges() {
	w.text("\n" + hash)
	w.function("dropEdges", "(keys []uint64, bytes int, p *dropPattern, limit uint32, up float32, keep []float32)", 72)
	a, b := either(w, "V6", "V15"), either(w, "V7", "V16")
	w.textf(`	MOVQ keys_base+0(FP), SI
	MOVQ bytes+24(FP), R8
	MOVQ p+32(FP), BX
	MOVL limit+40(FP), AX
	%s
	VBROADCASTSS up+44(FP), V11
	MOVQ keep_base+48(FP), DI
	MOVQ keep_len+56(FP), CX
	MOVINT (BX), V12
	MOVINT 64(BX), V13
	MOVINT 128(BX), V14
	SPLAT 0x7feb352d, %s
	SPLAT 0x846ca68b, %s%s

each:
	MOVINT (SI), V0
	VPERMD V0, V12, V1
	VPERMD V0, V13, V2
	VPADDD V14, V1, V1
	XOR V2, V1, V1
	MIX(V1, V2, %[2]s, %[3]s)
	%[5]s
	VMOVUPS V1, (DI)
	ADDQ R8, SI
	ADDQ $BYTES, DI
	SUBQ $LANES, CX
	JGT  each
	VZEROUPPER
	RET`, either(w, "VMOVD AX, X10\n\tVPBROADCASTD X10, V10", "VPBROADCASTD AX, V10"), a, b, either(w, "\n\tSHRQ $1, R8", ""),
		either(w, "VPMAXUD V10, V1, V2 // itself where not below the limit\n\tVPCMPEQD V2, V1, V1\n\tVPAND V11, V1, V1",
			"VPCMPUD $5, V10, V1, K1 // not below the limit\n\tVMOVAPS.Z V11, K1, V1"))
}

const attendMacros = `
// The sums of rows: R8 the column of the edge, R9 its weights by heads, R14 on from there those of the slope, CX the row's
// end; BX and R12 X and its stride, DI and R13 those of Y. A weight reaches the columns of its head by a permutation.

#define LOADARGS \
	MOVQ rows+0(FP), DX    \
	MOVQ rowPtr+8(FP), SI  \
	MOVQ col+16(FP), R8    \
	MOVQ w0+24(FP), R9     \
	MOVQ w1+32(FP), R14    \
	SUBQ R9, R14           \
	MOVQ step+40(FP), R10  \
	MOVQ x+48(FP), BX      \
	MOVQ ldx+56(FP), R12   \
	MOVQ y+64(FP), DI      \
	MOVQ ldy+72(FP), R13   \
	MOVQ far+112(FP), R15  \
	SHLQ $2, R12           \
	SHLQ $2, R13           \
	LEAQ (R8)(R15*4), R15

#define ROWEND \
	ADDQ $8, SI          \
	MOVQ (SI), CX        \
	MOVQ col+16(FP), AX  \
	LEAQ (AX)(CX*4), CX

#define AHEAD(none) \
	CMPQ    R8, R15      \
	JAE     none         \
	MOVLQSX 64(R8), R11  \
	IMULQ   R12, R11     \
	ADDQ    BX, R11

#define NEXT(loop) \
	ADDQ $4, R8   \
	ADDQ R10, R9  \
	CMPQ R8, CX   \
	JB   loop

// SLOPE points AX at the row of the slope; SLOPED moves on to the next.
#define SLOPE MOVQ slope+80(FP), AX

#define SLOPED \
	MOVQ lds+88(FP), R11    \
	LEAQ (AX)(R11*4), AX    \
	MOVQ AX, slope+80(FP)`

// edge is what an edge begins with: AX points at its row of X, and its weights by heads are loaded.
const edge = `
#define EDGE \
	MOVLQSX (R8), AX        \
	IMULQ   R12, AX         \
	ADDQ    BX, AX          \
	VMOVUPS (R9), %[1]s      \
	VMOVUPS (R9)(R14*1), %[2]s`

// columnsAVX2 and columnsAVX512 make the masks of the columns there are.
const columnsAVX2 = `	MOVQ $8, AX
	SUBQ cols+104(FP), AX
	LEAQ masks<>(SB), R11
	VMOVUPS (R11)(AX*4), Y9`

const columnsAVX512 = `	MOVQ  cols+104(FP), CX
	MOVQ  $-1, AX
	NEGQ  CX
	SHRQ  CX, AX
	KMOVW AX, K1
	SHRQ  $16, AX
	KMOVW AX, K2
	SHRQ  $16, AX
	KMOVW AX, K3
	SHRQ  $16, AX
	KMOVW AX, K4`

const hash = `// MIX is the hash of DropoutMask on z; t is scratch, a and b its factors.
#define MIX(z, t, a, b) \
	VPSRLD  $16, z, t \
	XOR   t, z, z   \
	VPMULLD a, z, z   \
	VPSRLD  $15, z, t \
	XOR   t, z, z   \
	VPMULLD b, z, z   \
	VPSRLD  $16, z, t \
	XOR   t, z, z`
