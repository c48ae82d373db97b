#include "textflag.h"
#include "neon_arm64.h"

// Maxima over edges by rows, sixteen or four columns at a time in registers: Y's values, and the columns of S with
// the maxima. R4 points at the edge's column, R2 at the row's end; R5 and R6 are X and its stride, R7 and R8 are Y's,
// R9 and R10 are arg's. An unordered comparison is false, so NaN is ignored.

#define LOADARGS \
	MOVD rows+0(FP), R0    \
	MOVD rowPtr+8(FP), R1  \
	MOVD col+16(FP), R3    \
	MOVD x+24(FP), R5      \
	MOVD ldx+32(FP), R6    \
	MOVD y+40(FP), R7      \
	MOVD ldy+48(FP), R8    \
	MOVD arg+56(FP), R9    \
	MOVD lda+64(FP), R10   \
	LSL  $2, R6            \
	LSL  $2, R8            \
	LSL  $2, R10           \
	MOVD (R1), R4          \
	ADD  R4<<2, R3, R4

#define ROWEND \
	MOVD 8(R1), R2         \
	ADD  $8, R1            \
	ADD  R2<<2, R3, R2

// EDGE points R11 at the edge's row of X and makes V20 its column.
#define EDGE \
	MOVW.P 4(R4), R12      \
	MADD   R6, R5, R12, R11 \
	VDUP   R12, V20.S4

#define RAISE(x, y, arg) \
	FCMGT(21, x, y)  \
	BIT(y, x, 21)    \
	BIT(arg, 20, 21)

// func spmax16NEON(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer, lda, cols int)
TEXT ·spmax16NEON(SB), NOSPLIT, $0-80
	LOADARGS

row:
	ROWEND
	CMP   R2, R4
	BHS   next
	FLDPQ (R7), (F0, F1)
	FLDPQ 32(R7), (F2, F3)
	FLDPQ (R9), (F4, F5)
	FLDPQ 32(R9), (F6, F7)

edge:
	EDGE
	FLDPQ (R11), (F16, F17)
	FLDPQ 32(R11), (F18, F19)
	RAISE(16, 0, 4)
	RAISE(17, 1, 5)
	RAISE(18, 2, 6)
	RAISE(19, 3, 7)
	CMP   R2, R4
	BLO   edge
	FSTPQ (F0, F1), (R7)
	FSTPQ (F2, F3), 32(R7)
	FSTPQ (F4, F5), (R9)
	FSTPQ (F6, F7), 32(R9)

next:
	ADD  R8, R7
	ADD  R10, R9
	SUBS $1, R0
	BNE  row
	RET

// func spmax4NEON(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer, lda, cols int)
TEXT ·spmax4NEON(SB), NOSPLIT, $0-80
	LOADARGS

row:
	ROWEND
	CMP   R2, R4
	BHS   next
	FMOVQ (R7), F0
	FMOVQ (R9), F4

edge:
	EDGE
	FMOVQ (R11), F16
	RAISE(16, 0, 4)
	CMP   R2, R4
	BLO   edge
	FMOVQ F0, (R7)
	FMOVQ F4, (R9)

next:
	ADD  R8, R7
	ADD  R10, R9
	SUBS $1, R0
	BNE  row
	RET
