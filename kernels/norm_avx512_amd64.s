#include "textflag.h"
#include "exp_avx512_amd64.h"

// Rows of LayerNorm and softmax: vectors of 16, the last one under a mask; K1 masks the sixteen, K2 the upper eight. Sums
// are taken in sixteen lanes of float32 over 128 columns, and of these in float64, in the order of plain Go; nothing is fused.
// What rows further on read is fetched ahead: a row is gone through several times, and memory would rest meanwhile.

// TAIL makes K1 the mask of the last CX < 16 values, and K2 that of those past eight.
#define TAIL \
	MOVL   $1, AX     \
	SHLL   CX, AX     \
	DECL   AX         \
	KMOVW  AX, K1     \
	KSHIFTRW $8, K1, K2

#define ALL \
	MOVL     $0xffff, AX \
	KMOVW    AX, K1      \
	KSHIFTRW $8, K1, K2

// WIDE makes z0 and z1 the float64 of z, whose lower half is y.
#define WIDE(z, y, z0, z1, y1) \
	VCVTPS2PD     y, z0      \
	VEXTRACTF64X4 $1, z, y1  \
	VCVTPS2PD     y1, z1

// FOLD adds up the lanes of z, of which y and x are the lower parts, and adds what they make to sum.
#define FOLD(z, y, x, z1, y1, x1, z2, y2, sum) \
	WIDE(z, y, z1, z2, y2)   \
	VADDPD        z2, z1, z  \
	VEXTRACTF64X4 $1, z, y1  \
	VADDPD        y1, y, y   \
	VEXTRACTF128  $1, y, x1  \
	VADDPD        x1, x, x   \
	VPERMILPD     $1, x, x1  \
	VADDSD        x1, x, x   \
	VADDSD        x, sum, sum

// func sumAVX512(x []float32) float64
TEXT ·sumAVX512(SB), NOSPLIT, $0-32
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VPXORD Z0, Z0, Z0

many:
	CMPQ CX, $128
	JLT  few
	PREFETCHT0 2048(SI)
	PREFETCHT0 2112(SI)
	PREFETCHT0 2176(SI)
	PREFETCHT0 2240(SI)
	PREFETCHT0 2304(SI)
	PREFETCHT0 2368(SI)
	PREFETCHT0 2432(SI)
	PREFETCHT0 2496(SI)
	VMOVUPS (SI), Z1
	VADDPS 64(SI), Z1, Z1
	VADDPS 128(SI), Z1, Z1
	VADDPS 192(SI), Z1, Z1
	VADDPS 256(SI), Z1, Z1
	VADDPS 320(SI), Z1, Z1
	VADDPS 384(SI), Z1, Z1
	VADDPS 448(SI), Z1, Z1
	FOLD(Z1, Y1, X1, Z2, Y2, X2, Z3, Y3, X0)
	ADDQ $512, SI
	SUBQ $128, CX
	JMP  many

few:
	TESTQ CX, CX
	JLE   done
	VPXORD Z1, Z1, Z1
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z2
	VADDPS Z2, Z1, Z1
	ADDQ $64, SI
	SUBQ $16, CX
	JGT  each

last:
	FOLD(Z1, Y1, X1, Z2, Y2, X2, Z3, Y3, X0)

done:
	VMOVSD X0, ret+24(FP)
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   last
	TAIL
	JMP   next

#define SQUARES(off) \
	VMOVUPS off(SI), Z2   \
	VSUBPS  Z10, Z2, Z2   \
	VMULPS  Z2, Z2, Z2    \
	VADDPS  Z2, Z1, Z1

// func sumSquaresAVX512(x []float32, mean float32) float64
TEXT ·sumSquaresAVX512(SB), NOSPLIT, $0-40
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS mean+24(FP), Z10
	VPXORD Z0, Z0, Z0

many:
	CMPQ CX, $128
	JLT  few
	VPXORD Z1, Z1, Z1
	SQUARES(0)
	SQUARES(64)
	SQUARES(128)
	SQUARES(192)
	SQUARES(256)
	SQUARES(320)
	SQUARES(384)
	SQUARES(448)
	FOLD(Z1, Y1, X1, Z2, Y2, X2, Z3, Y3, X0)
	ADDQ $512, SI
	SUBQ $128, CX
	JMP  many

few:
	TESTQ CX, CX
	JLE   done
	VPXORD Z1, Z1, Z1
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z2
	VSUBPS.Z Z10, Z2, K1, Z2
	VMULPS Z2, Z2, Z2
	VADDPS Z2, Z1, Z1
	ADDQ $64, SI
	SUBQ $16, CX
	JGT  each

last:
	FOLD(Z1, Y1, X1, Z2, Y2, X2, Z3, Y3, X0)

done:
	VMOVSD X0, ret+32(FP)
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   last
	TAIL
	JMP   next

// func normaliseAVX512(x, gain, bias, y []float32, mean, inv float32, past bool)
TEXT ·normaliseAVX512(SB), NOSPLIT, $0-105
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ gain_base+24(FP), BX
	MOVQ bias_base+48(FP), DX
	MOVQ y_base+72(FP), DI
	VBROADCASTSS mean+96(FP), Z10
	VBROADCASTSS inv+100(FP), Z11
	MOVBLZX past+104(FP), R8
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VMOVUPS.Z (BX), K1, Z2
	VMOVUPS.Z (DX), K1, Z3
	VSUBPS Z10, Z1, Z1
	VMULPS Z11, Z1, Z1
	VMULPS Z2, Z1, Z1
	VADDPS Z3, Z1, Z1
	TESTL R8, R8
	JNZ   past
	VMOVUPS Z1, K1, (DI)
	PREFETCHT0 1024(DI)

on:
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $64, DX
	ADDQ $64, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next

past: // whole lines only
	VMOVNTPS Z1, (DI)
	JMP   on

// func normSumsAVX512(x, dy, gain []float32, mean, inv float32) (a, b float64)
TEXT ·normSumsAVX512(SB), NOSPLIT, $0-96
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ gain_base+48(FP), DX
	VBROADCASTSS mean+72(FP), Z10
	VBROADCASTSS inv+76(FP), Z11
	VPXORD Z0, Z0, Z0
	VPXORD Z5, Z5, Z5
	ALL

part:
	TESTQ CX, CX
	JLE   done
	VPXORD Z8, Z8, Z8
	VPXORD Z9, Z9, Z9
	MOVQ $8, R8

each:
	CMPQ CX, $16
	JLT  tail

next:
	PREFETCHT0 2048(SI)
	PREFETCHT0 2048(BX)
	VMOVUPS.Z (SI), K1, Z1
	VMOVUPS.Z (BX), K1, Z2
	VMOVUPS.Z (DX), K1, Z3
	VSUBPS Z10, Z1, Z1
	VMULPS.Z Z11, Z1, K1, Z1
	VMULPS Z3, Z2, Z2
	VADDPS Z2, Z8, Z8
	VMULPS Z1, Z2, Z2
	VADDPS Z2, Z9, Z9
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $64, DX
	SUBQ $16, CX
	JLE  last
	DECQ R8
	JNZ  each

last:
	FOLD(Z8, Y8, X8, Z1, Y1, X1, Z2, Y2, X0)
	FOLD(Z9, Y9, X9, Z1, Y1, X1, Z2, Y2, X5)
	JMP  part

done:
	VMOVSD X0, a+80(FP)
	VMOVSD X5, b+88(FP)
	VZEROUPPER
	RET

tail:
	TAIL
	JMP   next

// func normGradAVX512(x, dy, gain, dx []float32, mean, inv, ma, mb float32)
TEXT ·normGradAVX512(SB), NOSPLIT, $0-112
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ gain_base+48(FP), DX
	MOVQ dx_base+72(FP), DI
	VBROADCASTSS mean+96(FP), Z10
	VBROADCASTSS inv+100(FP), Z11
	VBROADCASTSS ma+104(FP), Z12
	VBROADCASTSS mb+108(FP), Z13
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VMOVUPS.Z (BX), K1, Z2
	VMOVUPS.Z (DX), K1, Z3
	VMOVUPS.Z (DI), K1, Z4
	VSUBPS Z10, Z1, Z1
	VMULPS Z11, Z1, Z1
	VMULPS Z3, Z2, Z2
	VSUBPS Z12, Z2, Z2
	VMULPS Z13, Z1, Z1
	VSUBPS Z1, Z2, Z2
	VMULPS Z11, Z2, Z2
	VADDPS Z2, Z4, Z4
	VMOVUPS Z4, K1, (DI)
	PREFETCHT0 2048(DI)
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $64, DX
	ADDQ $64, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next

// func addNormAVX512(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64)
TEXT ·addNormAVX512(SB), NOSPLIT, $0-144
	MOVQ x_base+8(FP), SI
	MOVQ ldx+32(FP), R12
	MOVQ dy_base+40(FP), BX
	MOVQ lddy+64(FP), R13
	MOVQ gain_base+96(FP), DI
	MOVQ gain_len+104(FP), CX
	MOVQ bias_base+120(FP), DX
	SHLQ $2, R12
	SHLQ $2, R13
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VPXORD Z6, Z6, Z6
	VPXORD Z8, Z8, Z8
	MOVQ SI, R8
	MOVQ BX, R9
	MOVQ stats_base+72(FP), R10
	MOVQ rows+0(FP), R11

row:
	VMOVUPS.Z (R8), K1, Z1
	VMOVUPS.Z (R9), K1, Z2
	VADDPS Z2, Z8, Z8
	VSUBPS.BCST (R10), Z1, Z1
	VMULPS.BCST 4(R10), Z1, Z1
	VMULPS Z2, Z1, Z1
	VADDPS Z1, Z6, Z6
	ADDQ R12, R8
	ADDQ R13, R9
	ADDQ $8, R10
	DECQ R11
	JNZ  row
	WIDE(Z6, Y6, Z1, Z2, Y2)
	WIDE(Z8, Y8, Z3, Z4, Y4)
	VMOVUPD.Z (DI), K1, Z5
	VADDPD Z1, Z5, Z5
	VMOVUPD Z5, K1, (DI)
	VMOVUPD.Z 64(DI), K2, Z5
	VADDPD Z2, Z5, Z5
	VMOVUPD Z5, K2, 64(DI)
	VMOVUPD.Z (DX), K1, Z5
	VADDPD Z3, Z5, Z5
	VMOVUPD Z5, K1, (DX)
	VMOVUPD.Z 64(DX), K2, Z5
	VADDPD Z4, Z5, Z5
	VMOVUPD Z5, K2, 64(DX)
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $128, DI
	ADDQ $128, DX
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next

// func maxAVX512(x []float32) float32
TEXT ·maxAVX512(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	SPLAT(0xff800000, Z0)
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VMAXPS Z0, Z1, K1, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JGT  each

done:
	VEXTRACTF64X4 $1, Z0, Y1
	VMAXPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next

// func expSumAVX512(shift float32, x, y []float32) float64
TEXT ·expSumAVX512(SB), NOSPLIT, $0-64
	VBROADCASTSS shift+0(FP), Z10
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI
	EXPS512
	VPXORD Z0, Z0, Z0
	ALL

part:
	TESTQ CX, CX
	JLE   done
	VPXORD Z6, Z6, Z6
	MOVQ $8, R8

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VSUBPS Z10, Z1, Z1
	EXP512(Z1)
	VMULPS.Z Z2, Z3, K1, Z3
	VMOVUPS Z3, K1, (DI)
	VADDPS Z3, Z6, Z6
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JLE  last
	DECQ R8
	JNZ  each

last:
	FOLD(Z6, Y6, X6, Z1, Y1, X1, Z2, Y2, X0)
	JMP  part

done:
	VMOVSD X0, ret+56(FP)
	VZEROUPPER
	RET

tail:
	TAIL
	JMP   next
