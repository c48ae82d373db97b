#include "textflag.h"

// Tiles of C, up to 32×32, from pairs of bfloat16 in the tile registers of AMX, whose instructions Go's assembler does
// not know: T0 to T3 are C, T4 and T5 two bands of A, 16 rows and 16 pairs each, T6 and T7 two bands of B. Full tiles
// are done side by side in one call, for it takes long to set their shapes. What a load of a tile misses it waits for, row
// by row; so the next tile of C is fetched before, and meanwhile the next band of B and, where it is not packed, the next 32
// rows of A.

#define TILECFG \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00 // LDTILECFG (AX)

#define TILERELEASE \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0

#define TILEZERO(t) \
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $(0xc0 | (t)<<3)

// Rows of a tile are a stride apart: memory is (base)(stride), as in A0 to C1.
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

// C and its stride.
#define LOADC \
	MOVQ R13, DI        \
	MOVQ ldc+72(FP), DX \
	SHLQ $2, DX

// From the first rows of C to the last 16.
#define LOWERC \
	MOVQ DX, R11  \
	SHLQ $4, R11  \
	ADDQ R11, DI

// FETCHC fetches four rows of C, from DI on; FETCHA 64 bytes of four rows of A, from R14 on.
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

#define FETCHA \
	PREFETCHT0 (R14)        \
	PREFETCHT0 (R14)(SI*1)  \
	PREFETCHT0 (R14)(SI*2)  \
	PREFETCHT0 (R14)(R11*1) \
	LEAQ       (R14)(SI*4), R14

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

// func gemmAMX(shape *tileShape, rows, cols, k int, a unsafe.Pointer, rs int, b unsafe.Pointer, ldb int, c unsafe.Pointer, ldc int, acc, below bool)
TEXT ·gemmAMX(SB), NOSPLIT, $0-82
	MOVQ shape+0(FP), AX
	MOVQ rows+8(FP), R9
	MOVQ cols+16(FP), R10
	TILECFG
	MOVQ c+64(FP), R13
	MOVQ b+48(FP), BX
	MOVBQZX below+81(FP), R15 // 1 only for the first tile

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
	MOVQ rs+40(FP), SI
	MOVQ ldb+56(FP), DX
	SHLQ $2, SI
	SHLQ $2, DX
	MOVQ SI, CX
	SHLQ $4, CX
	LEAQ (AX)(CX*2), R14
	ADDQ AX, CX
	LEAQ (SI)(SI*2), R11
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
	TESTQ R15, R15
	JZ    on
	MOVQ  R14, DI
	FETCHA
	FETCHA
	FETCHA
	FETCHA
	FETCHA
	FETCHA
	FETCHA
	FETCHA
	LEAQ  64(DI), R14

on:
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
	XORL R15, R15
	ADDQ $128, R13 // B goes on with its next panel
	SUBQ $32, R10
	JG   tile
	TILERELEASE
	RET
