#include "textflag.h"
#include "exp_avx512_amd64.h"

// Logits and weights of an attention's edges, by heads: vectors of 16 values, the last one under the mask K1. No
// multiply-add is fused; attention_generic.go explains the lanes.

#define TAIL \
	MOVL  $1, AX \
	SHLL  CX, AX \
	DECL  AX     \
	KMOVW AX, K1

#define ALL \
	MOVL  $0xffff, AX \
	KMOVW AX, K1

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
	VMAXPS Z0, Z1, K1, Z0 // a NaN is ignored: it is the first operand
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

// func weightsAVX512(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes)
TEXT ·weightsAVX512(SB), NOSPLIT, $0-72
	MOVQ n+0(FP), CX
	MOVQ q+8(FP), SI
	MOVQ shift+16(FP), BX
	MOVQ step+24(FP), R8
	MOVQ keep+32(FP), R9
	MOVQ $64, R10
	MOVQ w+40(FP), DI
	MOVQ slopes+48(FP), R11
	MOVQ sum+64(FP), R12
	TESTQ R9, R9
	JNZ  kept
	LEAQ ones<>(SB), R9
	XORQ R10, R10

kept:
	EXPS512
	VBROADCASTSS slope+56(FP), Z10
	VPXORD Z25, Z25, Z25
	VPXORD Z26, Z26, Z26 // sums of p
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
	EXP512(Z1)
	VMULPS.Z Z2, Z3, K1, Z3 // p
	VADDPS Z3, Z26, Z26
	VMULPS Z5, Z3, Z1
	VMOVUPS Z1, K1, (R11)
	VMULPS.Z (R9), Z3, K1, Z3
	VMOVUPS Z3, K1, (DI)
	ADDQ $64, SI
	ADDQ R8, BX
	ADDQ R10, R9
	ADDQ $64, DI
	ADDQ $64, R11
	SUBQ $16, CX
	JGT  each

done:
	VADDPS (R12), Z26, Z26
	VMOVUPS Z26, (R12)
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next
