#include "textflag.h"
#include "neon_arm64.h"

// Rows of LayerNorm and softmax. Sums have sixteen lanes of float32, four in a register; no multiply-add is fused. Sums
// process a multiple of sixteen values, the other functions a multiple of four; Go processes the rest.

#define LANES(R) \
	FLDPQ (R), (F16, F17)   \
	FLDPQ 32(R), (F18, F19)

#define PUTLANES(R) \
	FSTPQ (F16, F17), (R)   \
	FSTPQ (F18, F19), 32(R)

#define SQUARES(x, l) \
	FSUB(x, x, 31)    \
	FMUL(x, x, x)     \
	FADD(l, l, x)

// TERMS reads four values of x, dy and gain; V14 and V15 are mean and inv.
#define TERMS(a, b) \
	FMOVQ.P 16(R0), F0  \
	FMOVQ.P 16(R1), F1  \
	FMOVQ.P 16(R3), F2  \
	FSUB(0, 0, 14)      \
	FMUL(0, 0, 15)      \
	FMUL(1, 1, 2)       \
	FADD(a, a, 1)       \
	FMUL(1, 1, 0)       \
	FADD(b, b, 1)

#define EXPONENTS(l) \
	FMOVQ.P 16(R0), F2  \
	FSUB(2, 2, 31)      \
	EXP(2)              \
	FMOVQ.P F2, 16(R1)  \
	FADD(l, l, 2)

// func sum16NEON(x []float32, l *lanes)
TEXT ·sum16NEON(SB), NOSPLIT, $0-32
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD l+24(FP), R3
	CBZ  R2, done
	LANES(R3)

each:
	FLDPQ.P 32(R0), (F0, F1)
	FLDPQ.P 32(R0), (F2, F3)
	FADD(16, 16, 0)
	FADD(17, 17, 1)
	FADD(18, 18, 2)
	FADD(19, 19, 3)
	SUBS    $16, R2
	BNE     each
	PUTLANES(R3)

done:
	RET

// func sumSquares16NEON(x []float32, mean float32, l *lanes)
TEXT ·sumSquares16NEON(SB), NOSPLIT, $0-40
	MOVD  x_base+0(FP), R0
	MOVD  x_len+8(FP), R2
	MOVWU mean+24(FP), R4
	MOVD  l+32(FP), R3
	CBZ   R2, done
	VDUP  R4, V31.S4
	LANES(R3)

each:
	FLDPQ.P 32(R0), (F0, F1)
	FLDPQ.P 32(R0), (F2, F3)
	SQUARES(0, 16)
	SQUARES(1, 17)
	SQUARES(2, 18)
	SQUARES(3, 19)
	SUBS    $16, R2
	BNE     each
	PUTLANES(R3)

done:
	RET

// func normSums16NEON(x, dy, gain []float32, mean, inv float32, a, b *lanes)
TEXT ·normSums16NEON(SB), NOSPLIT, $0-96
	MOVD  x_base+0(FP), R0
	MOVD  x_len+8(FP), R2
	MOVD  dy_base+24(FP), R1
	MOVD  gain_base+48(FP), R3
	MOVWU mean+72(FP), R4
	VDUP  R4, V14.S4
	MOVWU inv+76(FP), R4
	VDUP  R4, V15.S4
	MOVD  a+80(FP), R5
	MOVD  b+88(FP), R6
	CBZ   R2, done
	LANES(R5)
	FLDPQ (R6), (F24, F25)
	FLDPQ 32(R6), (F26, F27)

each:
	TERMS(16, 24)
	TERMS(17, 25)
	TERMS(18, 26)
	TERMS(19, 27)
	SUBS  $16, R2
	BNE   each
	PUTLANES(R5)
	FSTPQ (F24, F25), (R6)
	FSTPQ (F26, F27), 32(R6)

done:
	RET

// func normalise4NEON(x, gain, bias, y []float32, mean, inv float32)
TEXT ·normalise4NEON(SB), NOSPLIT, $0-104
	MOVD  x_base+0(FP), R0
	MOVD  x_len+8(FP), R2
	MOVD  gain_base+24(FP), R1
	MOVD  bias_base+48(FP), R3
	MOVD  y_base+72(FP), R5
	MOVWU mean+96(FP), R4
	VDUP  R4, V14.S4
	MOVWU inv+100(FP), R4
	VDUP  R4, V15.S4
	CBZ   R2, done

each:
	FMOVQ.P 16(R0), F0
	FMOVQ.P 16(R1), F1
	FMOVQ.P 16(R3), F2
	FSUB(0, 0, 14)
	FMUL(0, 0, 15)
	FMUL(0, 0, 1)
	FADD(0, 0, 2)
	FMOVQ.P F0, 16(R5)
	SUBS    $4, R2
	BNE     each

done:
	RET

// func normGrad4NEON(x, dy, gain, dx []float32, mean, inv, ma, mb float32)
TEXT ·normGrad4NEON(SB), NOSPLIT, $0-112
	MOVD  x_base+0(FP), R0
	MOVD  x_len+8(FP), R2
	MOVD  dy_base+24(FP), R1
	MOVD  gain_base+48(FP), R3
	MOVD  dx_base+72(FP), R5
	MOVWU mean+96(FP), R4
	VDUP  R4, V14.S4
	MOVWU inv+100(FP), R4
	VDUP  R4, V15.S4
	MOVWU ma+104(FP), R4
	VDUP  R4, V16.S4
	MOVWU mb+108(FP), R4
	VDUP  R4, V17.S4
	CBZ   R2, done

each:
	FMOVQ.P 16(R0), F0
	FMOVQ.P 16(R1), F1
	FMOVQ.P 16(R3), F2
	FMOVQ   (R5), F3
	FSUB(0, 0, 14)
	FMUL(0, 0, 15)
	FMUL(1, 1, 2)
	FSUB(1, 1, 16)
	FMUL(0, 0, 17)
	FSUB(1, 1, 0)
	FMUL(1, 1, 15)
	FADD(3, 3, 1)
	FMOVQ.P F3, 16(R5)
	SUBS    $4, R2
	BNE     each

done:
	RET

// func addNorm4NEON(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64)
TEXT ·addNorm4NEON(SB), NOSPLIT, $0-144
	MOVD x_base+8(FP), R0
	MOVD ldx+32(FP), R1
	MOVD dy_base+40(FP), R3
	MOVD lddy+64(FP), R4
	MOVD gain_base+96(FP), R5
	MOVD gain_len+104(FP), R2
	MOVD bias_base+120(FP), R6
	LSL  $2, R1
	LSL  $2, R4
	CBZ  R2, done

each:
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	MOVD R0, R7
	MOVD R3, R8
	MOVD stats_base+72(FP), R9
	MOVD rows+0(FP), R10

row:
	FMOVQ   (R7), F0
	FMOVQ   (R8), F1
	VLD1R.P 4(R9), [V14.S4]
	VLD1R.P 4(R9), [V15.S4]
	FADD(5, 5, 1)
	FSUB(0, 0, 14)
	FMUL(0, 0, 15)
	FMUL(0, 0, 1)
	FADD(4, 4, 0)
	ADD     R1, R7
	ADD     R4, R8
	SUBS    $1, R10
	BNE     row
	FLDPQ   (R5), (F16, F17)
	FLDPQ   (R6), (F18, F19)
	FCVTL(2, 4)
	FCVTL2(3, 4)
	FADD2(16, 16, 2)
	FADD2(17, 17, 3)
	FCVTL(2, 5)
	FCVTL2(3, 5)
	FADD2(18, 18, 2)
	FADD2(19, 19, 3)
	FSTPQ.P (F16, F17), 32(R5)
	FSTPQ.P (F18, F19), 32(R6)
	ADD     $16, R0
	ADD     $16, R3
	SUBS    $4, R2
	BNE     each

done:
	RET

// func max4NEON(x []float32, top *[4]float32)
TEXT ·max4NEON(SB), NOSPLIT, $0-32
	MOVD  x_base+0(FP), R0
	MOVD  x_len+8(FP), R2
	MOVD  top+24(FP), R3
	FMOVQ (R3), F0
	CBZ   R2, done

each:
	FMOVQ.P 16(R0), F1
	FCMGT(2, 1, 0)
	BIT(0, 1, 2)
	SUBS    $4, R2
	BNE     each
	FMOVQ F0, (R3)

done:
	RET

// func expSum16NEON(shift float32, x, y []float32, l *lanes)
TEXT ·expSum16NEON(SB), NOSPLIT, $0-64
	MOVWU shift+0(FP), R3
	VDUP  R3, V31.S4
	MOVD  x_base+8(FP), R0
	MOVD  x_len+16(FP), R2
	MOVD  y_base+32(FP), R1
	MOVD  l+56(FP), R4
	CBZ   R2, done
	EXPS(R3)
	FLDPQ (R4), (F4, F5)
	FLDPQ 32(R4), (F6, F7)

each:
	EXPONENTS(4)
	EXPONENTS(5)
	EXPONENTS(6)
	EXPONENTS(7)
	SUBS  $16, R2
	BNE   each
	FSTPQ (F4, F5), (R4)
	FSTPQ (F6, F7), 32(R4)

done:
	RET
