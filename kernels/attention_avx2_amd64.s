#include "textflag.h"
#include "exp_amd64.h"

// Edges of an attention, by heads: vectors of 8 values, two of which make the sixteen lanes. Nothing is fused but the sums
// of rows; what the lanes mean is said in attention_generic.go.

DATA masks<>+0(SB)/8, $-1
DATA masks<>+8(SB)/8, $-1
DATA masks<>+16(SB)/8, $-1
DATA masks<>+24(SB)/8, $-1
DATA masks<>+32(SB)/8, $0
DATA masks<>+40(SB)/8, $0
DATA masks<>+48(SB)/8, $0
DATA masks<>+56(SB)/8, $0
GLOBL masks<>(SB), RODATA|NOPTR, $64

DATA ones<>+0(SB)/8, $0x3f8000003f800000
DATA ones<>+8(SB)/8, $0x3f8000003f800000
DATA ones<>+16(SB)/8, $0x3f8000003f800000
DATA ones<>+24(SB)/8, $0x3f8000003f800000
DATA ones<>+32(SB)/8, $0x3f8000003f800000
DATA ones<>+40(SB)/8, $0x3f8000003f800000
DATA ones<>+48(SB)/8, $0x3f8000003f800000
DATA ones<>+56(SB)/8, $0x3f8000003f800000
GLOBL ones<>(SB), RODATA|NOPTR, $64

// MASK makes Y15 the mask of the next CX values, or of eight; MASKS points at masks.
#define MASK(MASKS) \
	XORQ    R15, R15          \
	MOVQ    $8, AX            \
	SUBQ    CX, AX            \
	CMOVQLT R15, AX           \
	VMOVUPS (MASKS)(AX*4), Y15

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

#define EDGE \
	MOVLQSX (R8), AX        \
	IMULQ   R12, AX         \
	ADDQ    BX, AX          \
	VMOVUPS (R9), Y12       \
	VMOVUPS (R9)(R14*1), Y13

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
	MOVQ AX, slope+80(FP)

#define EIGHT(off, head, a, b) \
	VMOVUPS     off(AX), Y14   \
	VPERMPS     Y12, head, Y15 \
	VFMADD231PS Y14, Y15, a    \
	VPERMPS     Y13, head, Y15 \
	VFMADD231PS Y14, Y15, b

#define LOGITS(off, top, own) \
	VMASKMOVPS off(SI), Y15, Y1    \
	VADDPS     own, Y1, Y1         \
	VMULPS     Y10, Y1, Y2         \
	VCMPPS     $0x11, Y9, Y1, Y3   \
	VBLENDVPS  Y3, Y2, Y1, Y1      \
	VMASKMOVPS Y1, Y15, off(SI)    \
	VMAXPS     top, Y1, Y1         \
	VBLENDVPS  Y15, Y1, top, top

// MIX is the hash of DropoutMask on z; t is scratch, a and b its factors.
#define MIX(z, t, a, b) \
	VPSRLD  $16, z, t \
	VPXOR   t, z, z   \
	VPMULLD a, z, z   \
	VPSRLD  $15, z, t \
	VPXOR   t, z, z   \
	VPMULLD b, z, z   \
	VPSRLD  $16, z, t \
	VPXOR   t, z, z

// func logitsAVX2(q []float32, slope float32, own, top *headLanes)
TEXT ·logitsAVX2(SB), NOSPLIT, $0-48
	MOVQ q_base+0(FP), SI
	MOVQ q_len+8(FP), CX
	VBROADCASTSS slope+24(FP), Y10
	MOVQ own+32(FP), BX
	MOVQ top+40(FP), DX
	LEAQ masks<>(SB), R14
	VMOVUPS (BX), Y11
	VMOVUPS 32(BX), Y12
	VMOVUPS (DX), Y0
	VMOVUPS 32(DX), Y4
	VXORPS Y9, Y9, Y9

each:
	TESTQ CX, CX
	JLE   done
	MASK(R14)
	LOGITS(0, Y0, Y11)
	SUBQ  $8, CX
	JLE   done
	MASK(R14)
	LOGITS(32, Y4, Y12)
	SUBQ  $8, CX
	ADDQ  $64, SI
	JMP   each

done:
	VMOVUPS Y0, (DX)
	VMOVUPS Y4, 32(DX)
	VZEROUPPER
	RET

#define WEIGHTS(off, p, slopes) \
	VMASKMOVPS off(SI), Y15, Y1      \
	VCMPPS     $0x11, Y9, Y1, Y2     \
	VMOVUPS    384(R14), Y5          \
	VBLENDVPS  Y2, Y10, Y5, Y5       \
	VMASKMOVPS off(BX), Y15, Y2      \
	VSUBPS     Y2, Y1, Y1            \
	EXP(R14, Y1, Y2, Y3, Y4)         \
	VANDPS     Y15, Y1, Y1           \
	VADDPS     Y1, p, p              \
	VMULPS     Y5, Y1, Y2            \
	VMASKMOVPS off(DX), Y15, Y3      \
	VMULPS     Y3, Y2, Y2            \
	VANDPS     Y15, Y2, Y2           \
	VADDPS     Y2, slopes, slopes    \
	VMASKMOVPS off(R9), Y15, Y3      \
	VMULPS     Y3, Y1, Y1            \
	VMASKMOVPS Y1, Y15, off(DI)      \
	VMULPS     Y5, Y1, Y1            \
	VMASKMOVPS Y1, Y15, off(R11)

// func weightsAVX2(n int, q, shift, factor *float32, step int, keep, w0, w1 *float32, slope float32, sums *[2]headLanes)
TEXT ·weightsAVX2(SB), NOSPLIT, $0-80
	MOVQ n+0(FP), CX
	MOVQ q+8(FP), SI
	MOVQ shift+16(FP), BX
	MOVQ factor+24(FP), DX
	MOVQ step+32(FP), R8
	MOVQ keep+40(FP), R9
	MOVQ $64, R10
	MOVQ w0+48(FP), DI
	MOVQ w1+56(FP), R11
	LEAQ exps<>(SB), R14
	LEAQ masks<>(SB), R13
	TESTQ R9, R9
	JNZ  kept
	LEAQ ones<>(SB), R9
	XORQ R10, R10

kept:
	VBROADCASTSS slope+64(FP), Y10
	VXORPS Y9, Y9, Y9
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y11, Y11, Y11

each:
	TESTQ CX, CX
	JLE   done
	MASK(R13)
	WEIGHTS(0, Y6, Y8)
	SUBQ  $8, CX
	JLE   done
	MASK(R13)
	WEIGHTS(32, Y7, Y11)
	SUBQ  $8, CX
	ADDQ  $64, SI
	ADDQ  R8, BX
	ADDQ  R8, DX
	ADDQ  R10, R9
	ADDQ  $64, DI
	ADDQ  $64, R11
	JMP   each

done:
	MOVQ sums+72(FP), R12
	VADDPS (R12), Y6, Y6
	VADDPS 32(R12), Y7, Y7
	VADDPS 64(R12), Y8, Y8
	VADDPS 96(R12), Y11, Y11
	VMOVUPS Y6, (R12)
	VMOVUPS Y7, 32(R12)
	VMOVUPS Y8, 64(R12)
	VMOVUPS Y11, 96(R12)
	VZEROUPPER
	RET

// func attend32AVX2(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)
TEXT ·attend32AVX2(SB), NOSPLIT, $0-120
	LOADARGS
	MOVQ head+96(FP), AX
	VMOVDQU (AX), Y8
	VMOVDQU 32(AX), Y9
	VMOVDQU 64(AX), Y10
	VMOVDQU 96(AX), Y11

row:
	ROWEND
	CMPQ R8, CX
	JAE  none
	SLOPE
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VMOVUPS (AX), Y4
	VMOVUPS 32(AX), Y5
	VMOVUPS 64(AX), Y6
	VMOVUPS 96(AX), Y7

edge:
	AHEAD(here)
	PREFETCHT0 (R11)
	PREFETCHT0 64(R11)

here:
	EDGE
	EIGHT(0, Y8, Y0, Y4)
	EIGHT(32, Y9, Y1, Y5)
	EIGHT(64, Y10, Y2, Y6)
	EIGHT(96, Y11, Y3, Y7)
	NEXT(edge)
	SLOPE
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, (AX)
	VMOVUPS Y5, 32(AX)
	VMOVUPS Y6, 64(AX)
	VMOVUPS Y7, 96(AX)

next:
	ADDQ R13, DI
	SLOPED
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

none:
	SLOPE
	JMP next

// func attend8AVX2(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)
TEXT ·attend8AVX2(SB), NOSPLIT, $0-120
	LOADARGS
	MOVQ head+96(FP), AX
	VMOVDQU (AX), Y8
	MOVQ $8, AX
	SUBQ cols+104(FP), AX
	LEAQ masks<>(SB), R11
	VMOVUPS (R11)(AX*4), Y9

row:
	ROWEND
	CMPQ R8, CX
	JAE  none
	SLOPE
	VMASKMOVPS (DI), Y9, Y0
	VMASKMOVPS (AX), Y9, Y1

edge:
	AHEAD(here)
	PREFETCHT0 (R11)

here:
	EDGE
	VMASKMOVPS (AX), Y9, Y14
	VPERMPS Y12, Y8, Y15
	VFMADD231PS Y14, Y15, Y0
	VPERMPS Y13, Y8, Y15
	VFMADD231PS Y14, Y15, Y1
	NEXT(edge)
	SLOPE
	VMASKMOVPS Y0, Y9, (DI)
	VMASKMOVPS Y1, Y9, (AX)

next:
	ADDQ R13, DI
	SLOPED
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

none:
	SLOPE
	JMP next

// func dropEdgesAVX2(keys []uint64, bytes int, p *dropPattern, limit uint32, up float32, keep []float32)
TEXT ·dropEdgesAVX2(SB), NOSPLIT, $0-72
	MOVQ keys_base+0(FP), SI
	MOVQ bytes+24(FP), R8
	MOVQ p+32(FP), BX
	MOVL limit+40(FP), AX
	VMOVD AX, X10
	VPBROADCASTD X10, Y10
	VBROADCASTSS up+44(FP), Y11
	MOVQ keep_base+48(FP), DI
	MOVQ keep_len+56(FP), CX
	VMOVDQU (BX), Y12
	VMOVDQU 64(BX), Y13
	VMOVDQU 128(BX), Y14
	MOVL $0x7feb352d, AX
	VMOVD AX, X6
	VPBROADCASTD X6, Y6
	MOVL $0x846ca68b, AX
	VMOVD AX, X7
	VPBROADCASTD X7, Y7
	SHRQ $1, R8

each:
	VMOVDQU (SI), Y0
	VPERMD Y0, Y12, Y1
	VPERMD Y0, Y13, Y2
	VPADDD Y14, Y1, Y1
	VPXOR Y2, Y1, Y1
	MIX(Y1, Y2, Y6, Y7)
	VPMAXUD Y10, Y1, Y2 // itself where not below the limit
	VPCMPEQD Y2, Y1, Y1
	VPAND Y11, Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ R8, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JGT  each
	VZEROUPPER
	RET
