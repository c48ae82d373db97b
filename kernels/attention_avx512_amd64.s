#include "textflag.h"

// Logits and weights of an attention's edges, by heads: vectors of 16 values, the last one under the mask K1. Nothing is
// fused; what the lanes mean is said in attention_generic.go.

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
