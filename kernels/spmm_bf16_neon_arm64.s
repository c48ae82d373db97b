#include "textflag.h"
#include "neon_arm64.h"
#include "spmm_arm64.h"

// Sparse times dense where X is bfloat16: rows are widened, by a shift, as they are fetched.

// NARROW is the function for columns that one register holds: of X loaded by WIDEN, of Y by MOV.
#define NARROW(WIDEN, MOV) \
	LOADARGS(1)                   \
row:                              \
	ROWEND                        \
	VEOR  V0.B16, V0.B16, V0.B16  \
	CBZ   R13, edges              \
	MOV   (R7), F0                \
edges:                            \
	CMP   R10, R2                 \
	BHS   put                     \
edge:                             \
	AHEAD(here)                   \
	PRFM  (R14), PLDL1KEEP        \
here:                             \
	EDGE                          \
	WIDEN                         \
	FMLAE(0, 16, 31, 0)           \
	CMP   R10, R2                 \
	BLO   edge                    \
put:                              \
	MOV   F0, (R7)                \
	ADD   R8, R7                  \
	SUBS  $1, R0                  \
	BNE   row                     \
	RET

#define WIDEN1 \
	MOVHU (R11), R15 \
	LSL   $16, R15   \
	FMOVS R15, F16

#define WIDEN2 \
	FMOVS (R11), F16 \
	SHLL(16, 16)

#define WIDEN4 \
	FMOVD (R11), F16 \
	SHLL(16, 16)

// func spmmBF16x1NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x1NEON(SB), NOSPLIT, $0-89
	NARROW(WIDEN1, FMOVS)

// func spmmBF16x2NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x2NEON(SB), NOSPLIT, $0-89
	NARROW(WIDEN2, FMOVD)

// func spmmBF16x4NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x4NEON(SB), NOSPLIT, $0-89
	NARROW(WIDEN4, FMOVQ)

// func spmmBF16x16NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x16NEON(SB), NOSPLIT, $0-89
	LOADARGS(1)

row:
	ROWEND
	CBNZ R13, get
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	B    edges

get:
	FLDPQ (R7), (F0, F1)
	FLDPQ 32(R7), (F2, F3)

edges:
	CMP R10, R2
	BHS put

edge:
	AHEAD(here)
	PRFM (R14), PLDL1KEEP

here:
	EDGE
	FLDPQ (R11), (F16, F17)
	SHLL(18, 16)
	SHLL2(19, 16)
	SHLL(20, 17)
	SHLL2(21, 17)
	FMLAE(0, 18, 31, 0)
	FMLAE(1, 19, 31, 0)
	FMLAE(2, 20, 31, 0)
	FMLAE(3, 21, 31, 0)
	CMP   R10, R2
	BLO   edge

put:
	FSTPQ (F0, F1), (R7)
	FSTPQ (F2, F3), 32(R7)
	ADD   R8, R7
	SUBS  $1, R0
	BNE   row
	RET

// func spmmBF16x64NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x64NEON(SB), NOSPLIT, $0-89
	LOADARGS(1)

row:
	ROWEND
	CBNZ R13, get
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	VEOR V10.B16, V10.B16, V10.B16
	VEOR V11.B16, V11.B16, V11.B16
	VEOR V12.B16, V12.B16, V12.B16
	VEOR V13.B16, V13.B16, V13.B16
	VEOR V14.B16, V14.B16, V14.B16
	VEOR V15.B16, V15.B16, V15.B16
	B    edges

get:
	FLDPQ (R7), (F0, F1)
	FLDPQ 32(R7), (F2, F3)
	FLDPQ 64(R7), (F4, F5)
	FLDPQ 96(R7), (F6, F7)
	FLDPQ 128(R7), (F8, F9)
	FLDPQ 160(R7), (F10, F11)
	FLDPQ 192(R7), (F12, F13)
	FLDPQ 224(R7), (F14, F15)

edges:
	CMP R10, R2
	BHS put

edge:
	AHEAD(here)
	PRFM (R14), PLDL1KEEP
	PRFM 64(R14), PLDL1KEEP

here:
	EDGE
	FLDPQ (R11), (F16, F17)
	SHLL(18, 16)
	SHLL2(19, 16)
	SHLL(20, 17)
	SHLL2(21, 17)
	FMLAE(0, 18, 31, 0)
	FMLAE(1, 19, 31, 0)
	FMLAE(2, 20, 31, 0)
	FMLAE(3, 21, 31, 0)
	FLDPQ 32(R11), (F16, F17)
	SHLL(18, 16)
	SHLL2(19, 16)
	SHLL(20, 17)
	SHLL2(21, 17)
	FMLAE(4, 18, 31, 0)
	FMLAE(5, 19, 31, 0)
	FMLAE(6, 20, 31, 0)
	FMLAE(7, 21, 31, 0)
	FLDPQ 64(R11), (F16, F17)
	SHLL(18, 16)
	SHLL2(19, 16)
	SHLL(20, 17)
	SHLL2(21, 17)
	FMLAE(8, 18, 31, 0)
	FMLAE(9, 19, 31, 0)
	FMLAE(10, 20, 31, 0)
	FMLAE(11, 21, 31, 0)
	FLDPQ 96(R11), (F16, F17)
	SHLL(18, 16)
	SHLL2(19, 16)
	SHLL(20, 17)
	SHLL2(21, 17)
	FMLAE(12, 18, 31, 0)
	FMLAE(13, 19, 31, 0)
	FMLAE(14, 20, 31, 0)
	FMLAE(15, 21, 31, 0)
	CMP   R10, R2
	BLO   edge

put:
	FSTPQ (F0, F1), (R7)
	FSTPQ (F2, F3), 32(R7)
	FSTPQ (F4, F5), 64(R7)
	FSTPQ (F6, F7), 96(R7)
	FSTPQ (F8, F9), 128(R7)
	FSTPQ (F10, F11), 160(R7)
	FSTPQ (F12, F13), 192(R7)
	FSTPQ (F14, F15), 224(R7)
	ADD   R8, R7
	SUBS  $1, R0
	BNE   row
	RET
