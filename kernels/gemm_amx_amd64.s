#include "textflag.h"

// Products of pairs of bfloat16 in the tile registers of AMX. Go's assembler knows neither their instructions nor the
// one that rounds to bfloat16.

#define TILECFG \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00 // LDTILECFG (AX)

#define TILERELEASE \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0

#define TILEZERO(t) \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $(0xc0 | (t)<<3)

// Rows of a tile are a stride apart: memory is (base)(stride), as in A0 to C.
#define A0 0x30 // (AX)(SI*1)
#define A1 0x31 // (CX)(SI*1)
#define B  0x13 // (BX)(DX*1)
#define C  0x17 // (DI)(DX*1)

#define TILELOAD(t, at) \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $(4 | (t)<<3); BYTE $at

// 64 bytes further.
#define TILELOAD64(t, at) \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $(0x44 | (t)<<3); BYTE $at; BYTE $64

#define TILESTORE(t, at) \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $(4 | (t)<<3); BYTE $at

#define TILESTORE64(t, at) \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $(0x44 | (t)<<3); BYTE $at; BYTE $64

// TDPBF16PS adds to c the product of a and b.
#define DP(c, a, b) \
	BYTE $0xc4; BYTE $0xe2; BYTE $(0x02 | (15-(b))<<3); BYTE $0x5c; BYTE $(0xc0 | (c)<<3 | (a))

// VCVTNE2PS2BF16 rounds the float32s of registers low and then high to bfloat16, into low.
#define ROUND(low, high) \
	BYTE $0x62; BYTE $0xf2; BYTE $(0x07 | (15-(high))<<3); BYTE $0x48; BYTE $0x72; BYTE $(0xc0 | (low)*9)

// Loads C and its stride.
#define LOADC \
	MOVQ R13, DI        \
	MOVQ ldc+72(FP), DX \
	SHLQ $2, DX

// From the first rows of C to the last 16.
#define LOWERC \
	MOVQ DX, R11  \
	SHLQ $4, R11  \
	ADDQ R11, DI

// FETCHC fetches four rows of C, from DI on.
#define FETCHC \
	PREFETCHT0 (DI)          \
	PREFETCHT0 64(DI)        \
	PREFETCHT0 (DI)(DX*1)    \
	PREFETCHT0 64(DI)(DX*1)  \
	PREFETCHT0 (DI)(DX*2)    \
	PREFETCHT0 64(DI)(DX*2)  \
	PREFETCHT0 (DI)(R11*1)   \
	PREFETCHT0 64(DI)(R11*1) \
	LEAQ       (DI)(DX*4), DI

// FETCHB fetches eight lines of B's next band.
#define FETCHB(at) \
	PREFETCHT0 (at+0)(BX)   \
	PREFETCHT0 (at+64)(BX)  \
	PREFETCHT0 (at+128)(BX) \
	PREFETCHT0 (at+192)(BX) \
	PREFETCHT0 (at+256)(BX) \
	PREFETCHT0 (at+320)(BX) \
	PREFETCHT0 (at+384)(BX) \
	PREFETCHT0 (at+448)(BX)

// Tiles of C, up to 32×32: T0 to T3 are C, T4 and T5 two bands of A, 16 rows and 16 pairs each, T6 and T7 two bands
// of B. One call computes full tiles side by side, because setting their shapes takes long. A tile load waits for
// each cache miss, row by row, so the next tile of C and the next band of B are prefetched.
//
// func tileAMX(shape *tileShape, rows, cols, k int, a unsafe.Pointer, lda int, b unsafe.Pointer, ldb int, c unsafe.Pointer, ldc int, acc bool)
TEXT ·tileAMX(SB), NOSPLIT, $0-81
	MOVQ shape+0(FP), AX
	MOVQ rows+8(FP), R9
	MOVQ cols+16(FP), R10
	TILECFG
	MOVQ c+64(FP), R13
	MOVQ b+48(FP), BX

tile:
	LOADC
	ADDQ $128, DI
	CMPQ R10, $32
	JG   fetch
	MOVQ DX, DI // the tile after the last is the first of the next rows
	SHLQ $5, DI
	ADDQ c+64(FP), DI

fetch:
	LEAQ (DX)(DX*2), R11
	FETCHC
	FETCHC
	FETCHC
	FETCHC
	FETCHC
	FETCHC
	FETCHC
	FETCHC
	CMPB acc+80(FP), $0
	JNE  get
	TILEZERO(0)
	CMPQ R10, $16
	JLE  zeroLower
	TILEZERO(1)

zeroLower:
	CMPQ R9, $16
	JLE  start
	TILEZERO(2)
	CMPQ R10, $16
	JLE  start
	TILEZERO(3)
	JMP  start

get:
	LOADC
	TILELOAD(0, C)
	CMPQ R10, $16
	JLE  getLower
	TILELOAD64(1, C)

getLower:
	CMPQ R9, $16
	JLE  start
	LOWERC
	TILELOAD(2, C)
	CMPQ R10, $16
	JLE  start
	TILELOAD64(3, C)

start:
	MOVQ k+24(FP), R8
	MOVQ a+32(FP), AX
	MOVQ lda+40(FP), SI
	MOVQ ldb+56(FP), DX
	SHLQ $2, SI
	SHLQ $2, DX
	MOVQ SI, CX
	SHLQ $4, CX
	ADDQ AX, CX
	MOVQ DX, R12
	SHLQ $4, R12

loop:
	TILELOAD(4, A0)
	TILELOAD(6, B)
	DP(0, 4, 6)
	CMPQ R10, $16
	JLE  narrow
	FETCHB(2048)
	TILELOAD64(7, B)
	DP(1, 4, 7)
	FETCHB(2560)
	CMPQ R9, $16
	JLE  next
	TILELOAD(5, A1)
	FETCHB(3072)
	DP(2, 5, 6)
	DP(3, 5, 7)
	FETCHB(3584)
	JMP  next

narrow:
	CMPQ R9, $16
	JLE  next
	TILELOAD(5, A1)
	DP(2, 5, 6)

next:
	ADDQ $64, AX
	ADDQ $64, CX
	ADDQ R12, BX
	SUBQ $16, R8
	JNZ  loop

	LOADC
	TILESTORE(0, C)
	CMPQ R10, $16
	JLE  putLower
	TILESTORE64(1, C)

putLower:
	CMPQ R9, $16
	JLE  done
	LOWERC
	TILESTORE(2, C)
	CMPQ R10, $16
	JLE  done
	TILESTORE64(3, C)

done:
	ADDQ $128, R13 // B goes on with its next panel
	SUBQ $32, R10
	JG   tile
	TILERELEASE
	RET

// Rows of x are rounded to bfloat16, each to whole 64 bytes of y, padded with zeros.
//
// func roundAMX(rows, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)
TEXT ·roundAMX(SB), NOSPLIT, $0-48
	MOVQ rows+0(FP), DX
	MOVQ x+16(FP), R13
	MOVQ ldx+24(FP), R8
	MOVQ y+32(FP), R14
	MOVQ ldy+40(FP), R9
	SHLQ $2, R8
	SHLQ $2, R9
	MOVQ n+8(FP), CX
	ANDQ $31, CX
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1
	SHRL $16, AX
	KMOVW AX, K2

row:
	MOVQ R13, SI
	MOVQ R14, DI
	MOVQ n+8(FP), CX
	SUBQ $32, CX
	JLT  few

whole:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	ROUND(0, 1)
	VMOVUPS Z0, (DI)
	ADDQ $128, SI
	ADDQ $64, DI
	SUBQ $32, CX
	JGE  whole

few:
	ADDQ $32, CX
	JZ   next
	VMOVUPS.Z (SI), K1, Z0
	VMOVUPS.Z 64(SI), K2, Z1
	ROUND(0, 1)
	VMOVUPS Z0, (DI)

next:
	ADDQ R8, R13
	ADDQ R9, R14
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// Interleaves the words of two registers.
DATA turns<>+0(SB)/8, $0x0011000100100000
DATA turns<>+8(SB)/8, $0x0013000300120002
DATA turns<>+16(SB)/8, $0x0015000500140004
DATA turns<>+24(SB)/8, $0x0017000700160006
DATA turns<>+32(SB)/8, $0x0019000900180008
DATA turns<>+40(SB)/8, $0x001b000b001a000a
DATA turns<>+48(SB)/8, $0x001d000d001c000c
DATA turns<>+56(SB)/8, $0x001f000f001e000e
GLOBL turns<>(SB), RODATA|NOPTR, $64

// Two rows of x, rounded to bfloat16, become a row of pairs in y. A last row without a partner is paired with zeros.
//
// func pairAMX(rows, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)
TEXT ·pairAMX(SB), NOSPLIT, $0-48
	MOVQ n+8(FP), BX
	MOVQ x+16(FP), R13
	MOVQ ldx+24(FP), R8
	MOVQ y+32(FP), R14
	MOVQ ldy+40(FP), R9
	SHLQ $2, R8
	SHLQ $2, R9
	VMOVUPS turns<>(SB), Z4

block: // of 32 columns
	MOVL $-1, AX
	MOVQ BX, CX
	CMPQ CX, $32
	JGE  masks
	MOVL $1, AX
	SHLL CX, AX
	DECL AX

masks:
	KMOVW AX, K1
	SHRL  $16, AX
	KMOVW AX, K2
	MOVQ  R13, SI
	MOVQ  R14, DI
	MOVQ  R8, R10
	SHLQ  $4, R10 // rows ahead
	ADDQ  SI, R10
	MOVQ  rows+0(FP), DX
	SUBQ  $2, DX
	JLT   last

two:
	VMOVUPS.Z (SI)(R8*1), K1, Z2
	VMOVUPS.Z 64(SI)(R8*1), K2, Z3
	JMP pair

last:
	ADDQ   $2, DX
	JZ     next
	XORL   DX, DX // no more rows
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3

pair:
	VMOVUPS.Z (SI), K1, Z0
	VMOVUPS.Z 64(SI), K2, Z1
	PREFETCHT0 (R10)
	PREFETCHT0 64(R10)
	PREFETCHT0 (R10)(R8*1)
	PREFETCHT0 64(R10)(R8*1)
	ROUND(0, 2)
	ROUND(1, 3)
	VPERMW Z0, Z4, Z0
	VPERMW Z1, Z4, Z1
	VMOVUPS Z0, K1, (DI)
	VMOVUPS Z1, K2, 64(DI)
	LEAQ (SI)(R8*2), SI
	LEAQ (R10)(R8*2), R10
	ADDQ R9, DI
	SUBQ $2, DX
	JGE  two
	CMPQ DX, $-1
	JEQ  last

next:
	ADDQ $128, R13
	ADDQ $128, R14
	SUBQ $32, BX
	JG   block
	VZEROUPPER
	RET
