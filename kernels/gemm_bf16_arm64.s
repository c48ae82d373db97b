#include "textflag.h"
#include "neon_arm64.h"

// Tiles of C, 8×8, in V0 to V15: of rows 2i and 2i+1 and columns 2j and 2j+1 in V(4i+j), row by row, as BFMMLA has them.
// A quad of A and of B are 64 bytes each.

// GET loads two rows of C into four registers, PUT stores them.
#define GET(v0, v1, v2, v3) \
	FLDPQ (R12), (F16, F17)        \
	ADD   R13, R12                 \
	FLDPQ (R12), (F18, F19)        \
	ADD   R13, R12                 \
	VZIP1 V18.D2, V16.D2, v0.D2    \
	VZIP2 V18.D2, V16.D2, v1.D2    \
	VZIP1 V19.D2, V17.D2, v2.D2    \
	VZIP2 V19.D2, V17.D2, v3.D2

#define PUT(v0, v1, v2, v3) \
	VZIP1 v1.D2, v0.D2, V16.D2 \
	VZIP1 v3.D2, v2.D2, V17.D2 \
	VZIP2 v1.D2, v0.D2, V18.D2 \
	VZIP2 v3.D2, v2.D2, V19.D2 \
	FSTPQ (F16, F17), (R12)    \
	ADD   R13, R12             \
	FSTPQ (F18, F19), (R12)    \
	ADD   R13, R12

#define BFMMLA4(d, n, m) \
	BFMMLA((d), n, (m))       \
	BFMMLA((d+1), n, (m+1))   \
	BFMMLA((d+2), n, (m+2))   \
	BFMMLA((d+3), n, (m+3))

// QUAD multiplies a quad of A in four registers from a on with one of B.
#define QUAD(a, b) \
	BFMMLA4(0, a, b)      \
	BFMMLA4(4, (a+1), b)  \
	BFMMLA4(8, (a+2), b)  \
	BFMMLA4(12, (a+3), b)

#define LOADC \
	MOVD c+24(FP), R12   \
	MOVD ldc+32(FP), R13 \
	LSL  $2, R13

// func bfmmla8x8(quads int, a, b, c unsafe.Pointer, ldc int, acc bool)
TEXT ·bfmmla8x8(SB), NOSPLIT, $0-41
	LOADC
	MOVBU acc+40(FP), R14
	CBNZ  R14, get
	VEOR  V0.B16, V0.B16, V0.B16
	VEOR  V1.B16, V1.B16, V1.B16
	VEOR  V2.B16, V2.B16, V2.B16
	VEOR  V3.B16, V3.B16, V3.B16
	VEOR  V4.B16, V4.B16, V4.B16
	VEOR  V5.B16, V5.B16, V5.B16
	VEOR  V6.B16, V6.B16, V6.B16
	VEOR  V7.B16, V7.B16, V7.B16
	VEOR  V8.B16, V8.B16, V8.B16
	VEOR  V9.B16, V9.B16, V9.B16
	VEOR  V10.B16, V10.B16, V10.B16
	VEOR  V11.B16, V11.B16, V11.B16
	VEOR  V12.B16, V12.B16, V12.B16
	VEOR  V13.B16, V13.B16, V13.B16
	VEOR  V14.B16, V14.B16, V14.B16
	VEOR  V15.B16, V15.B16, V15.B16
	B     begin

get:
	GET(V0, V1, V2, V3)
	GET(V4, V5, V6, V7)
	GET(V8, V9, V10, V11)
	GET(V12, V13, V14, V15)

begin:
	MOVD quads+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2

two:
	SUBS    $2, R0
	BLT     few
	FLDPQ.P 32(R1), (F16, F17)
	FLDPQ.P 32(R2), (F24, F25)
	FLDPQ.P 32(R1), (F18, F19)
	FLDPQ.P 32(R2), (F26, F27)
	FLDPQ.P 32(R1), (F20, F21)
	FLDPQ.P 32(R2), (F28, F29)
	QUAD(16, 24)
	FLDPQ.P 32(R1), (F22, F23)
	FLDPQ.P 32(R2), (F30, F31)
	QUAD(20, 28)
	B       two

few:
	ADDS  $2, R0
	BEQ   done
	FLDPQ (R1), (F16, F17)
	FLDPQ (R2), (F24, F25)
	FLDPQ 32(R1), (F18, F19)
	FLDPQ 32(R2), (F26, F27)
	QUAD(16, 24)

done:
	LOADC
	PUT(V0, V1, V2, V3)
	PUT(V4, V5, V6, V7)
	PUT(V8, V9, V10, V11)
	PUT(V12, V13, V14, V15)
	RET

// func quadsAlong(quads int, x unsafe.Pointer, ldx int, to unsafe.Pointer)
TEXT ·quadsAlong(SB), NOSPLIT, $0-32
	MOVD quads+0(FP), R0
	MOVD x+8(FP), R1
	MOVD ldx+16(FP), R9
	MOVD to+24(FP), R10
	LSL  $1, R9
	ADD  R9, R1, R2
	ADD  R9, R2, R3
	ADD  R9, R3, R4
	ADD  R9, R4, R5
	ADD  R9, R5, R6
	ADD  R9, R6, R7
	ADD  R9, R7, R8

quad:
	FMOVD.P 8(R1), F0
	FMOVD.P 8(R2), F1
	FMOVD.P 8(R3), F2
	FMOVD.P 8(R4), F3
	FMOVD.P 8(R5), F4
	FMOVD.P 8(R6), F5
	FMOVD.P 8(R7), F6
	FMOVD.P 8(R8), F7
	VZIP1   V1.D2, V0.D2, V0.D2
	VZIP1   V3.D2, V2.D2, V2.D2
	VZIP1   V5.D2, V4.D2, V4.D2
	VZIP1   V7.D2, V6.D2, V6.D2
	FSTPQ.P (F0, F2), 32(R10)
	FSTPQ.P (F4, F6), 32(R10)
	SUBS    $1, R0
	BNE     quad
	RET

// func quadsDown(quads int, x unsafe.Pointer, ldx int, to unsafe.Pointer)
TEXT ·quadsDown(SB), NOSPLIT, $0-32
	MOVD quads+0(FP), R0
	MOVD x+8(FP), R1
	MOVD ldx+16(FP), R9
	MOVD to+24(FP), R10
	LSL  $1, R9

quad:
	FMOVQ   (R1), F0
	ADD     R9, R1
	FMOVQ   (R1), F1
	ADD     R9, R1
	FMOVQ   (R1), F2
	ADD     R9, R1
	FMOVQ   (R1), F3
	ADD     R9, R1
	VZIP1   V1.H8, V0.H8, V4.H8
	VZIP2   V1.H8, V0.H8, V5.H8
	VZIP1   V3.H8, V2.H8, V6.H8
	VZIP2   V3.H8, V2.H8, V7.H8
	VZIP1   V6.S4, V4.S4, V16.S4
	VZIP2   V6.S4, V4.S4, V17.S4
	VZIP1   V7.S4, V5.S4, V18.S4
	VZIP2   V7.S4, V5.S4, V19.S4
	FSTPQ.P (F16, F17), 32(R10)
	FSTPQ.P (F18, F19), 32(R10)
	SUBS    $1, R0
	BNE     quad
	RET
