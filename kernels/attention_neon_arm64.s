#include "textflag.h"
#include "neon_arm64.h"

// Edges of an attention, by heads: a multiple of sixteen values. Nothing is fused; what the lanes mean is said in
// attention_generic.go.

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

// WEIGHTS does four values; V(p) and V(slopes) are their sums.
#define WEIGHTS(p, slopes) \
	FMOVQ.P 16(R1), F2  \
	FMOVQ.P 16(R3), F3  \
	FMOVQ.P 16(R4), F14 \
	FCMLT0(13, 2)       \
	VORR    V28.B16, V28.B16, V12.B16 \
	BIT(12, 30, 13)     \
	FSUB(2, 2, 3)       \
	EXP(2)              \
	FADD(p, p, 2)       \
	FMUL(3, 2, 12)      \
	FMUL(3, 3, 14)      \
	FADD(slopes, slopes, 3) \
	CBZ     R6, 5(PC)   \
	FMOVQ.P 16(R6), F3  \
	FMUL(2, 2, 3)       \
	FMOVQ.P F2, 16(R7)  \
	B       2(PC)       \
	FMOVQ.P F2, 16(R7)  \
	FMUL(2, 2, 12)      \
	FMOVQ.P F2, 16(R8)

// func weights16NEON(n int, q, shift, factor *float32, step int, keep, w0, w1 *float32, slope float32, sums *[2]headLanes)
TEXT ·weights16NEON(SB), NOSPLIT, $0-80
	MOVD  n+0(FP), R2
	MOVD  q+8(FP), R1
	MOVD  shift+16(FP), R3
	MOVD  factor+24(FP), R4
	MOVD  step+32(FP), R5
	MOVD  keep+40(FP), R6
	MOVD  w0+48(FP), R7
	MOVD  w1+56(FP), R8
	MOVWU slope+64(FP), R9
	VDUP  R9, V30.S4
	MOVD  sums+72(FP), R10
	CBZ   R2, done
	SUB   $64, R5 // the pointers have moved on by 64 already
	EXPS(R9)
	FLDPQ (R10), (F4, F5)
	FLDPQ 32(R10), (F6, F7)
	FLDPQ 64(R10), (F8, F9)
	FLDPQ 96(R10), (F10, F11)

each:
	WEIGHTS(4, 8)
	WEIGHTS(5, 9)
	WEIGHTS(6, 10)
	WEIGHTS(7, 11)
	ADD   R5, R3
	ADD   R5, R4
	SUBS  $16, R2
	BNE   each
	FSTPQ (F4, F5), (R10)
	FSTPQ (F6, F7), 32(R10)
	FSTPQ (F8, F9), 64(R10)
	FSTPQ (F10, F11), 96(R10)

done:
	RET
