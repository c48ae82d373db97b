#include "textflag.h"
#include "neon_arm64.h"

// Tiles of C, 8×8, in V0 to V15, two registers a row; B is packed, eight columns wide. Per step of k: 16 fused
// multiply-adds, and a quarter as many instructions for the rest.

// GETC starts the sums with C, or with zeros.
#define GETC \
	MOVD  c+32(FP), R12              \
	MOVD  ldc+40(FP), R13            \
	LSL   $2, R13                    \
	MOVBU acc+48(FP), R14            \
	CBNZ  R14, get                   \
	VEOR  V0.B16, V0.B16, V0.B16     \
	VEOR  V1.B16, V1.B16, V1.B16     \
	VEOR  V2.B16, V2.B16, V2.B16     \
	VEOR  V3.B16, V3.B16, V3.B16     \
	VEOR  V4.B16, V4.B16, V4.B16     \
	VEOR  V5.B16, V5.B16, V5.B16     \
	VEOR  V6.B16, V6.B16, V6.B16     \
	VEOR  V7.B16, V7.B16, V7.B16     \
	VEOR  V8.B16, V8.B16, V8.B16     \
	VEOR  V9.B16, V9.B16, V9.B16     \
	VEOR  V10.B16, V10.B16, V10.B16  \
	VEOR  V11.B16, V11.B16, V11.B16  \
	VEOR  V12.B16, V12.B16, V12.B16  \
	VEOR  V13.B16, V13.B16, V13.B16  \
	VEOR  V14.B16, V14.B16, V14.B16  \
	VEOR  V15.B16, V15.B16, V15.B16  \
	B     begin                      \
get:                                 \
	MOVD  R12, R15                   \
	FLDPQ (R15), (F0, F1)            \
	ADD   R13, R15                   \
	FLDPQ (R15), (F2, F3)            \
	ADD   R13, R15                   \
	FLDPQ (R15), (F4, F5)            \
	ADD   R13, R15                   \
	FLDPQ (R15), (F6, F7)            \
	ADD   R13, R15                   \
	FLDPQ (R15), (F8, F9)            \
	ADD   R13, R15                   \
	FLDPQ (R15), (F10, F11)          \
	ADD   R13, R15                   \
	FLDPQ (R15), (F12, F13)          \
	ADD   R13, R15                   \
	FLDPQ (R15), (F14, F15)          \
begin:

#define PUTC \
	FSTPQ (F0, F1), (R12)   \
	ADD   R13, R12          \
	FSTPQ (F2, F3), (R12)   \
	ADD   R13, R12          \
	FSTPQ (F4, F5), (R12)   \
	ADD   R13, R12          \
	FSTPQ (F6, F7), (R12)   \
	ADD   R13, R12          \
	FSTPQ (F8, F9), (R12)   \
	ADD   R13, R12          \
	FSTPQ (F10, F11), (R12) \
	ADD   R13, R12          \
	FSTPQ (F12, F13), (R12) \
	ADD   R13, R12          \
	FSTPQ (F14, F15), (R12) \
	RET

// ROW adds to row i the product of value l of V register a and the row of B in b0 and b1.
#define ROW(i, b0, b1, a, l) \
	FMLAE((2*(i)), b0, a, l) \
	FMLAE((2*(i)+1), b1, a, l)

// ALONG is a step of k with the rows of A in V16 to V23; it uses their values l.
#define ALONG(b0, b1, l) \
	ROW(0, b0, b1, 16, l) \
	ROW(1, b0, b1, 17, l) \
	ROW(2, b0, b1, 18, l) \
	ROW(3, b0, b1, 19, l) \
	ROW(4, b0, b1, 20, l) \
	ROW(5, b0, b1, 21, l) \
	ROW(6, b0, b1, 22, l) \
	ROW(7, b0, b1, 23, l)

// DOWN is a step of k with a column of A in two registers.
#define DOWN(b0, b1, a0, a1) \
	ROW(0, b0, b1, a0, 0) \
	ROW(1, b0, b1, a0, 1) \
	ROW(2, b0, b1, a0, 2) \
	ROW(3, b0, b1, a0, 3) \
	ROW(4, b0, b1, a1, 0) \
	ROW(5, b0, b1, a1, 1) \
	ROW(6, b0, b1, a1, 2) \
	ROW(7, b0, b1, a1, 3)

// func gemm8x8NEON(k int, a unsafe.Pointer, lda int, b, c unsafe.Pointer, ldc int, acc bool)
TEXT ·gemm8x8NEON(SB), NOSPLIT, $0-49
	GETC
	MOVD k+0(FP), R0
	MOVD a+8(FP), R1
	MOVD lda+16(FP), R9
	MOVD b+24(FP), R10
	LSL  $2, R9
	ADD  R9, R1, R2
	ADD  R9, R2, R3
	ADD  R9, R3, R4
	ADD  R9, R4, R5
	ADD  R9, R5, R6
	ADD  R9, R6, R7
	ADD  R9, R7, R8

four:
	SUBS    $4, R0
	BLT     few
	FLDPQ.P 32(R10), (F24, F25)
	FMOVQ.P 16(R1), F16
	FMOVQ.P 16(R2), F17
	FMOVQ.P 16(R3), F18
	FMOVQ.P 16(R4), F19
	FMOVQ.P 16(R5), F20
	FMOVQ.P 16(R6), F21
	FMOVQ.P 16(R7), F22
	FMOVQ.P 16(R8), F23
	FLDPQ.P 32(R10), (F26, F27)
	ALONG(24, 25, 0)
	FLDPQ.P 32(R10), (F28, F29)
	ALONG(26, 27, 1)
	FLDPQ.P 32(R10), (F30, F31)
	ALONG(28, 29, 2)
	ALONG(30, 31, 3)
	B       four

few:
	ADDS $4, R0
	BEQ  done

each:
	FLDPQ.P 32(R10), (F24, F25)
	FMOVS.P 4(R1), F16
	FMOVS.P 4(R2), F17
	FMOVS.P 4(R3), F18
	FMOVS.P 4(R4), F19
	FMOVS.P 4(R5), F20
	FMOVS.P 4(R6), F21
	FMOVS.P 4(R7), F22
	FMOVS.P 4(R8), F23
	ALONG(24, 25, 0)
	SUBS    $1, R0
	BNE     each

done:
	PUTC

// func gemm8x8TNEON(k int, a unsafe.Pointer, lda int, b, c unsafe.Pointer, ldc int, acc bool)
TEXT ·gemm8x8TNEON(SB), NOSPLIT, $0-49
	GETC
	MOVD k+0(FP), R0
	MOVD a+8(FP), R1
	MOVD lda+16(FP), R9
	MOVD b+24(FP), R10
	LSL  $2, R9

two:
	SUBS    $2, R0
	BLT     few
	FLDPQ   (R1), (F16, F17)
	FLDPQ.P 32(R10), (F24, F25)
	ADD     R9, R1
	FLDPQ   (R1), (F18, F19)
	FLDPQ.P 32(R10), (F26, F27)
	ADD     R9, R1
	DOWN(24, 25, 16, 17)
	DOWN(26, 27, 18, 19)
	B       two

few:
	ADDS  $2, R0
	BEQ   done
	FLDPQ (R1), (F16, F17)
	FLDPQ (R10), (F24, F25)
	DOWN(24, 25, 16, 17)

done:
	PUTC
