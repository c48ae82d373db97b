#include "textflag.h"
#include "neon_arm64.h"

// ELU of a multiple of four values; no multiply-add is fused.

// func elu4NEON(x, y []float32)
TEXT ·elu4NEON(SB), NOSPLIT, $0-48
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD y_base+24(FP), R1
	CBZ  R2, done
	EXPS(R3)
	CONST(0x37d00d01, R3, V4) // 1/40320
	CONST(0x39500d01, R3, V5) // 1/5040
	CONST(0x3ab60b61, R3, V6) // 1/720
	CONST(0x3c088889, R3, V7) // 1/120
	CONST(0x3d2aaaab, R3, V8) // 1/24
	CONST(0x3e2aaaab, R3, V9) // 1/6
	CONST(0xbeb33333, R3, V10) // -0.35

each:
	FMOVQ.P 16(R0), F11
	VORR    V11.B16, V11.B16, V12.B16
	EXP(12)
	FSUB(12, 12, 28)
	FMUL(13, 11, 4)
	FADD(13, 13, 5)
	FMUL(13, 13, 11)
	FADD(13, 13, 6)
	FMUL(13, 13, 11)
	FADD(13, 13, 7)
	FMUL(13, 13, 11)
	FADD(13, 13, 8)
	FMUL(13, 13, 11)
	FADD(13, 13, 9)
	FMUL(13, 13, 11)
	FADD(13, 13, 27)
	FMUL(13, 13, 11)
	FADD(13, 13, 28)
	FMUL(13, 13, 11)
	FCMGT(14, 11, 10)
	BIT(12, 13, 14)
	FCMGT0(14, 11)
	BIT(12, 11, 14)
	FMOVQ.P F12, 16(R1)
	SUBS    $4, R2
	BNE     each

done:
	RET

// func eluGrad4NEON(y, dy, dx []float32)
TEXT ·eluGrad4NEON(SB), NOSPLIT, $0-72
	MOVD y_base+0(FP), R0
	MOVD y_len+8(FP), R2
	MOVD dy_base+24(FP), R1
	MOVD dx_base+48(FP), R3
	CBZ  R2, done
	CONST(0x3f800000, R4, V3)

each:
	FMOVQ.P 16(R0), F0
	FMOVQ.P 16(R1), F1
	FADD(0, 0, 3)
	FMIN(0, 0, 3)
	FMUL(0, 0, 1)
	FMOVQ.P F0, 16(R3)
	SUBS    $4, R2
	BNE     each

done:
	RET
