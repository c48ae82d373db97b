#include "textflag.h"
#include "neon_arm64.h"
#include "spmm_arm64.h"

// NARROW is the function for columns that fit in one register, loaded and stored by MOV.
#define NARROW(MOV) \
	LOADARGS(2)                   \
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
	MOV   (R11), F16              \
	FMLAE(0, 16, 31, 0)           \
	CMP   R10, R2                 \
	BLO   edge                    \
put:                              \
	MOV   F0, (R7)                \
	ADD   R8, R7                  \
	SUBS  $1, R0                  \
	BNE   row                     \
	RET

// func spmm1NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm1NEON(SB), NOSPLIT, $0-89
	NARROW(FMOVS)

// func spmm2NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm2NEON(SB), NOSPLIT, $0-89
	NARROW(FMOVD)

// func spmm4NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm4NEON(SB), NOSPLIT, $0-89
	NARROW(FMOVQ)

// func spmm16NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm16NEON(SB), NOSPLIT, $0-89
	LOADARGS(2)

row:
	ROWEND
	VEOR  V0.B16, V0.B16, V0.B16
	VEOR  V1.B16, V1.B16, V1.B16
	VEOR  V2.B16, V2.B16, V2.B16
	VEOR  V3.B16, V3.B16, V3.B16
	CBZ   R13, edges
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
	FLDPQ 32(R11), (F18, F19)
	FMLAE(0, 16, 31, 0)
	FMLAE(1, 17, 31, 0)
	FMLAE(2, 18, 31, 0)
	FMLAE(3, 19, 31, 0)
	CMP   R10, R2
	BLO   edge

put:
	FSTPQ (F0, F1), (R7)
	FSTPQ (F2, F3), 32(R7)
	ADD   R8, R7
	SUBS  $1, R0
	BNE   row
	RET

// func spmm64NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm64NEON(SB), NOSPLIT, $0-89
	LOADARGS(2)

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
	PRFM 128(R14), PLDL1KEEP
	PRFM 192(R14), PLDL1KEEP

here:
	EDGE
	FLDPQ (R11), (F16, F17)
	FLDPQ 32(R11), (F18, F19)
	FLDPQ 64(R11), (F20, F21)
	FLDPQ 96(R11), (F22, F23)
	FMLAE(0, 16, 31, 0)
	FMLAE(1, 17, 31, 0)
	FMLAE(2, 18, 31, 0)
	FMLAE(3, 19, 31, 0)
	FLDPQ 128(R11), (F24, F25)
	FLDPQ 160(R11), (F26, F27)
	FMLAE(4, 20, 31, 0)
	FMLAE(5, 21, 31, 0)
	FMLAE(6, 22, 31, 0)
	FMLAE(7, 23, 31, 0)
	FLDPQ 192(R11), (F16, F17)
	FLDPQ 224(R11), (F18, F19)
	FMLAE(8, 24, 31, 0)
	FMLAE(9, 25, 31, 0)
	FMLAE(10, 26, 31, 0)
	FMLAE(11, 27, 31, 0)
	FMLAE(12, 16, 31, 0)
	FMLAE(13, 17, 31, 0)
	FMLAE(14, 18, 31, 0)
	FMLAE(15, 19, 31, 0)
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
