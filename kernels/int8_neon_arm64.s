#include "textflag.h"
#include "neon_arm64.h"

// Conversions to bytes and back, of a multiple of sixteen values. Go processes the rest.

// func maxAbs16NEON(x []float32) float32
TEXT ·maxAbs16NEON(SB), NOSPLIT, $0-28
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	VEOR V0.B16, V0.B16, V0.B16
	MOVD $0x7fffffff, R3
	VDUP R3, V5.S4
	CBZ  R2, done

each:
	FLDPQ.P 32(R0), (F1, F2)
	FLDPQ.P 32(R0), (F3, F4)
	VAND    V5.B16, V1.B16, V1.B16
	VAND    V5.B16, V2.B16, V2.B16
	VAND    V5.B16, V3.B16, V3.B16
	VAND    V5.B16, V4.B16, V4.B16
	UMAX(1, 1, 2)
	UMAX(3, 3, 4)
	UMAX(1, 1, 3)
	UMAX(0, 0, 1)
	SUBS    $16, R2
	BNE     each

done:
	UMAXV(0, 0)
	FMOVS F0, ret+24(FP)
	RET

// func toInt8x16NEON(up float32, x []float32, y []int8)
TEXT ·toInt8x16NEON(SB), NOSPLIT, $0-56
	MOVWU up+0(FP), R3
	VDUP  R3, V5.S4
	MOVD  x_base+8(FP), R0
	MOVD  x_len+16(FP), R2
	MOVD  y_base+32(FP), R1
	CBZ   R2, done

each:
	FLDPQ.P 32(R0), (F0, F1)
	FLDPQ.P 32(R0), (F2, F3)
	FMUL(0, 0, 5)
	FMUL(1, 1, 5)
	FMUL(2, 2, 5)
	FMUL(3, 3, 5)
	FCVTNS(0, 0)
	FCVTNS(1, 1)
	FCVTNS(2, 2)
	FCVTNS(3, 3)
	XTN(0, 0)
	XTN2(0, 1)
	XTN(2, 2)
	XTN2(2, 3)
	XTNB(0, 0)
	XTNB2(0, 2)
	FMOVQ.P F0, 16(R1)
	SUBS    $16, R2
	BNE     each

done:
	RET

// func fromInt8x16NEON(scale float32, x []int8, y []float32)
TEXT ·fromInt8x16NEON(SB), NOSPLIT, $0-56
	MOVWU scale+0(FP), R3
	VDUP  R3, V7.S4
	MOVD  x_base+8(FP), R0
	MOVD  x_len+16(FP), R2
	MOVD  y_base+32(FP), R1
	CBZ   R2, done

each:
	FMOVQ.P 16(R0), F0
	SXTLB(1, 0)
	SXTLB2(2, 0)
	SXTL(3, 1)
	SXTL2(4, 1)
	SXTL(5, 2)
	SXTL2(6, 2)
	SCVTF(3, 3)
	SCVTF(4, 4)
	SCVTF(5, 5)
	SCVTF(6, 6)
	FMUL(3, 3, 7)
	FMUL(4, 4, 7)
	FMUL(5, 5, 7)
	FMUL(6, 6, 7)
	FSTPQ.P (F3, F4), 32(R1)
	FSTPQ.P (F5, F6), 32(R1)
	SUBS    $16, R2
	BNE     each

done:
	RET
