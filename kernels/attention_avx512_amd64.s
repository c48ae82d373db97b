#include "textflag.h"

// Edges of an attention, by heads: vectors of 16 values, the last one under the mask K1. Nothing is fused but the sums of
// rows; what the lanes mean is said in attention_generic.go.

#define TAIL \
	MOVL  $1, AX \
	SHLL  CX, AX \
	DECL  AX     \
	KMOVW AX, K1

#define ALL \
	MOVL  $0xffff, AX \
	KMOVW AX, K1

#define SPLAT(bits, z) \
	MOVL $bits, AX     \
	VPBROADCASTD AX, z

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
	VMOVUPS (R9), Y24       \
	VMOVUPS (R9)(R14*1), Y25

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

#define SIXTEEN(off, head, a, b) \
	VMOVUPS     off(AX), Z26   \
	VPERMPS     Z24, head, Z27 \
	VPERMPS     Z25, head, Z28 \
	VFMADD231PS Z26, Z27, a    \
	VFMADD231PS Z26, Z28, b

#define MASKED(off, k, head, a, b) \
	VMOVUPS.Z   off(AX), k, Z26 \
	VPERMPS     Z24, head, Z27  \
	VPERMPS     Z25, head, Z28  \
	VFMADD231PS Z26, Z27, a     \
	VFMADD231PS Z26, Z28, b

// func logitsAVX512(q []float32, slope float32, own, top *headLanes)
TEXT ·logitsAVX512(SB), NOSPLIT, $0-48
	MOVQ q_base+0(FP), SI
	MOVQ q_len+8(FP), CX
	VBROADCASTSS slope+24(FP), Z10
	MOVQ own+32(FP), BX
	MOVQ top+40(FP), DX
	VMOVUPS (BX), Z11
	VMOVUPS (DX), Z0
	VPXORD Z12, Z12, Z12
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VADDPS Z11, Z1, Z1
	VCMPPS $0x11, Z12, Z1, K2 // less than 0
	VMULPS Z10, Z1, K2, Z1
	VMOVUPS Z1, K1, (SI)
	VMAXPS Z0, Z1, K1, Z0 // NaN is the first operand: it is not taken
	ADDQ $64, SI
	SUBQ $16, CX
	JGT  each

done:
	VMOVUPS Z0, (DX)
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next

// MIX is the hash of DropoutMask on z; t is scratch, a and b its factors.
#define MIX(z, t, a, b) \
	VPSRLD  $16, z, t \
	VPXORD  t, z, z   \
	VPMULLD a, z, z   \
	VPSRLD  $15, z, t \
	VPXORD  t, z, z   \
	VPMULLD b, z, z   \
	VPSRLD  $16, z, t \
	VPXORD  t, z, z

// func dropEdgesAVX512(keys []uint64, bytes int, p *dropPattern, limit uint32, up float32, keep []float32)
TEXT ·dropEdgesAVX512(SB), NOSPLIT, $0-72
	MOVQ keys_base+0(FP), SI
	MOVQ bytes+24(FP), R8
	MOVQ p+32(FP), BX
	MOVL limit+40(FP), AX
	VPBROADCASTD AX, Z10
	VBROADCASTSS up+44(FP), Z11
	MOVQ keep_base+48(FP), DI
	MOVQ keep_len+56(FP), CX
	VMOVDQU32 (BX), Z12
	VMOVDQU32 64(BX), Z13
	VMOVDQU32 128(BX), Z14
	SPLAT(0x7feb352d, Z15)
	SPLAT(0x846ca68b, Z16)

each:
	VMOVDQU32 (SI), Z0
	VPERMD Z0, Z12, Z1
	VPERMD Z0, Z13, Z2
	VPADDD Z14, Z1, Z1
	VPXORD Z2, Z1, Z1
	MIX(Z1, Z2, Z15, Z16)
	VPCMPUD $5, Z10, Z1, K1 // not below the limit
	VMOVAPS.Z Z11, K1, Z1
	VMOVUPS Z1, (DI)
	ADDQ R8, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGT  each
	VZEROUPPER
	RET

DATA ones<>+0(SB)/8, $0x3f8000003f800000
DATA ones<>+8(SB)/8, $0x3f8000003f800000
DATA ones<>+16(SB)/8, $0x3f8000003f800000
DATA ones<>+24(SB)/8, $0x3f8000003f800000
DATA ones<>+32(SB)/8, $0x3f8000003f800000
DATA ones<>+40(SB)/8, $0x3f8000003f800000
DATA ones<>+48(SB)/8, $0x3f8000003f800000
DATA ones<>+56(SB)/8, $0x3f8000003f800000
GLOBL ones<>(SB), RODATA|NOPTR, $64

// func weightsAVX512(n int, q, shift, factor *float32, step int, keep, w0, w1 *float32, slope float32, sums *[2]headLanes)
TEXT ·weightsAVX512(SB), NOSPLIT, $0-80
	MOVQ n+0(FP), CX
	MOVQ q+8(FP), SI
	MOVQ shift+16(FP), BX
	MOVQ factor+24(FP), DX
	MOVQ step+32(FP), R8
	MOVQ keep+40(FP), R9
	MOVQ $64, R10
	MOVQ w0+48(FP), DI
	MOVQ w1+56(FP), R11
	MOVQ sums+72(FP), R12
	TESTQ R9, R9
	JNZ  kept
	LEAQ ones<>(SB), R9
	XORQ R10, R10

kept:
	SPLAT(0xc2b00000, Z11) // -88
	SPLAT(0x42b20000, Z12) // 89
	SPLAT(0x3fb8aa3b, Z13) // 1.4426950408889634
	SPLAT(0x4b400000, Z14) // 12582912
	SPLAT(0x3f318000, Z15) // 0.693359375
	SPLAT(0xb95e8083, Z16) // -0.00021219444
	SPLAT(0x39506967, Z17) // 0.000198756915
	SPLAT(0x3ab743ce, Z18) // 0.0013981999507
	SPLAT(0x3c088908, Z19) // 0.0083334519073
	SPLAT(0x3d2aa9c1, Z20) // 0.041665795894
	SPLAT(0x3e2aaaaa, Z21) // 0.16666665459
	SPLAT(0x3f000000, Z22) // 0.50000001201
	SPLAT(0x3f800000, Z23) // 1
	SPLAT(127, Z24)
	VBROADCASTSS slope+64(FP), Z10
	VPXORD Z25, Z25, Z25
	VPXORD Z26, Z26, Z26 // sums of p
	VPXORD Z27, Z27, Z27 // and of s·p·factor
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VCMPPS $0x11, Z25, Z1, K2
	VMOVAPS Z23, Z5
	VMOVAPS Z10, K2, Z5 // s
	VMOVUPS.Z (BX), K1, Z2
	VSUBPS Z2, Z1, Z1
	VMAXPS Z1, Z11, Z1 // NaN stays: it is the second operand
	VMINPS Z1, Z12, Z1
	VMULPS Z13, Z1, Z2
	VADDPS Z14, Z2, Z2
	VSUBPS Z14, Z2, Z2
	VMULPS Z15, Z2, Z3
	VSUBPS Z3, Z1, Z1
	VMULPS Z16, Z2, Z3
	VSUBPS Z3, Z1, Z1
	VMULPS Z17, Z1, Z3
	VADDPS Z18, Z3, Z3
	VMULPS Z1, Z3, Z3
	VADDPS Z19, Z3, Z3
	VMULPS Z1, Z3, Z3
	VADDPS Z20, Z3, Z3
	VMULPS Z1, Z3, Z3
	VADDPS Z21, Z3, Z3
	VMULPS Z1, Z3, Z3
	VADDPS Z22, Z3, Z3
	VMULPS Z1, Z1, Z4
	VMULPS Z4, Z3, Z3
	VADDPS Z1, Z3, Z3
	VADDPS Z23, Z3, Z3
	VCVTPS2DQ Z2, Z2
	VPADDD Z24, Z2, Z2
	VPSLLD $23, Z2, Z2
	VMULPS.Z Z2, Z3, K1, Z3 // p
	VADDPS Z3, Z26, Z26
	VMULPS Z5, Z3, Z1
	VMULPS.Z (DX), Z1, K1, Z1
	VADDPS Z1, Z27, Z27
	VMULPS.Z (R9), Z3, K1, Z3
	VMOVUPS Z3, K1, (DI)
	VMULPS Z5, Z3, Z3
	VMOVUPS Z3, K1, (R11)
	ADDQ $64, SI
	ADDQ R8, BX
	ADDQ R8, DX
	ADDQ R10, R9
	ADDQ $64, DI
	ADDQ $64, R11
	SUBQ $16, CX
	JGT  each

done:
	VADDPS (R12), Z26, Z26
	VMOVUPS Z26, (R12)
	VADDPS 64(R12), Z27, Z27
	VMOVUPS Z27, 64(R12)
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next

// func attend128AVX512(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)
TEXT ·attend128AVX512(SB), NOSPLIT, $0-120
	LOADARGS
	MOVQ head+96(FP), AX
	VMOVDQU32 (AX), Z16
	VMOVDQU32 64(AX), Z17
	VMOVDQU32 128(AX), Z18
	VMOVDQU32 192(AX), Z19
	VMOVDQU32 256(AX), Z20
	VMOVDQU32 320(AX), Z21
	VMOVDQU32 384(AX), Z22
	VMOVDQU32 448(AX), Z23

row:
	ROWEND
	CMPQ R8, CX
	JAE  none
	SLOPE
	VMOVUPS (DI), Z0
	VMOVUPS 64(DI), Z1
	VMOVUPS 128(DI), Z2
	VMOVUPS 192(DI), Z3
	VMOVUPS 256(DI), Z4
	VMOVUPS 320(DI), Z5
	VMOVUPS 384(DI), Z6
	VMOVUPS 448(DI), Z7
	VMOVUPS (AX), Z8
	VMOVUPS 64(AX), Z9
	VMOVUPS 128(AX), Z10
	VMOVUPS 192(AX), Z11
	VMOVUPS 256(AX), Z12
	VMOVUPS 320(AX), Z13
	VMOVUPS 384(AX), Z14
	VMOVUPS 448(AX), Z15

edge:
	AHEAD(here)
	PREFETCHT0 (R11)
	PREFETCHT0 64(R11)
	PREFETCHT0 128(R11)
	PREFETCHT0 192(R11)
	PREFETCHT0 256(R11)
	PREFETCHT0 320(R11)
	PREFETCHT0 384(R11)
	PREFETCHT0 448(R11)

here:
	EDGE
	SIXTEEN(0, Z16, Z0, Z8)
	SIXTEEN(64, Z17, Z1, Z9)
	SIXTEEN(128, Z18, Z2, Z10)
	SIXTEEN(192, Z19, Z3, Z11)
	SIXTEEN(256, Z20, Z4, Z12)
	SIXTEEN(320, Z21, Z5, Z13)
	SIXTEEN(384, Z22, Z6, Z14)
	SIXTEEN(448, Z23, Z7, Z15)
	NEXT(edge)
	SLOPE
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	VMOVUPS Z8, (AX)
	VMOVUPS Z9, 64(AX)
	VMOVUPS Z10, 128(AX)
	VMOVUPS Z11, 192(AX)
	VMOVUPS Z12, 256(AX)
	VMOVUPS Z13, 320(AX)
	VMOVUPS Z14, 384(AX)
	VMOVUPS Z15, 448(AX)

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

// func attend64AVX512(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)
TEXT ·attend64AVX512(SB), NOSPLIT, $0-120
	LOADARGS
	MOVQ  cols+104(FP), CX
	MOVQ  $-1, AX
	NEGQ  CX
	SHRQ  CX, AX
	KMOVW AX, K1
	SHRQ  $16, AX
	KMOVW AX, K2
	SHRQ  $16, AX
	KMOVW AX, K3
	SHRQ  $16, AX
	KMOVW AX, K4
	MOVQ head+96(FP), AX
	VMOVDQU32 (AX), Z16
	VMOVDQU32 64(AX), Z17
	VMOVDQU32 128(AX), Z18
	VMOVDQU32 192(AX), Z19

row:
	ROWEND
	CMPQ R8, CX
	JAE  none
	SLOPE
	VMOVUPS.Z (DI), K1, Z0
	VMOVUPS.Z 64(DI), K2, Z1
	VMOVUPS.Z 128(DI), K3, Z2
	VMOVUPS.Z 192(DI), K4, Z3
	VMOVUPS.Z (AX), K1, Z4
	VMOVUPS.Z 64(AX), K2, Z5
	VMOVUPS.Z 128(AX), K3, Z6
	VMOVUPS.Z 192(AX), K4, Z7

edge:
	AHEAD(here)
	PREFETCHT0 (R11)
	PREFETCHT0 64(R11)
	PREFETCHT0 128(R11)
	PREFETCHT0 192(R11)

here:
	EDGE
	MASKED(0, K1, Z16, Z0, Z4)
	MASKED(64, K2, Z17, Z1, Z5)
	MASKED(128, K3, Z18, Z2, Z6)
	MASKED(192, K4, Z19, Z3, Z7)
	NEXT(edge)
	SLOPE
	VMOVUPS Z0, K1, (DI)
	VMOVUPS Z1, K2, 64(DI)
	VMOVUPS Z2, K3, 128(DI)
	VMOVUPS Z3, K4, 192(DI)
	VMOVUPS Z4, K1, (AX)
	VMOVUPS Z5, K2, 64(AX)
	VMOVUPS Z6, K3, 128(AX)
	VMOVUPS Z7, K4, 192(AX)

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
