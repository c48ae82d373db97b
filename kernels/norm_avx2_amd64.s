#include "textflag.h"
#include "exp_amd64.h"

// Rows of LayerNorm and softmax: vectors of 8, the last one under the mask Y15. Sums are
// taken in sixteen lanes of float32 over 128 columns, and of these in float64, in the order of plain Go; nothing is fused.
// What rows further on read is fetched ahead: a row is gone through several times, and memory would rest meanwhile.

DATA masks<>+0(SB)/8, $-1
DATA masks<>+8(SB)/8, $-1
DATA masks<>+16(SB)/8, $-1
DATA masks<>+24(SB)/8, $-1
DATA masks<>+32(SB)/8, $0
DATA masks<>+40(SB)/8, $0
DATA masks<>+48(SB)/8, $0
DATA masks<>+56(SB)/8, $0
GLOBL masks<>(SB), RODATA|NOPTR, $64

// MASK makes Y15 the mask of the next CX values, or of eight; R13 points at masks, R15 is 0.
#define MASK \
	MOVQ    $8, AX            \
	SUBQ    CX, AX            \
	CMOVQLT R15, AX           \
	VMOVUPS (R13)(AX*4), Y15

#define MASKS \
	LEAQ masks<>(SB), R13 \
	XORQ R15, R15

// WIDE makes y0 and y1 the float64 of y, whose lower half is x.
#define WIDE(y, x, y0, y1, x1) \
	VEXTRACTF128 $1, y, x1 \
	VCVTPS2PD    x, y0     \
	VCVTPS2PD    x1, y1

// FOLD adds up the lanes of a and b, columns 0 to 7 and 8 to 15 modulo 16, of which xa and xb are the lower parts, and adds
// what they make to sum. The others are scratch; x2 and x3 are the lower parts of y2 and y3.
#define FOLD(a, xa, b, xb, y0, x0, y1, x1, y2, x2, y3, x3, sum) \
	WIDE(a, xa, y0, y1, x1)  \
	WIDE(b, xb, y2, y3, x3)  \
	VADDPD       y2, y0, y0  \
	VADDPD       y3, y1, y1  \
	VADDPD       y1, y0, y0  \
	VEXTRACTF128 $1, y0, x1  \
	VADDPD       x1, x0, x0  \
	VPERMILPD    $1, x0, x1  \
	VADDSD       x1, x0, x0  \
	VADDSD       x0, sum, sum

// func sumAVX2(x []float32) float64
TEXT ·sumAVX2(SB), NOSPLIT, $0-32
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MASKS
	VXORPS X0, X0, X0

part:
	TESTQ CX, CX
	JLE   done
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	MOVQ $8, R8

each:
	MASK
	PREFETCHT0 2048(SI)
	VMASKMOVPS (SI), Y15, Y4
	VADDPS Y4, Y1, Y1
	SUBQ $8, CX
	JLE  last
	MASK
	VMASKMOVPS 32(SI), Y15, Y4
	VADDPS Y4, Y2, Y2
	ADDQ $64, SI
	SUBQ $8, CX
	JLE  last
	DECQ R8
	JNZ  each

last:
	FOLD(Y1, X1, Y2, X2, Y4, X4, Y5, X5, Y6, X6, Y7, X7, X0)
	JMP  part

done:
	VMOVSD X0, ret+24(FP)
	VZEROUPPER
	RET

// func sumSquaresAVX2(x []float32, mean float32) float64
TEXT ·sumSquaresAVX2(SB), NOSPLIT, $0-40
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS mean+24(FP), Y10
	MASKS
	VXORPS X0, X0, X0

part:
	TESTQ CX, CX
	JLE   done
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	MOVQ $8, R8

each:
	MASK
	VMASKMOVPS (SI), Y15, Y4
	VSUBPS Y10, Y4, Y4
	VANDPS Y15, Y4, Y4
	VMULPS Y4, Y4, Y4
	VADDPS Y4, Y1, Y1
	SUBQ $8, CX
	JLE  last
	MASK
	VMASKMOVPS 32(SI), Y15, Y4
	VSUBPS Y10, Y4, Y4
	VANDPS Y15, Y4, Y4
	VMULPS Y4, Y4, Y4
	VADDPS Y4, Y2, Y2
	ADDQ $64, SI
	SUBQ $8, CX
	JLE  last
	DECQ R8
	JNZ  each

last:
	FOLD(Y1, X1, Y2, X2, Y4, X4, Y5, X5, Y6, X6, Y7, X7, X0)
	JMP  part

done:
	VMOVSD X0, ret+32(FP)
	VZEROUPPER
	RET

// func normaliseAVX2(x, gain, bias, y []float32, mean, inv float32, past bool)
TEXT ·normaliseAVX2(SB), NOSPLIT, $0-105
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ gain_base+24(FP), BX
	MOVQ bias_base+48(FP), DX
	MOVQ y_base+72(FP), DI
	VBROADCASTSS mean+96(FP), Y10
	VBROADCASTSS inv+100(FP), Y11
	MOVBLZX past+104(FP), R8
	MASKS

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y1
	VMASKMOVPS (BX), Y15, Y2
	VMASKMOVPS (DX), Y15, Y3
	VSUBPS Y10, Y1, Y1
	VMULPS Y11, Y1, Y1
	VMULPS Y2, Y1, Y1
	VADDPS Y3, Y1, Y1
	TESTL R8, R8
	JNZ   past
	VMASKMOVPS Y1, Y15, (DI)
	PREFETCHT0 1024(DI)

on:
	ADDQ $32, SI
	ADDQ $32, BX
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  each

done:
	VZEROUPPER
	RET

past: // whole lines only
	VMOVNTPS Y1, (DI)
	JMP   on

// TERMS reads eight values of x, dy and gain and adds to a and b.
#define TERMS(off, a, b) \
	VMASKMOVPS off(SI), Y15, Y8 \
	VMASKMOVPS off(BX), Y15, Y9 \
	VMASKMOVPS off(DX), Y15, Y12 \
	VSUBPS Y10, Y8, Y8  \
	VMULPS Y11, Y8, Y8  \
	VANDPS Y15, Y8, Y8  \
	VMULPS Y12, Y9, Y9  \
	VADDPS Y9, a, a     \
	VMULPS Y8, Y9, Y9   \
	VADDPS Y9, b, b

// func normSumsAVX2(x, dy, gain []float32, mean, inv float32) (a, b float64)
TEXT ·normSumsAVX2(SB), NOSPLIT, $0-96
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ gain_base+48(FP), DX
	VBROADCASTSS mean+72(FP), Y10
	VBROADCASTSS inv+76(FP), Y11
	MASKS
	VXORPS X0, X0, X0
	VXORPS X1, X1, X1

part:
	TESTQ CX, CX
	JLE   done
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	MOVQ $8, R8

each:
	MASK
	PREFETCHT0 2048(SI)
	PREFETCHT0 2048(BX)
	TERMS(0, Y2, Y4)
	SUBQ $8, CX
	JLE  last
	MASK
	TERMS(32, Y3, Y5)
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $64, DX
	SUBQ $8, CX
	JLE  last
	DECQ R8
	JNZ  each

last:
	FOLD(Y2, X2, Y3, X3, Y6, X6, Y7, X7, Y8, X8, Y9, X9, X0)
	FOLD(Y4, X4, Y5, X5, Y6, X6, Y7, X7, Y8, X8, Y9, X9, X1)
	JMP  part

done:
	VMOVSD X0, a+80(FP)
	VMOVSD X1, b+88(FP)
	VZEROUPPER
	RET

// func normGradAVX2(x, dy, gain, dx []float32, mean, inv, ma, mb float32)
TEXT ·normGradAVX2(SB), NOSPLIT, $0-112
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ gain_base+48(FP), DX
	MOVQ dx_base+72(FP), DI
	VBROADCASTSS mean+96(FP), Y10
	VBROADCASTSS inv+100(FP), Y11
	VBROADCASTSS ma+104(FP), Y12
	VBROADCASTSS mb+108(FP), Y13
	MASKS

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y1
	VMASKMOVPS (BX), Y15, Y2
	VMASKMOVPS (DX), Y15, Y3
	VMASKMOVPS (DI), Y15, Y4
	VSUBPS Y10, Y1, Y1
	VMULPS Y11, Y1, Y1
	VMULPS Y3, Y2, Y2
	VSUBPS Y12, Y2, Y2
	VMULPS Y13, Y1, Y1
	VSUBPS Y1, Y2, Y2
	VMULPS Y11, Y2, Y2
	VADDPS Y2, Y4, Y4
	VMASKMOVPS Y4, Y15, (DI)
	PREFETCHT0 2048(DI)
	ADDQ $32, SI
	ADDQ $32, BX
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  each

done:
	VZEROUPPER
	RET

// func addNormAVX2(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64)
TEXT ·addNormAVX2(SB), NOSPLIT, $0-144
	MOVQ x_base+8(FP), SI
	MOVQ ldx+32(FP), R12
	MOVQ dy_base+40(FP), BX
	MOVQ lddy+64(FP), R14
	MOVQ gain_base+96(FP), DI
	MOVQ gain_len+104(FP), CX
	MOVQ bias_base+120(FP), DX
	SHLQ $2, R12
	SHLQ $2, R14
	MASKS

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VPMOVSXDQ X15, Y13
	VEXTRACTF128 $1, Y15, X14
	VPMOVSXDQ X14, Y14
	VXORPS Y6, Y6, Y6
	VXORPS Y8, Y8, Y8
	MOVQ SI, R8
	MOVQ BX, R9
	MOVQ stats_base+72(FP), R10
	MOVQ rows+0(FP), R11

row:
	VMASKMOVPS (R8), Y15, Y1
	VMASKMOVPS (R9), Y15, Y2
	VADDPS Y2, Y8, Y8
	VBROADCASTSS (R10), Y3
	VSUBPS Y3, Y1, Y1
	VBROADCASTSS 4(R10), Y3
	VMULPS Y3, Y1, Y1
	VMULPS Y2, Y1, Y1
	VADDPS Y1, Y6, Y6
	ADDQ R12, R8
	ADDQ R14, R9
	ADDQ $8, R10
	DECQ R11
	JNZ  row
	WIDE(Y6, X6, Y1, Y2, X2)
	WIDE(Y8, X8, Y3, Y4, X4)
	VMASKMOVPD (DI), Y13, Y5
	VADDPD Y1, Y5, Y5
	VMASKMOVPD Y5, Y13, (DI)
	VMASKMOVPD 32(DI), Y14, Y5
	VADDPD Y2, Y5, Y5
	VMASKMOVPD Y5, Y14, 32(DI)
	VMASKMOVPD (DX), Y13, Y5
	VADDPD Y3, Y5, Y5
	VMASKMOVPD Y5, Y13, (DX)
	VMASKMOVPD 32(DX), Y14, Y5
	VADDPD Y4, Y5, Y5
	VMASKMOVPD Y5, Y14, 32(DX)
	ADDQ $32, SI
	ADDQ $32, BX
	ADDQ $64, DI
	ADDQ $64, DX
	SUBQ $8, CX
	JMP  each

done:
	VZEROUPPER
	RET

// func maxAVX2(x []float32) float32
TEXT ·maxAVX2(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MASKS
	MOVL $0xff800000, AX
	VMOVD AX, X0
	VBROADCASTSS X0, Y0

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y1
	VMAXPS Y0, Y1, Y1 // NaN is the first operand: it is not taken
	VBLENDVPS Y15, Y1, Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JMP  each

done:
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func expSumAVX2(shift float32, x, y []float32) float64
TEXT ·expSumAVX2(SB), NOSPLIT, $0-64
	VBROADCASTSS shift+0(FP), Y10
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI
	LEAQ exps<>(SB), R14
	MASKS
	VXORPS X0, X0, X0

part:
	TESTQ CX, CX
	JLE   done
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	MOVQ $8, R8

each:
	MASK
	VMASKMOVPS (SI), Y15, Y4
	VSUBPS Y10, Y4, Y4
	EXP(R14, Y4, Y5, Y6, Y7)
	VANDPS Y15, Y4, Y4
	VMASKMOVPS Y4, Y15, (DI)
	VADDPS Y4, Y1, Y1
	SUBQ $8, CX
	JLE  last
	MASK
	VMASKMOVPS 32(SI), Y15, Y4
	VSUBPS Y10, Y4, Y4
	EXP(R14, Y4, Y5, Y6, Y7)
	VANDPS Y15, Y4, Y4
	VMASKMOVPS Y4, Y15, 32(DI)
	VADDPS Y4, Y2, Y2
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JLE  last
	DECQ R8
	JNZ  each

last:
	FOLD(Y1, X1, Y2, X2, Y4, X4, Y5, X5, Y6, X6, Y7, X7, X0)
	JMP  part

done:
	VMOVSD X0, ret+56(FP)
	VZEROUPPER
	RET
