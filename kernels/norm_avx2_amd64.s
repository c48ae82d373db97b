#include "textflag.h"
#include "exp_amd64.h"

// Rows of LayerNorm and softmax: vectors of 8, the last one under the mask Y15. Sums are float64 in sixteen lanes, four
// to a register, which plain Go adds in the same order; nothing is fused.

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

// FOLD adds the lanes of a, b, c and d, which are columns 0 to 3, 4 to 7 and so on modulo 16; x and x1 are a's and b's halves.
#define FOLD(a, b, c, d, x, x1) \
	VADDPD       c, a, a    \
	VADDPD       d, b, b    \
	VADDPD       b, a, a    \
	VEXTRACTF128 $1, a, x1  \
	VADDPD       x1, x, x   \
	VPERMILPD    $1, x, x1  \
	VADDSD       x1, x, x

// func sumAVX2(x []float32) float64
TEXT ·sumAVX2(SB), NOSPLIT, $0-32
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MASKS
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y4
	WIDE(Y4, X4, Y5, Y6, X6)
	VADDPD Y5, Y0, Y0
	VADDPD Y6, Y1, Y1
	SUBQ $8, CX
	JLE  done
	MASK
	VMASKMOVPS 32(SI), Y15, Y4
	WIDE(Y4, X4, Y5, Y6, X6)
	VADDPD Y5, Y2, Y2
	VADDPD Y6, Y3, Y3
	SUBQ $8, CX
	ADDQ $64, SI
	JMP  each

done:
	FOLD(Y0, Y1, Y2, Y3, X0, X1)
	VMOVSD X0, ret+24(FP)
	VZEROUPPER
	RET

// func sumSquaresAVX2(x []float32, mean float64) float64
TEXT ·sumSquaresAVX2(SB), NOSPLIT, $0-40
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSD mean+24(FP), Y10
	MASKS
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y4
	WIDE(Y4, X4, Y5, Y6, X6)
	VPMOVSXDQ X15, Y7
	VEXTRACTF128 $1, Y15, X8
	VPMOVSXDQ X8, Y8
	VSUBPD Y10, Y5, Y5
	VANDPD Y7, Y5, Y5
	VMULPD Y5, Y5, Y5
	VADDPD Y5, Y0, Y0
	VSUBPD Y10, Y6, Y6
	VANDPD Y8, Y6, Y6
	VMULPD Y6, Y6, Y6
	VADDPD Y6, Y1, Y1
	SUBQ $8, CX
	JLE  done
	MASK
	VMASKMOVPS 32(SI), Y15, Y4
	WIDE(Y4, X4, Y5, Y6, X6)
	VPMOVSXDQ X15, Y7
	VEXTRACTF128 $1, Y15, X8
	VPMOVSXDQ X8, Y8
	VSUBPD Y10, Y5, Y5
	VANDPD Y7, Y5, Y5
	VMULPD Y5, Y5, Y5
	VADDPD Y5, Y2, Y2
	VSUBPD Y10, Y6, Y6
	VANDPD Y8, Y6, Y6
	VMULPD Y6, Y6, Y6
	VADDPD Y6, Y3, Y3
	SUBQ $8, CX
	ADDQ $64, SI
	JMP  each

done:
	FOLD(Y0, Y1, Y2, Y3, X0, X1)
	VMOVSD X0, ret+32(FP)
	VZEROUPPER
	RET

// func normaliseAVX2(x, gain, bias, y []float32, mean, inv float32)
TEXT ·normaliseAVX2(SB), NOSPLIT, $0-104
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ gain_base+24(FP), BX
	MOVQ bias_base+48(FP), DX
	MOVQ y_base+72(FP), DI
	VBROADCASTSS mean+96(FP), Y10
	VBROADCASTSS inv+100(FP), Y11
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
	VMASKMOVPS Y1, Y15, (DI)
	ADDQ $32, SI
	ADDQ $32, BX
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  each

done:
	VZEROUPPER
	RET

// func normSumsAVX2(x, dy, gain []float32, mean, inv float32) (a, b float64)
TEXT ·normSumsAVX2(SB), NOSPLIT, $0-96
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ gain_base+48(FP), DX
	VBROADCASTSS mean+72(FP), Y10
	VBROADCASTSS inv+76(FP), Y11
	MASKS
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y8
	VMASKMOVPS (BX), Y15, Y9
	VMASKMOVPS (DX), Y15, Y12
	VSUBPS Y10, Y8, Y8
	VMULPS Y11, Y8, Y8
	VANDPS Y15, Y8, Y8
	VMULPS Y12, Y9, Y9
	WIDE(Y9, X9, Y12, Y13, X13)
	VADDPD Y12, Y0, Y0
	VADDPD Y13, Y1, Y1
	WIDE(Y8, X8, Y9, Y14, X14)
	VMULPD Y12, Y9, Y9
	VADDPD Y9, Y4, Y4
	VMULPD Y13, Y14, Y14
	VADDPD Y14, Y5, Y5
	SUBQ $8, CX
	JLE  done
	MASK
	VMASKMOVPS 32(SI), Y15, Y8
	VMASKMOVPS 32(BX), Y15, Y9
	VMASKMOVPS 32(DX), Y15, Y12
	VSUBPS Y10, Y8, Y8
	VMULPS Y11, Y8, Y8
	VANDPS Y15, Y8, Y8
	VMULPS Y12, Y9, Y9
	WIDE(Y9, X9, Y12, Y13, X13)
	VADDPD Y12, Y2, Y2
	VADDPD Y13, Y3, Y3
	WIDE(Y8, X8, Y9, Y14, X14)
	VMULPD Y12, Y9, Y9
	VADDPD Y9, Y6, Y6
	VMULPD Y13, Y14, Y14
	VADDPD Y14, Y7, Y7
	SUBQ $8, CX
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $64, DX
	JMP  each

done:
	FOLD(Y0, Y1, Y2, Y3, X0, X1)
	VMOVSD X0, a+80(FP)
	FOLD(Y4, Y5, Y6, Y7, X4, X5)
	VMOVSD X4, b+88(FP)
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
	VMASKMOVPD (DI), Y13, Y6
	VMASKMOVPD 32(DI), Y14, Y7
	VMASKMOVPD (DX), Y13, Y8
	VMASKMOVPD 32(DX), Y14, Y9
	MOVQ SI, R8
	MOVQ BX, R9
	MOVQ stats_base+72(FP), R10
	MOVQ rows+0(FP), R11

row:
	VMASKMOVPS (R8), Y15, Y1
	VMASKMOVPS (R9), Y15, Y2
	WIDE(Y2, X2, Y3, Y4, X4)
	VADDPD Y3, Y8, Y8
	VADDPD Y4, Y9, Y9
	VBROADCASTSS (R10), Y3
	VSUBPS Y3, Y1, Y1
	VBROADCASTSS 4(R10), Y3
	VMULPS Y3, Y1, Y1
	VMULPS Y2, Y1, Y1
	WIDE(Y1, X1, Y3, Y4, X4)
	VADDPD Y3, Y6, Y6
	VADDPD Y4, Y7, Y7
	ADDQ R12, R8
	ADDQ R14, R9
	ADDQ $8, R10
	DECQ R11
	JNZ  row
	VMASKMOVPD Y6, Y13, (DI)
	VMASKMOVPD Y7, Y14, 32(DI)
	VMASKMOVPD Y8, Y13, (DX)
	VMASKMOVPD Y9, Y14, 32(DX)
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
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y4
	VSUBPS Y10, Y4, Y4
	EXP(R14, Y4, Y5, Y6, Y7)
	VANDPS Y15, Y4, Y4
	VMASKMOVPS Y4, Y15, (DI)
	WIDE(Y4, X4, Y5, Y6, X6)
	VADDPD Y5, Y0, Y0
	VADDPD Y6, Y1, Y1
	SUBQ $8, CX
	JLE  done
	MASK
	VMASKMOVPS 32(SI), Y15, Y4
	VSUBPS Y10, Y4, Y4
	EXP(R14, Y4, Y5, Y6, Y7)
	VANDPS Y15, Y4, Y4
	VMASKMOVPS Y4, Y15, 32(DI)
	WIDE(Y4, X4, Y5, Y6, X6)
	VADDPD Y5, Y2, Y2
	VADDPD Y6, Y3, Y3
	SUBQ $8, CX
	ADDQ $64, SI
	ADDQ $64, DI
	JMP  each

done:
	FOLD(Y0, Y1, Y2, Y3, X0, X1)
	VMOVSD X0, ret+56(FP)
	VZEROUPPER
	RET
