package main

import "fmt"

// writeAttend writes the kernels of an attention that use the edges' weights, and those of the weights' dropout.
func (w *writer) writeAttend() {
	w.textf("%s\n// Edges of an attention, by heads: vectors of %d values. Only sums of rows fuse multiply and add.\n",
		generated, w.lanes())
	w.text(either(w, masks+"\n", "") + attendMacros)
	w.attend()
	w.headDots()
	w.attendDots()
	w.logitGrads()
	w.dropEdges()
}

const attendParameters = "(rows int, rowPtr, col, w unsafe.Pointer, step int, x unsafe.Pointer, ldx int, " +
	"y unsafe.Pointer, ldy int, head unsafe.Pointer, cols, far int, acc bool)"

// attend writes the weighted sums of rows: a kernel for many columns, and one for the remaining columns.
func (w *writer) attend() {
	w.textf(edge, either(w, "Y14", "Y30")) // the weights of eight heads
	head := either(w, 6, 8)                // the first register with the numbers of columns' heads
	for _, k := range either(w, []rows{{vectors: 6}, {vectors: 1, masked: true}},
		[]rows{{vectors: 8}, {vectors: 4, masked: true}}) {
		mask := func(v int) string {
			if !k.masked {
				return ""
			}
			return either(w, "V12", fmt.Sprintf("K%d", v+1))
		}
		w.function(fmt.Sprintf("attend%d", k.vectors*w.lanes()), attendParameters, 97)
		w.text("\tLOADARGS")
		if k.masked && w.wide {
			w.text(columnsAVX512)
		}
		w.text("\tMOVQ head+72(FP), AX")
		for v := range k.vectors {
			w.textf("\t%s %d(AX), V%d", either(w, "VMOVDQU", "VMOVDQU32"), v*w.bytes(), head+v)
		}
		if k.masked && !w.wide {
			w.text(columnsAVX2)
		}
		w.text("\nrow:\n\tROWEND\n\tCMPQ R8, CX\n\tJAE  next")
		for v := range k.vectors {
			w.textf("\tZERO V%d", v)
		}
		w.text("\tCMPB acc+96(FP), $0\n\tJE   edge")
		for v := range k.vectors {
			w.load(mask(v), v*w.bytes(), "DI", v)
		}
		w.text("\nedge:\n\tAHEAD(here)")
		for b := 0; b < k.vectors*w.bytes(); b += 64 {
			w.textf("\tPREFETCHT0 %d(R11)", b)
		}
		w.text("\nhere:\n\tEDGE")
		weights, weight, value := either(w, 14, 30), either(w, 15, 31), 13
		for v := range k.vectors {
			w.textf("\tVPERMPS V%d, V%d, V%d", weights, head+v, weight)
			if k.masked {
				w.load(mask(v), v*w.bytes(), "AX", value+either(w, 0, 16))
				w.textf("\tVFMADD231PS V%d, V%d, V%d", value+either(w, 0, 16), weight, v)
			} else {
				w.textf("\tVFMADD231PS %d(AX), V%d, V%d", v*w.bytes(), weight, v)
			}
		}
		w.text("\tNEXT(edge)")
		for v := range k.vectors {
			w.store(mask(v), v, v*w.bytes(), "DI")
		}
		w.text("\nnext:\n\tADDQ R13, DI\n\tDECQ DX\n\tJNZ  row\n\tVZEROUPPER\n\tRET")
	}
}

const headDotsParameters = "(rows int, rowPtr, col, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, " +
	"z unsafe.Pointer, ldz, heads, dim, far int)"

// headDots writes the products of two rows by heads, for up to eight or up to four heads. Each head has a vector of
// sums, whose lanes are then added pair by pair, for all heads at once.
func (w *writer) headDots() {
	for _, heads := range []int{8, 4} {
		w.function(fmt.Sprintf("headDots%d", heads), headDotsParameters, 96)
		w.text("\tLOADDOTS" + either(w, dotsMaskAVX2, dotsMaskAVX512))
		w.text("\nrow:\n\tROWEND\n\tCMPQ R8, CX\n\tJAE  next\n\nedge:\n\tAHEAD(here)\n\tMOVQ R12, AX\n\nahead:")
		w.text("\tPREFETCHT0 (R11)\n\tADDQ $64, R11\n\tSUBQ $64, AX\n\tJGT  ahead")
		w.text("\nhere:\n\tMOVLQSX (R8), AX\n\tIMULQ R12, AX\n\tADDQ BX, AX\n\tMOVQ DI, R11")
		for h := range heads {
			w.textf("\tZERO V%d", h)
		}
		for h := range heads {
			w.textf("\tCMPQ heads+72(FP), $%d\n\tJLE  fold\n\tMOVQ R10, R14\n\tTESTQ R14, R14\n\tJZ   tail%[1]d\n\n"+
				"whole%[1]d:", h)
			w.textf("\tVMOVUPS (AX), V8\n\tVFMADD231PS (R11), V8, V%d\n\tADDQ $BYTES, AX\n\tADDQ $BYTES, R11\n"+
				"\tDECQ R14\n\tJNZ  whole%[1]d", h)
			w.textf("\ntail%d:\n\tTESTQ R9, R9\n\tJZ   done%[1]d", h)
			w.load(either(w, "V15", "K1"), 0, "AX", 8)
			w.load(either(w, "V15", "K1"), 0, "R11", 9)
			w.textf("\tVFMADD231PS V9, V8, V%d\n\tADDQ R9, AX\n\tADDQ R9, R11\n\ndone%[1]d:", h)
		}
		w.text("\nfold:")
		w.foldHeads(heads)
		w.text("\tADDQ step+32(FP), DX\n\tADDQ $4, R8\n\tCMPQ R8, CX\n\tJB   edge")
		w.text("\nnext:\n\tADDQ R13, DI\n\tDECQ rows+0(FP)\n\tJNZ  row\n\tVZEROUPPER\n\tRET")
	}
}

// foldHeads adds the lanes of each of the first eight, four or two vectors and writes the sums to DX. V31 is scratch in
// AVX-512.
func (w *writer) foldHeads(heads int) {
	for h := 0; h < heads && w.wide; h++ {
		w.textf("\tVEXTRACTF64X4 $1, Z%d, Y31\n\tVADDPS Y31, Y%[1]d, Y%[1]d", h)
	}
	for h := 0; h+4 <= heads; h += 4 {
		w.textf("\tVHADDPS Y%d, Y%d, Y%[2]d\n\tVHADDPS Y%d, Y%d, Y%[4]d\n\tVHADDPS Y%[4]d, Y%[2]d, Y%[2]d", h+1, h, h+3,
			h+2)
	}
	switch heads {
	case 8:
		w.text("\tVPERM2F128 $0x20, Y4, Y0, Y1\n\tVPERM2F128 $0x31, Y4, Y0, Y2\n\tVADDPS Y2, Y1, Y0\n" +
			"\tVMOVUPS Y0, (DX)")
	case 4:
		w.text("\tVEXTRACTF128 $1, Y0, X1\n\tVADDPS X1, X0, X0\n\tVMOVUPS X0, (DX)")
	case 2:
		w.text("\tVHADDPS Y1, Y0, Y0\n\tVHADDPS Y0, Y0, Y0\n\tVEXTRACTF128 $1, Y0, X1\n\tVADDPS X1, X0, X0\n" +
			"\tVMOVLPS X0, (DX)")
	}
}

// strip is how many heads are computed at a time, and how many vectors each head has. The last vector may be partial.
type strip struct{ heads, vectors int }

const attendDotsParameters = "(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, " +
	"z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)"

// attendDots writes attend and headDots as one kernel, for whole heads whose sums all fit in registers: a row of X is
// read once.
func (w *writer) attendDots() {
	for _, s := range either(w, []strip{{2, 4}, {4, 2}, {4, 1}}, []strip{{8, 2}, {8, 1}, {4, 4}, {4, 1}}) {
		y := func(h, v int) int { return s.heads + h*s.vectors + v } // the first ones have products by heads
		mask := func(v int) string {
			if v < s.vectors-1 {
				return ""
			}
			return either(w, "V15", "K1")
		}
		// each writes code for the existing heads, whose columns begin at AX, and leaves AX and R11 after the last one.
		each := func(done string, code func(h int)) {
			for h := range s.heads {
				w.textf("\tCMPQ R14, $%d\n\tJLE  %s", h, done)
				code(h)
				w.text("\tADDQ R10, AX")
			}
		}
		w.function(fmt.Sprintf("attendDots%dx%d", s.heads, s.vectors), attendDotsParameters, 121)
		w.textf("\tLOADBOTH\n\tSUBQ $%d, CX%s", (s.vectors-1)*w.lanes(), either(w, bothMaskAVX2, bothMaskAVX512))
		w.text("\nrow:\n\tROWEND\n\tCMPQ R8, CX\n\tJAE  next")
		for k := range s.heads * s.vectors {
			w.textf("\tZERO V%d", s.heads+k)
		}
		w.text("\tCMPB acc+120(FP), $0\n\tJE   edge\n\tMOVQ R13, AX")
		each("edge", func(h int) {
			for v := range s.vectors {
				w.load(mask(v), v*w.bytes(), "AX", y(h, v))
			}
		})
		w.text("\nedge:\n\tAHEAD(here)\n\tMOVQ R12, AX\n\nahead:")
		w.text("\tPREFETCHT0 (R11)\n\tADDQ $64, R11\n\tSUBQ $64, AX\n\tJGT  ahead")
		w.text("\nhere:\n\tMOVLQSX (R8), AX\n\tIMULQ R12, AX\n\tADDQ BX, AX\n\tMOVQ DI, R11")
		for h := range s.heads {
			w.textf("\tZERO V%d", h)
		}
		value, weight := either(w, 12, 24), either(w, 13, 25)
		each("fold", func(h int) {
			w.textf("\tVBROADCASTSS %d(R9), V%d", 4*h, weight)
			for v := range s.vectors {
				at := v * w.bytes()
				w.load(mask(v), at, "AX", value)
				switch {
				case mask(v) == "":
					w.textf("\tVFMADD231PS %d(R11), V%d, V%d", at, value, h)
				case w.wide:
					w.textf("\tVFMADD231PS %d(R11), V%d, K1, V%d", at, value, h)
				default:
					w.load(mask(v), at, "R11", 14)
					w.textf("\tVFMADD231PS V14, V%d, V%d", value, h)
				}
				w.textf("\tVFMADD231PS V%d, V%d, V%d", value, weight, y(h, v))
			}
			w.text("\tADDQ R10, R11")
		})
		w.text("\nfold:")
		w.foldHeads(s.heads)
		w.text("\tADDQ step+40(FP), DX\n\tADDQ step+40(FP), R9\n\tADDQ $4, R8\n\tCMPQ R8, CX\n\tJB   edge\n" +
			"\tMOVQ R13, AX")
		each("next", func(h int) {
			for v := range s.vectors {
				w.store(mask(v), y(h, v), v*w.bytes(), "AX")
			}
		})
		w.text("\nnext:\n\tADDQ ldz+72(FP), DI\n\tADDQ ldy+88(FP), R13\n\tDECQ rows+0(FP)\n\tJNZ  row\n\tVZEROUPPER\n" +
			"\tRET")
	}
}

// logitGrads writes the gradients of logits, given the gradients of weights, with sixteen lanes of sums.
func (w *writer) logitGrads() {
	w.function("logitGrads", "(n int, slopes, keep, dots, base, out *float32, sum *headLanes)", 56)
	w.text(`	MOVQ n+0(FP), CX
	MOVQ slopes+8(FP), SI
	MOVQ keep+16(FP), R9
	MOVQ dots+24(FP), BX
	MOVQ base+32(FP), R10
	MOVQ out+40(FP), DI
	MOVQ sum+48(FP), R8
	MOVQ $64, R11
	TESTQ R9, R9
	JNZ  kept
	LEAQ ones<>(SB), R9
	XORQ R11, R11

kept:`)
	vectors := 64 / w.bytes()
	for v := range vectors {
		w.textf("\tVMOVUPS %d(R8), V%d", v*w.bytes(), 10+v)
	}
	w.text("\neach:\n\tCMPQ CX, $16\n\tJLT  few")
	for v := range vectors {
		w.logitGrad(v, "")
	}
	w.text("\tADDQ $64, SI\n\tADDQ R11, R9\n\tADDQ $64, BX\n\tADDQ $64, R10\n\tADDQ $64, DI\n\tSUBQ $16, CX\n" +
		"\tJMP  each\n\nfew:")
	for v := range vectors {
		w.text("\tTESTQ CX, CX\n\tJLE  done" + either(w, lastAVX2, lastAVX512))
		w.logitGrad(v, either(w, "V15", "K1"))
		w.text("\tSUBQ $LANES, CX")
	}
	w.text("\ndone:")
	for v := range vectors {
		w.textf("\tVMOVUPS V%d, %d(R8)", 10+v, v*w.bytes())
	}
	w.text("\tVZEROUPPER\n\tRET")
}

// logitGrad processes vector v of sixteen values; a mask may exclude some of them.
func (w *writer) logitGrad(v int, mask string) {
	at := v * w.bytes()
	for k, pointer := range []string{"BX", "R9", "R10", "SI"} {
		w.load(mask, at, pointer, k)
	}
	w.text("\tVMULPS V1, V0, V0\n\tVSUBPS V2, V0, V0\n\tVMULPS V3, V0, V0")
	w.store(mask, 0, at, "DI")
	w.textf("\tVADDPS V0, V%d, V%[1]d", 10+v)
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
	%[6]s
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
	RET`, either(w, "VMOVD AX, X10\n\tVPBROADCASTD X10, V10", "VPBROADCASTD AX, V10"), a, b,
		either(w, "\n\tSHRQ $1, R8", ""), either(w, "VPMAXUD V10, V1, V2 // equal to itself if not below the limit\n"+
			"\tVPCMPEQD V2, V1, V1\n\tVPAND V11, V1, V1",
			"VPCMPUD $5, V10, V1, K1 // not below the limit\n\tVMOVAPS.Z V11, K1, V1"),
		either(w, "VPERMD V0, V12, V1\n\tVPERMD V0, V13, V2", "MOVINT 64(SI), V3\n\tMOVINT V12, V1\n\t"+
			"VPERMI2D V3, V0, V1\n\tMOVINT V13, V2\n\tVPERMI2D V3, V0, V2"))
}

const attendMacros = `
DATA ones<>+0(SB)/8, $0x3f8000003f800000
DATA ones<>+8(SB)/8, $0x3f8000003f800000
DATA ones<>+16(SB)/8, $0x3f8000003f800000
DATA ones<>+24(SB)/8, $0x3f8000003f800000
DATA ones<>+32(SB)/8, $0x3f8000003f800000
DATA ones<>+40(SB)/8, $0x3f8000003f800000
DATA ones<>+48(SB)/8, $0x3f8000003f800000
DATA ones<>+56(SB)/8, $0x3f8000003f800000
GLOBL ones<>(SB), RODATA|NOPTR, $64

// The sums of rows: R8 the column of the edge, R9 its weights by heads, CX the row's end; BX and R12 X and its
// stride, DI and R13 Y and its stride. A permutation copies a weight to the columns of its head.

#define LOADARGS \
	MOVQ rows+0(FP), DX    \
	MOVQ rowPtr+8(FP), SI  \
	MOVQ col+16(FP), R8    \
	MOVQ w+24(FP), R9      \
	MOVQ step+32(FP), R10  \
	MOVQ x+40(FP), BX      \
	MOVQ ldx+48(FP), R12   \
	MOVQ y+56(FP), DI      \
	MOVQ ldy+64(FP), R13   \
	MOVQ far+88(FP), R15   \
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

// Products by heads: as in the sums, except that DI and R13 are the rows that each edge's row of X is multiplied with
// and their stride, DX the output, R10 a head's whole vectors and R9 the bytes of its remaining values.
#define LOADDOTS \
	MOVQ rowPtr+8(FP), SI  \
	MOVQ col+16(FP), R8    \
	MOVQ dots+24(FP), DX   \
	MOVQ x+40(FP), BX      \
	MOVQ ldx+48(FP), R12   \
	MOVQ z+56(FP), DI      \
	MOVQ ldz+64(FP), R13   \
	MOVQ dim+80(FP), R10   \
	MOVQ far+88(FP), R15   \
	SHLQ $2, R12           \
	SHLQ $2, R13           \
	LEAQ (R8)(R15*4), R15

// Both: DI is the row that rows of X are multiplied with, R13 the row of Y, DX and R9 the edge's products and
// weights, R10 the bytes of a head, R14 the number of heads and CX the columns of a head.
#define LOADBOTH \
	MOVQ rowPtr+8(FP), SI      \
	MOVQ col+16(FP), R8        \
	MOVQ w+24(FP), R9          \
	MOVQ dots+32(FP), DX       \
	MOVQ x+48(FP), BX          \
	MOVQ ldx+56(FP), R12       \
	MOVQ z+64(FP), DI          \
	MOVQ y+80(FP), R13         \
	MOVQ heads+96(FP), R14     \
	MOVQ dim+104(FP), R10      \
	MOVQ far+112(FP), R15      \
	MOVQ R10, CX               \
	SHLQ $2, R10               \
	SHLQ $2, R12               \
	SHLQ $2, ldz+72(FP)        \
	SHLQ $2, ldy+88(FP)        \
	LEAQ (R8)(R15*4), R15`

// edge starts an edge: it points AX at its row of X and loads its weights by heads.
const edge = `
#define EDGE \
	MOVLQSX (R8), AX        \
	IMULQ   R12, AX         \
	ADDQ    BX, AX          \
	VMOVUPS (R9), %s`

// columnsAVX2 and columnsAVX512 make the masks of the existing columns.
const columnsAVX2 = `	MOVQ $8, AX
	SUBQ cols+80(FP), AX
	LEAQ masks<>(SB), R11
	VMOVUPS (R11)(AX*4), Y12`

const columnsAVX512 = `	MOVQ  cols+80(FP), CX
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

// dotsMaskAVX2 and dotsMaskAVX512 make the mask of a head's remaining values.
const dotsMaskAVX2 = `
	MOVQ R10, R9
	ANDQ $7, R9
	SHRQ $3, R10
	MOVQ $8, AX
	SUBQ R9, AX
	LEAQ masks<>(SB), R11
	VMOVUPS (R11)(AX*4), Y15
	SHLQ $2, R9`

const dotsMaskAVX512 = `
	MOVQ R10, R9
	ANDQ $15, R9
	SHRQ $4, R10
	MOVQ R9, CX
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1
	SHLQ $2, R9`

// bothMaskAVX2 and bothMaskAVX512 make the mask of a head's last CX values.
const bothMaskAVX2 = `
	MOVQ $8, AX
	SUBQ CX, AX
	LEAQ masks<>(SB), R11
	VMOVUPS (R11)(AX*4), Y15`

const bothMaskAVX512 = `
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1`

// lastAVX2 and lastAVX512 make the mask of the next vector of the last CX values.
const lastAVX2 = `
	XORQ R12, R12
	MOVQ $8, AX
	SUBQ CX, AX
	CMOVQLT R12, AX
	LEAQ masks<>(SB), R12
	VMOVUPS (R12)(AX*4), Y15`

const lastAVX512 = `
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1`

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
