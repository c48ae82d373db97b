#include "textflag.h"

// Tiles of C from pairs of bfloat16 that follow each other in k, each pair a value of four bytes: those of
// gemm_avx512_amd64.s otherwise.

#define LOADARGS \
	MOVQ k+16(FP), CX   \
	MOVQ a+24(FP), AX   \
	MOVQ rs+32(FP), SI  \
	MOVQ cs+40(FP), DX  \
	MOVQ b+48(FP), BX   \
	SHLQ $2, SI         \
	SHLQ $2, DX         \
	LEAQ (SI)(SI*2), R8 \
	LEAQ (SI)(SI*4), R9 \
	LEAQ (R8)(SI*4), R10

#define LOADARGS14 \
	LOADARGS             \
	LEAQ (SI)(SI*8), R11 \
	LEAQ (R8)(SI*8), R12 \
	LEAQ (R9)(SI*8), R13

// C, its stride in bytes and the rows to go.
#define LOADC \
	MOVQ c+56(FP), DI    \
	MOVQ ldc+64(FP), R15 \
	SHLQ $2, R15         \
	MOVQ rows+0(FP), CX

// K1 masks the last of the columns in a vector: cols-less of 16.
#define MASK(less) \
	MOVQ cols+8(FP), CX \
	SUBQ $less, CX      \
	MOVL $1, AX         \
	SHLL CX, AX         \
	DECL AX             \
	KMOVW AX, K1

#define ZERO2(z0, z1) \
	VPXORD z0, z0, z0 \
	VPXORD z1, z1, z1

// DP adds to d, two columns a value, the products of the pairs of bfloat16 in n and m: VDPBF16PS, which Go's assembler
// does not know. Numbers of Z registers.
#define DP(d, n, m) \
	BYTE $0x62                                                                                                 \
	BYTE $(2 | (1-((d)>>4))<<4 | (1-(((m)>>3)&1))<<5 | (1-((m)>>4))<<6 | (1-(((d)>>3)&1))<<7) \
	BYTE $(6 | (15-((n)&15))<<3)                                                                               \
	BYTE $(0x40 | (1-((n)>>4))<<3)                                                                             \
	BYTE $0x52                                                                                                 \
	BYTE $(0xc0 | ((d)&7)<<3 | ((m)&7))

#define ROW2(at, z0, z1) \
	VBROADCASTSS at, Z2 \
	DP(z0, 2, 0)        \
	DP(z1, 2, 1)

#define ROW1(at, z) \
	VBROADCASTSS at, Z2 \
	DP(z, 2, 0)

#define GET2(z0, z1, end) \
	VMOVUPS   (DI), z0       \
	VMOVUPS.Z 64(DI), K1, z1 \
	ADDQ      R15, DI        \
	DECQ      CX             \
	JZ        end

#define PUT2(z0, z1, end) \
	VMOVUPS z0, (DI)       \
	VMOVUPS z1, K1, 64(DI) \
	ADDQ    R15, DI        \
	DECQ    CX             \
	JZ      end

#define GET1(z, end) \
	VMOVUPS.Z (DI), K1, z \
	ADDQ      R15, DI     \
	DECQ      CX          \
	JZ        end

#define PUT1(z, end) \
	VMOVUPS z, K1, (DI) \
	ADDQ    R15, DI     \
	DECQ    CX          \
	JZ      end

// func gemm14x32BF16(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)
TEXT ·gemm14x32BF16(SB), NOSPLIT, $0-73
	MASK(16)
	ZERO2(Z4, Z5)
	ZERO2(Z6, Z7)
	ZERO2(Z8, Z9)
	ZERO2(Z10, Z11)
	ZERO2(Z12, Z13)
	ZERO2(Z14, Z15)
	ZERO2(Z16, Z17)
	ZERO2(Z18, Z19)
	ZERO2(Z20, Z21)
	ZERO2(Z22, Z23)
	ZERO2(Z24, Z25)
	ZERO2(Z26, Z27)
	ZERO2(Z28, Z29)
	ZERO2(Z30, Z31)
	CMPB acc+72(FP), $0
	JEQ  start
	LOADC
	GET2(Z4, Z5, start)
	GET2(Z6, Z7, start)
	GET2(Z8, Z9, start)
	GET2(Z10, Z11, start)
	GET2(Z12, Z13, start)
	GET2(Z14, Z15, start)
	GET2(Z16, Z17, start)
	GET2(Z18, Z19, start)
	GET2(Z20, Z21, start)
	GET2(Z22, Z23, start)
	GET2(Z24, Z25, start)
	GET2(Z26, Z27, start)
	GET2(Z28, Z29, start)
	GET2(Z30, Z31, start)

start:
	LOADARGS14

loop:
	VMOVUPS (BX), Z0
	VMOVUPS 64(BX), Z1
	ROW2((AX), 4, 5)
	ROW2((AX)(SI*1), 6, 7)
	ROW2((AX)(SI*2), 8, 9)
	ROW2((AX)(R8*1), 10, 11)
	ROW2((AX)(SI*4), 12, 13)
	ROW2((AX)(R9*1), 14, 15)
	ROW2((AX)(R8*2), 16, 17)
	ROW2((AX)(R10*1), 18, 19)
	ROW2((AX)(SI*8), 20, 21)
	ROW2((AX)(R11*1), 22, 23)
	ROW2((AX)(R9*2), 24, 25)
	ROW2((AX)(R12*1), 26, 27)
	ROW2((AX)(R8*4), 28, 29)
	ROW2((AX)(R13*1), 30, 31)
	ADDQ DX, AX
	ADDQ $128, BX
	DECQ CX
	JNZ  loop
	LOADC
	PUT2(Z4, Z5, done)
	PUT2(Z6, Z7, done)
	PUT2(Z8, Z9, done)
	PUT2(Z10, Z11, done)
	PUT2(Z12, Z13, done)
	PUT2(Z14, Z15, done)
	PUT2(Z16, Z17, done)
	PUT2(Z18, Z19, done)
	PUT2(Z20, Z21, done)
	PUT2(Z22, Z23, done)
	PUT2(Z24, Z25, done)
	PUT2(Z26, Z27, done)
	PUT2(Z28, Z29, done)
	PUT2(Z30, Z31, done)

done:
	VZEROUPPER
	RET

// func gemm8x32BF16(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)
TEXT ·gemm8x32BF16(SB), NOSPLIT, $0-73
	MASK(16)
	ZERO2(Z4, Z5)
	ZERO2(Z6, Z7)
	ZERO2(Z8, Z9)
	ZERO2(Z10, Z11)
	ZERO2(Z12, Z13)
	ZERO2(Z14, Z15)
	ZERO2(Z16, Z17)
	ZERO2(Z18, Z19)
	CMPB acc+72(FP), $0
	JEQ  start
	LOADC
	GET2(Z4, Z5, start)
	GET2(Z6, Z7, start)
	GET2(Z8, Z9, start)
	GET2(Z10, Z11, start)
	GET2(Z12, Z13, start)
	GET2(Z14, Z15, start)
	GET2(Z16, Z17, start)
	GET2(Z18, Z19, start)

start:
	LOADARGS

loop:
	VMOVUPS (BX), Z0
	VMOVUPS 64(BX), Z1
	ROW2((AX), 4, 5)
	ROW2((AX)(SI*1), 6, 7)
	ROW2((AX)(SI*2), 8, 9)
	ROW2((AX)(R8*1), 10, 11)
	ROW2((AX)(SI*4), 12, 13)
	ROW2((AX)(R9*1), 14, 15)
	ROW2((AX)(R8*2), 16, 17)
	ROW2((AX)(R10*1), 18, 19)
	ADDQ DX, AX
	ADDQ $128, BX
	DECQ CX
	JNZ  loop
	LOADC
	PUT2(Z4, Z5, done)
	PUT2(Z6, Z7, done)
	PUT2(Z8, Z9, done)
	PUT2(Z10, Z11, done)
	PUT2(Z12, Z13, done)
	PUT2(Z14, Z15, done)
	PUT2(Z16, Z17, done)
	PUT2(Z18, Z19, done)

done:
	VZEROUPPER
	RET

// func gemm14x16BF16(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)
TEXT ·gemm14x16BF16(SB), NOSPLIT, $0-73
	MASK(0)
	ZERO2(Z4, Z5)
	ZERO2(Z6, Z7)
	ZERO2(Z8, Z9)
	ZERO2(Z10, Z11)
	ZERO2(Z12, Z13)
	ZERO2(Z14, Z15)
	ZERO2(Z16, Z17)
	CMPB acc+72(FP), $0
	JEQ  start
	LOADC
	GET1(Z4, start)
	GET1(Z5, start)
	GET1(Z6, start)
	GET1(Z7, start)
	GET1(Z8, start)
	GET1(Z9, start)
	GET1(Z10, start)
	GET1(Z11, start)
	GET1(Z12, start)
	GET1(Z13, start)
	GET1(Z14, start)
	GET1(Z15, start)
	GET1(Z16, start)
	GET1(Z17, start)

start:
	LOADARGS14

loop:
	VMOVUPS (BX), Z0
	ROW1((AX), 4)
	ROW1((AX)(SI*1), 5)
	ROW1((AX)(SI*2), 6)
	ROW1((AX)(R8*1), 7)
	ROW1((AX)(SI*4), 8)
	ROW1((AX)(R9*1), 9)
	ROW1((AX)(R8*2), 10)
	ROW1((AX)(R10*1), 11)
	ROW1((AX)(SI*8), 12)
	ROW1((AX)(R11*1), 13)
	ROW1((AX)(R9*2), 14)
	ROW1((AX)(R12*1), 15)
	ROW1((AX)(R8*4), 16)
	ROW1((AX)(R13*1), 17)
	ADDQ DX, AX
	ADDQ $64, BX
	DECQ CX
	JNZ  loop
	LOADC
	PUT1(Z4, done)
	PUT1(Z5, done)
	PUT1(Z6, done)
	PUT1(Z7, done)
	PUT1(Z8, done)
	PUT1(Z9, done)
	PUT1(Z10, done)
	PUT1(Z11, done)
	PUT1(Z12, done)
	PUT1(Z13, done)
	PUT1(Z14, done)
	PUT1(Z15, done)
	PUT1(Z16, done)
	PUT1(Z17, done)

done:
	VZEROUPPER
	RET

// func gemm8x16BF16(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)
TEXT ·gemm8x16BF16(SB), NOSPLIT, $0-73
	MASK(0)
	ZERO2(Z4, Z5)
	ZERO2(Z6, Z7)
	ZERO2(Z8, Z9)
	ZERO2(Z10, Z11)
	CMPB acc+72(FP), $0
	JEQ  start
	LOADC
	GET1(Z4, start)
	GET1(Z5, start)
	GET1(Z6, start)
	GET1(Z7, start)
	GET1(Z8, start)
	GET1(Z9, start)
	GET1(Z10, start)
	GET1(Z11, start)

start:
	LOADARGS

loop:
	VMOVUPS (BX), Z0
	ROW1((AX), 4)
	ROW1((AX)(SI*1), 5)
	ROW1((AX)(SI*2), 6)
	ROW1((AX)(R8*1), 7)
	ROW1((AX)(SI*4), 8)
	ROW1((AX)(R9*1), 9)
	ROW1((AX)(R8*2), 10)
	ROW1((AX)(R10*1), 11)
	ADDQ DX, AX
	ADDQ $64, BX
	DECQ CX
	JNZ  loop
	LOADC
	PUT1(Z4, done)
	PUT1(Z5, done)
	PUT1(Z6, done)
	PUT1(Z7, done)
	PUT1(Z8, done)
	PUT1(Z9, done)
	PUT1(Z10, done)
	PUT1(Z11, done)

done:
	VZEROUPPER
	RET
