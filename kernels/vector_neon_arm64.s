#include "textflag.h"
#include "neon_arm64.h"

// Loops over slices whose length is a multiple of 4: sixteen values at a time, then four. Go processes the rest.

// INTO is y = OP(y, x) with x at R0, y at R1 and R2 values left. If OP needs a factor, it is in V31.
#define INTO(OP) \
many:                      \
	SUBS  $16, R2          \
	BLT   few              \
	FLDPQ.P 32(R0), (F0, F1) \
	FLDPQ.P 32(R0), (F2, F3) \
	FLDPQ (R1), (F4, F5)   \
	FLDPQ 32(R1), (F6, F7) \
	OP(4, 0)               \
	OP(5, 1)               \
	OP(6, 2)               \
	OP(7, 3)               \
	FSTPQ.P (F4, F5), 32(R1) \
	FSTPQ.P (F6, F7), 32(R1) \
	B     many             \
few:                       \
	ADDS  $16, R2          \
	BEQ   done             \
each:                      \
	FMOVQ.P 16(R0), F0     \
	FMOVQ (R1), F4         \
	OP(4, 0)               \
	FMOVQ.P F4, 16(R1)     \
	SUBS  $4, R2           \
	BNE   each             \
done:                      \
	RET

#define AXPY(y, x) \
	FMUL(x, x, 31) \
	FADD(y, y, x)

#define PLUS(y, x)  FADD(y, y, x)
#define TIMES(y, x) FMUL(y, y, x)
#define BY(y, x)    FMUL(y, x, 31)

// CLIP keeps −0 and NaN, as plain Go does.
#define CLIP(y, x) \
	FCMLT0(y, x) \
	BIC(y, x, y)

// func axpy4NEON(a float32, x, y []float32)
TEXT ·axpy4NEON(SB), NOSPLIT, $0-56
	MOVWU a+0(FP), R3
	VDUP  R3, V31.S4
	MOVD  x_base+8(FP), R0
	MOVD  x_len+16(FP), R2
	MOVD  y_base+32(FP), R1
	INTO(AXPY)

// func add4NEON(x, y []float32)
TEXT ·add4NEON(SB), NOSPLIT, $0-48
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD y_base+24(FP), R1
	INTO(PLUS)

// func mul4NEON(x, y []float32)
TEXT ·mul4NEON(SB), NOSPLIT, $0-48
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD y_base+24(FP), R1
	INTO(TIMES)

// func scale4NEON(a float32, x []float32)
TEXT ·scale4NEON(SB), NOSPLIT, $0-32
	MOVWU a+0(FP), R3
	VDUP  R3, V31.S4
	MOVD  x_base+8(FP), R0
	MOVD  x_len+16(FP), R2
	MOVD  R0, R1
	INTO(BY)

// func relu4NEON(x, y []float32)
TEXT ·relu4NEON(SB), NOSPLIT, $0-48
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD y_base+24(FP), R1
	INTO(CLIP)

// func reluGrad4NEON(y, dy, dx []float32)
TEXT ·reluGrad4NEON(SB), NOSPLIT, $0-72
	MOVD y_base+0(FP), R0
	MOVD y_len+8(FP), R2
	MOVD dy_base+24(FP), R1
	MOVD dx_base+48(FP), R3
	CBZ  R2, done

each:
	FMOVQ.P 16(R0), F0
	FMOVQ.P 16(R1), F1
	FCMGT0(0, 0)
	VAND    V0.B16, V1.B16, V1.B16
	FMOVQ.P F1, 16(R3)
	SUBS    $4, R2
	BNE     each

done:
	RET

// func where4NEON(e int32, arg []int32, x, y []float32)
TEXT ·where4NEON(SB), NOSPLIT, $0-80
	MOVWU e+0(FP), R4
	VDUP  R4, V31.S4
	MOVD  arg_base+8(FP), R0
	MOVD  arg_len+16(FP), R2
	MOVD  x_base+32(FP), R1
	MOVD  y_base+56(FP), R3
	CBZ   R2, done

each:
	FMOVQ.P 16(R0), F0
	FMOVQ.P 16(R1), F1
	CMEQ(0, 0, 31)
	VAND    V0.B16, V1.B16, V1.B16
	FMOVQ.P F1, 16(R3)
	SUBS    $4, R2
	BNE     each

done:
	RET

// func dot4NEON(x, y []float32) float32
TEXT ·dot4NEON(SB), NOSPLIT, $0-52
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD y_base+24(FP), R1
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16

many:
	SUBS    $16, R2
	BLT     few
	FLDPQ.P 32(R0), (F0, F1)
	FLDPQ.P 32(R0), (F2, F3)
	FLDPQ.P 32(R1), (F4, F5)
	FLDPQ.P 32(R1), (F6, F7)
	FMLA(16, 0, 4)
	FMLA(17, 1, 5)
	FMLA(18, 2, 6)
	FMLA(19, 3, 7)
	B       many

few:
	ADDS $16, R2
	BEQ  done

each:
	FMOVQ.P 16(R0), F0
	FMOVQ.P 16(R1), F4
	FMLA(16, 0, 4)
	SUBS    $4, R2
	BNE     each

done:
	FADD(16, 16, 17)
	FADD(18, 18, 19)
	FADD(16, 16, 18)
	FADDP(16, 16, 16)
	FADDP(16, 16, 16)
	FMOVS F16, ret+48(FP)
	RET

// func addWide4NEON(x []float32, sum []float64)
TEXT ·addWide4NEON(SB), NOSPLIT, $0-48
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD sum_base+24(FP), R1
	CBZ  R2, done

each:
	FMOVQ.P 16(R0), F0
	FLDPQ   (R1), (F1, F2)
	FCVTL(3, 0)
	FCVTL2(4, 0)
	FADD2(1, 1, 3)
	FADD2(2, 2, 4)
	FSTPQ.P (F1, F2), 32(R1)
	SUBS    $4, R2
	BNE     each

done:
	RET

// func maxIndex4NEON(col []int32) uint32
TEXT ·maxIndex4NEON(SB), NOSPLIT, $0-28
	MOVD col_base+0(FP), R0
	MOVD col_len+8(FP), R2
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16

many:
	SUBS    $16, R2
	BLT     few
	FLDPQ.P 32(R0), (F2, F3)
	FLDPQ.P 32(R0), (F4, F5)
	UMAX(2, 2, 3)
	UMAX(4, 4, 5)
	UMAX(0, 0, 2)
	UMAX(1, 1, 4)
	B       many

few:
	ADDS $16, R2
	BEQ  done

each:
	FMOVQ.P 16(R0), F2
	UMAX(0, 0, 2)
	SUBS    $4, R2
	BNE     each

done:
	UMAX(0, 0, 1)
	UMAXV(0, 0)
	VMOV V0.S[0], R3
	MOVW R3, ret+24(FP)
	RET

// Multiples 0 to 3 of 0x9e3779b9, for the hash of each column.
DATA columns<>+0(SB)/8, $0x9e3779b900000000
DATA columns<>+8(SB)/8, $0xdaa66d2b3c6ef372
GLOBL columns<>(SB), RODATA|NOPTR, $16

// func mask4NEON(lo, hi, limit uint32, up float32, keep []float32)
TEXT ·mask4NEON(SB), NOSPLIT, $0-40
	MOVD  keep_base+16(FP), R0
	MOVD  keep_len+24(FP), R2
	CBZ   R2, done
	MOVD  $columns<>(SB), R3
	FMOVQ (R3), F0
	MOVWU lo+0(FP), R3
	VDUP  R3, V1.S4
	VADD  V1.S4, V0.S4, V0.S4
	MOVWU hi+4(FP), R3
	VDUP  R3, V1.S4
	MOVWU limit+8(FP), R3
	VDUP  R3, V2.S4
	MOVWU up+12(FP), R3
	VDUP  R3, V3.S4
	MOVD  $0x7feb352d, R3
	VDUP  R3, V4.S4
	MOVD  $0x846ca68b, R3
	VDUP  R3, V5.S4
	MOVD  $0x78dde6e4, R3 // four columns on
	VDUP  R3, V6.S4

each:
	VEOR    V0.B16, V1.B16, V7.B16
	VADD    V6.S4, V0.S4, V0.S4
	VUSHR   $16, V7.S4, V16.S4
	VEOR    V16.B16, V7.B16, V7.B16
	MUL(7, 7, 4)
	VUSHR   $15, V7.S4, V16.S4
	VEOR    V16.B16, V7.B16, V7.B16
	MUL(7, 7, 5)
	VUSHR   $16, V7.S4, V16.S4
	VEOR    V16.B16, V7.B16, V7.B16
	CMHS(7, 7, 2)
	VAND    V3.B16, V7.B16, V7.B16
	FMOVQ.P F7, 16(R0)
	SUBS    $4, R2
	BNE     each

done:
	RET

// The operations have the order of adamGeneric, and none is fused: the bits are the same.
//
// func adam4NEON(p, g, m, v []float32, c *adam)
TEXT ·adam4NEON(SB), NOSPLIT, $0-104
	MOVD p_base+0(FP), R0
	MOVD p_len+8(FP), R4
	MOVD g_base+24(FP), R1
	MOVD m_base+48(FP), R2
	MOVD v_base+72(FP), R3
	MOVD c+96(FP), R5
	CBZ  R4, done
	VLD1R.P 4(R5), [V16.S4] // step
	VLD1R.P 4(R5), [V17.S4] // beta1
	VLD1R.P 4(R5), [V18.S4] // rest1
	VLD1R.P 4(R5), [V19.S4] // beta2
	VLD1R.P 4(R5), [V20.S4] // rest2
	VLD1R.P 4(R5), [V21.S4] // eps
	VLD1R.P 4(R5), [V22.S4] // scale
	VLD1R.P 4(R5), [V23.S4] // root
	VLD1R.P 4(R5), [V24.S4] // decay
	VLD1R   (R5), [V25.S4]  // shrink

each:
	FMOVQ   (R0), F0
	FMOVQ.P 16(R1), F1
	FMOVQ   (R2), F2
	FMOVQ   (R3), F3
	FMUL(1, 1, 22)
	FMUL(4, 24, 0)
	FADD(1, 1, 4)
	FMUL(2, 17, 2)
	FMUL(4, 18, 1)
	FADD(2, 2, 4)
	FMUL(3, 19, 3)
	FMUL(4, 20, 1)
	FMUL(4, 4, 1)
	FADD(3, 3, 4)
	FMOVQ.P F2, 16(R2)
	FMOVQ.P F3, 16(R3)
	FMUL(2, 16, 2)
	FSQRT(3, 3)
	FMUL(3, 3, 23)
	FADD(3, 3, 21)
	FDIV(2, 2, 3)
	FMUL(0, 0, 25)
	FSUB(0, 0, 2)
	FMOVQ.P F0, 16(R0)
	SUBS    $4, R4
	BNE     each

done:
	RET

// func toBF16x4NEON(x []float32, y []uint16)
TEXT ·toBF16x4NEON(SB), NOSPLIT, $0-48
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD y_base+24(FP), R1
	CBZ  R2, done
	MOVD $1, R3
	VDUP R3, V5.S4
	MOVD $0x7fff, R3
	VDUP R3, V6.S4
	MOVD $(0x40<<16), R3
	VDUP R3, V7.S4

each:
	FMOVQ.P 16(R0), F0
	VUSHR   $16, V0.S4, V1.S4
	VAND    V5.B16, V1.B16, V1.B16
	VADD    V6.S4, V0.S4, V2.S4
	VADD    V1.S4, V2.S4, V2.S4
	VORR    V7.B16, V0.B16, V3.B16
	FCMEQ(4, 0, 0)
	VEOR    V3.B16, V2.B16, V2.B16
	VAND    V4.B16, V2.B16, V2.B16
	VEOR    V3.B16, V2.B16, V2.B16
	SHRN(2, 2)
	FMOVD.P F2, 8(R1)
	SUBS    $4, R2
	BNE     each

done:
	RET

// func fromBF16x4NEON(x []uint16, y []float32)
TEXT ·fromBF16x4NEON(SB), NOSPLIT, $0-48
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD y_base+24(FP), R1
	CBZ  R2, done

each:
	FMOVD.P 8(R0), F0
	SHLL(0, 0)
	FMOVQ.P F0, 16(R1)
	SUBS    $4, R2
	BNE     each

done:
	RET
