#include "textflag.h"

// Softmax of rows of up to 64 values, times a weight each: vectors of 16, the last one of a row under K1. Rows are gone through
// three times, in caches: their maxima, whose differences are laid out in room without gaps; the exponentials of these, four
// vectors at a time, since one alone waits for itself; their sums. The bits are those of max, expSum and scale.

#define SPLAT(bits, z) \
	MOVL $bits, AX     \
	VPBROADCASTD AX, z

// STEP is a step of Horner's scheme: p = p·r + a.
#define STEP(a) \
	VMULPS Z0, Z8, Z8   \
	VMULPS Z1, Z9, Z9   \
	VMULPS Z2, Z10, Z10 \
	VMULPS Z3, Z11, Z11 \
	VADDPS a, Z8, Z8    \
	VADDPS a, Z9, Z9    \
	VADDPS a, Z10, Z10  \
	VADDPS a, Z11, Z11

// func softmaxAVX512(rows, n int, row *int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, w, top *float32, sum *float64, room *float32)
TEXT ·softmaxAVX512(SB), NOSPLIT, $0-88
	MOVQ n+8(FP), CX
	DECQ CX
	MOVQ CX, R12
	SHRQ $4, R12 // full vectors of a row before its last
	ANDQ $15, CX
	MOVL $0xffff, AX
	SUBQ $15, CX
	NEGQ CX
	SHRL CX, AX
	KMOVW AX, K1 // of the last

	MOVQ rows+0(FP), R8
	MOVQ row+16(FP), R9
	MOVQ ldx+32(FP), R10
	MOVQ top+64(FP), R11
	MOVQ room+80(FP), DI
	SPLAT(0xff800000, Z15) // −Inf

max:
	MOVQ (R9), SI
	IMULQ R10, SI
	SHLQ  $2, SI
	ADDQ  x+24(FP), SI
	VMOVAPS Z15, Z0
	VMOVAPS Z15, Z1
	MOVQ  SI, BX
	MOVQ  R12, CX
	TESTQ CX, CX
	JZ    maxlast

maxfull:
	VMOVUPS (BX), Z2
	VMAXPS  Z0, Z2, Z0 // NaN goes: it is the first operand
	ADDQ $64, BX
	DECQ CX
	JNZ  maxfull

maxlast:
	VMOVUPS (BX), K1, Z1
	VMAXPS  Z0, Z1, Z0
	VEXTRACTF64X4 $1, Z0, Y2
	VMAXPS Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X2
	VMAXPS X2, X0, X0
	VPERMILPS $0x4e, X0, X2
	VMAXPS X2, X0, X0
	VPERMILPS $0xb1, X0, X2
	VMAXPS X2, X0, X0
	VMOVSS X0, (R11)
	VBROADCASTSS X0, Z0
	MOVQ  R12, CX
	TESTQ CX, CX
	JZ    lesslast

lessfull:
	VMOVUPS (SI), Z2
	VSUBPS  Z0, Z2, Z2
	VMOVUPS Z2, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  lessfull

lesslast:
	VSUBPS  Z0, Z1, Z1
	VMOVUPS Z1, (DI)
	ADDQ $64, DI
	ADDQ $8, R9
	ADDQ $4, R11
	DECQ R8
	JNZ  max

	SPLAT(0xc2b00000, Z16) // -88
	SPLAT(0x3fb8aa3b, Z17) // 1.4426950408889634
	SPLAT(0x4b400000, Z18) // 12582912
	SPLAT(0x3f318000, Z19) // 0.693359375
	SPLAT(0xb95e8083, Z20) // -0.00021219444
	SPLAT(0x39506967, Z21) // 0.000198756915
	SPLAT(0x3ab743ce, Z22) // 0.0013981999507
	SPLAT(0x3c088908, Z23) // 0.0083334519073
	SPLAT(0x3d2aa9c1, Z24) // 0.041665795894
	SPLAT(0x3e2aaaaa, Z25) // 0.16666665459
	SPLAT(0x3f000000, Z26) // 0.50000001201
	SPLAT(0x3f800000, Z27) // 1, and 127 as an exponent
	MOVQ row+16(FP), R9
	MOVQ (R9), BX
	ADDQ $16, BX // the row that the next call begins with, if all have a class
	SHLQ $2, BX
	MOVQ BX, R14
	IMULQ ldx+32(FP), BX
	ADDQ x+24(FP), BX
	IMULQ ldy+48(FP), R14
	ADDQ y+40(FP), R14
	MOVQ room+80(FP), SI

exp:
	PREFETCHT0 (BX)
	PREFETCHT0 64(BX)
	PREFETCHT0 128(BX)
	PREFETCHT0 192(BX)
	PREFETCHT0 (R14)
	PREFETCHT0 64(R14)
	PREFETCHT0 128(R14)
	PREFETCHT0 192(R14)
	ADDQ $256, BX
	ADDQ $256, R14
	VMAXPS (SI), Z16, Z0 // NaN stays: it is the second operand
	VMAXPS 64(SI), Z16, Z1
	VMAXPS 128(SI), Z16, Z2
	VMAXPS 192(SI), Z16, Z3
	VMULPS Z17, Z0, Z4
	VMULPS Z17, Z1, Z5
	VMULPS Z17, Z2, Z6
	VMULPS Z17, Z3, Z7
	VADDPS Z18, Z4, Z4
	VADDPS Z18, Z5, Z5
	VADDPS Z18, Z6, Z6
	VADDPS Z18, Z7, Z7
	VSUBPS Z18, Z4, Z8
	VSUBPS Z18, Z5, Z9
	VSUBPS Z18, Z6, Z10
	VSUBPS Z18, Z7, Z11
	VFNMADD231PS Z19, Z8, Z0 // fused, for the product is exact: of 7 bits and 9
	VFNMADD231PS Z19, Z9, Z1
	VFNMADD231PS Z19, Z10, Z2
	VFNMADD231PS Z19, Z11, Z3
	VMULPS Z20, Z8, Z8
	VMULPS Z20, Z9, Z9
	VMULPS Z20, Z10, Z10
	VMULPS Z20, Z11, Z11
	VSUBPS Z8, Z0, Z0
	VSUBPS Z9, Z1, Z1
	VSUBPS Z10, Z2, Z2
	VSUBPS Z11, Z3, Z3
	VPSLLD $23, Z4, Z4 // what rounded to an integer holds it in its last bits
	VPSLLD $23, Z5, Z5
	VPSLLD $23, Z6, Z6
	VPSLLD $23, Z7, Z7
	VMULPS Z21, Z0, Z8
	VMULPS Z21, Z1, Z9
	VMULPS Z21, Z2, Z10
	VMULPS Z21, Z3, Z11
	VADDPS Z22, Z8, Z8
	VADDPS Z22, Z9, Z9
	VADDPS Z22, Z10, Z10
	VADDPS Z22, Z11, Z11
	STEP(Z23)
	STEP(Z24)
	STEP(Z25)
	STEP(Z26)
	VMULPS Z0, Z0, Z12
	VMULPS Z1, Z1, Z13
	VMULPS Z2, Z2, Z14
	VMULPS Z3, Z3, Z15
	VMULPS Z12, Z8, Z8
	VMULPS Z13, Z9, Z9
	VMULPS Z14, Z10, Z10
	VMULPS Z15, Z11, Z11
	VADDPS Z0, Z8, Z8
	VADDPS Z1, Z9, Z9
	VADDPS Z2, Z10, Z10
	VADDPS Z3, Z11, Z11
	VPADDD Z27, Z4, Z4
	VPADDD Z27, Z5, Z5
	VPADDD Z27, Z6, Z6
	VPADDD Z27, Z7, Z7
	VADDPS Z27, Z8, Z8
	VADDPS Z27, Z9, Z9
	VADDPS Z27, Z10, Z10
	VADDPS Z27, Z11, Z11
	VMULPS Z4, Z8, Z8
	VMULPS Z5, Z9, Z9
	VMULPS Z6, Z10, Z10
	VMULPS Z7, Z11, Z11
	VMOVUPS Z8, (SI)
	VMOVUPS Z9, 64(SI)
	VMOVUPS Z10, 128(SI)
	VMOVUPS Z11, 192(SI)
	ADDQ $256, SI
	CMPQ SI, DI
	JLT  exp

	MOVQ rows+0(FP), R8
	MOVQ row+16(FP), R9
	MOVQ ldy+48(FP), R10
	MOVQ w+56(FP), R11
	MOVQ sum+72(FP), R13
	MOVQ room+80(FP), SI

sums:
	MOVQ (R9), DI
	IMULQ R10, DI
	SHLQ  $2, DI
	ADDQ  y+40(FP), DI
	MOVQ  SI, BX
	MOVQ  R12, CX
	VMOVUPS (BX), Z0
	TESTQ CX, CX
	JZ    fold

sumfull:
	ADDQ $64, BX
	VADDPS (BX), Z0, Z0
	DECQ CX
	JNZ  sumfull

fold:
	VEXTRACTF64X4 $1, Z0, Y1
	VCVTPS2PD Y0, Z0
	VCVTPS2PD Y1, Z1
	VADDPD Z1, Z0, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPD Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPD X1, X0, X0
	VPERMILPD $1, X0, X1
	VADDSD X1, X0, X0
	VMOVSD X0, (R13)
	VMOVSS (R11), X1
	VCVTSS2SD X1, X1, X1
	VDIVSD X0, X1, X1
	VCVTSD2SS X1, X1, X1
	VBROADCASTSS X1, Z1
	MOVQ  R12, CX
	TESTQ CX, CX
	JZ    scalelast

scalefull:
	VMULPS (SI), Z1, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  scalefull

scalelast:
	VMULPS (SI), Z1, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $8, R9
	ADDQ $4, R11
	ADDQ $8, R13
	DECQ R8
	JNZ  sums
	VZEROUPPER
	RET
