#include "textflag.h"
#include "neon_arm64.h"

// Edges of an attention, by heads: a multiple of sixteen values. No multiply-add is fused;
// attention_generic.go explains the lanes.

// LOGITS makes LeakyReLU(V(q) + V(own)) and raises V(top) to it, unless it is NaN. V30 is the slope.
#define LOGITS(q, own, top) \
	FADD(q, q, own)     \
	FMUL(12, q, 30)     \
	FCMLT0(13, q)       \
	BIT(q, 12, 13)      \
	FCMGT(13, q, top)   \
	BIT(top, q, 13)

// func logits16NEON(q []float32, slope float32, own, top *headLanes)
TEXT ·logits16NEON(SB), NOSPLIT, $0-48
	MOVD  q_base+0(FP), R0
	MOVD  q_len+8(FP), R2
	MOVWU slope+24(FP), R3
	VDUP  R3, V30.S4
	MOVD  own+32(FP), R4
	MOVD  top+40(FP), R5
	CBZ   R2, done
	FLDPQ (R4), (F16, F17)
	FLDPQ 32(R4), (F18, F19)
	FLDPQ (R5), (F20, F21)
	FLDPQ 32(R5), (F22, F23)

each:
	FLDPQ   (R0), (F0, F1)
	FLDPQ   32(R0), (F2, F3)
	LOGITS(0, 16, 20)
	LOGITS(1, 17, 21)
	LOGITS(2, 18, 22)
	LOGITS(3, 19, 23)
	FSTPQ.P (F0, F1), 32(R0)
	FSTPQ.P (F2, F3), 32(R0)
	SUBS    $16, R2
	BNE     each
	FSTPQ (F20, F21), (R5)
	FSTPQ (F22, F23), 32(R5)

done:
	RET

// WEIGHTS processes four values; V(p) is their sum.
#define WEIGHTS(p) \
	FMOVQ.P 16(R1), F2  \
	FMOVQ.P 16(R3), F3  \
	FCMLT0(13, 2)       \
	VORR    V28.B16, V28.B16, V12.B16 \
	BIT(12, 30, 13)     \
	FSUB(2, 2, 3)       \
	EXP(2)              \
	FADD(p, p, 2)       \
	FMUL(3, 2, 12)      \
	FMOVQ.P F3, 16(R8)  \
	CBZ     R6, 3(PC)   \
	FMOVQ.P 16(R6), F3  \
	FMUL(2, 2, 3)       \
	FMOVQ.P F2, 16(R7)

// func weights16NEON(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes)
TEXT ·weights16NEON(SB), NOSPLIT, $0-72
	MOVD  n+0(FP), R2
	MOVD  q+8(FP), R1
	MOVD  shift+16(FP), R3
	MOVD  step+24(FP), R5
	MOVD  keep+32(FP), R6
	MOVD  w+40(FP), R7
	MOVD  slopes+48(FP), R8
	MOVWU slope+56(FP), R9
	VDUP  R9, V30.S4
	MOVD  sum+64(FP), R10
	CBZ   R2, done
	SUB   $64, R5 // the pointer has moved on by 64 already
	EXPS(R9)
	FLDPQ (R10), (F4, F5)
	FLDPQ 32(R10), (F6, F7)

each:
	WEIGHTS(4)
	WEIGHTS(5)
	WEIGHTS(6)
	WEIGHTS(7)
	ADD   R5, R3
	SUBS  $16, R2
	BNE   each
	FSTPQ (F4, F5), (R10)
	FSTPQ (F6, F7), 32(R10)

done:
	RET

// GRADS processes four values; V(sum) is their sum.
#define GRADS(sum) \
	FMOVQ.P 16(R4), F0 \
	CBZ     R3, 3(PC)  \
	FMOVQ.P 16(R3), F1 \
	FMUL(0, 0, 1)      \
	FMOVQ.P 16(R5), F1 \
	FSUB(0, 0, 1)      \
	FMOVQ.P 16(R1), F1 \
	FMUL(0, 0, 1)      \
	FADD(sum, sum, 0)  \
	FMOVQ.P F0, 16(R6)

// func logitGrads16NEON(n int, slopes, keep, dots, base, out *float32, sum *headLanes)
TEXT ·logitGrads16NEON(SB), NOSPLIT, $0-56
	MOVD n+0(FP), R2
	MOVD slopes+8(FP), R1
	MOVD keep+16(FP), R3
	MOVD dots+24(FP), R4
	MOVD base+32(FP), R5
	MOVD out+40(FP), R6
	MOVD sum+48(FP), R10
	CBZ  R2, done
	FLDPQ (R10), (F4, F5)
	FLDPQ 32(R10), (F6, F7)

each:
	GRADS(4)
	GRADS(5)
	GRADS(6)
	GRADS(7)
	SUBS  $16, R2
	BNE   each
	FSTPQ (F4, F5), (R10)
	FSTPQ (F6, F7), 32(R10)

done:
	RET

// Products of two rows by heads. R2 points at the edge's column, R12 at the row's end, R3 at the output; R5 and R6
// are X and its stride, R7 and R8 the other row's. A head has R10 whole vectors and R11 remaining values.

// func dotsNEON(rows int, rowPtr, col, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, z unsafe.Pointer, ldz, heads, dim int)
TEXT ·dotsNEON(SB), NOSPLIT, $0-88
	MOVD rows+0(FP), R0
	MOVD rowPtr+8(FP), R1
	MOVD col+16(FP), R2
	MOVD dots+24(FP), R3
	MOVD step+32(FP), R4
	MOVD x+40(FP), R5
	MOVD ldx+48(FP), R6
	MOVD z+56(FP), R7
	MOVD ldz+64(FP), R8
	MOVD heads+72(FP), R9
	MOVD dim+80(FP), R10
	LSL  $2, R6
	LSL  $2, R8
	AND  $3, R10, R11
	LSR  $2, R10
	MOVD R2, R20

row:
	ADD  $8, R1
	MOVD (R1), R12
	ADD  R12<<2, R20, R12

more:
	CMP  R12, R2
	BHS  next
	MOVW.P 4(R2), R13
	MADD R13, R5, R6, R13
	MOVD R7, R14
	MOVD R3, R15
	MOVD R9, R16

head:
	VEOR V0.B16, V0.B16, V0.B16
	MOVD R10, R17
	CBZ  R17, fold

whole:
	FMOVQ.P 16(R13), F1
	FMOVQ.P 16(R14), F2
	FMLA(0, 1, 2)
	SUBS    $1, R17
	BNE     whole

fold:
	FADDP(0, 0, 0)
	FADDP(0, 0, 0)
	MOVD R11, R17
	CBZ  R17, put

left:
	FMOVS.P 4(R13), F1
	FMOVS.P 4(R14), F2
	FMADDS  F1, F0, F2, F0
	SUBS    $1, R17
	BNE     left

put:
	FMOVS.P F0, 4(R15)
	SUBS    $1, R16
	BNE     head
	ADD     R4, R3
	B       more

next:
	ADD  R8, R7
	SUBS $1, R0
	BNE  row
	RET
