#include "textflag.h"

// Tiles of C: up to 6 rows by 16 or 8 columns in registers, Y4 to Y15. A is read in place by broadcasts, element
// (i,p) at a[i·rs+p·cs]; B is packed. The last vector of a row of C is masked if it is not full.

// Eight ones and eight zeros: the mask of n columns begins at element 8-n.
DATA masks<>+0(SB)/8, $-1
DATA masks<>+8(SB)/8, $-1
DATA masks<>+16(SB)/8, $-1
DATA masks<>+24(SB)/8, $-1
DATA masks<>+32(SB)/8, $0
DATA masks<>+40(SB)/8, $0
DATA masks<>+48(SB)/8, $0
DATA masks<>+56(SB)/8, $0
GLOBL masks<>(SB), RODATA|NOPTR, $64

#define LOADARGS \
	MOVQ k+16(FP), CX   \
	MOVQ a+24(FP), AX   \
	MOVQ rs+32(FP), SI  \
	MOVQ cs+40(FP), DX  \
	MOVQ b+48(FP), BX   \
	SHLQ $2, SI         \
	SHLQ $2, DX         \
	LEAQ (SI)(SI*2), R8 \
	LEAQ (SI)(SI*4), R9

// Loads C, its stride in bytes, the number of rows and, in Y0, the mask of cols-less columns.
#define LOADC(less) \
	MOVQ    c+64(FP), DI     \
	MOVQ    ldc+72(FP), R10  \
	SHLQ    $2, R10          \
	MOVQ    cols+8(FP), R11  \
	MOVQ    $(less+8), R12   \
	SUBQ    R11, R12         \
	LEAQ    masks<>(SB), R13 \
	VMOVUPS (R13)(R12*4), Y0 \
	MOVQ    rows+0(FP), CX

#define ZERO2(y0, y1) \
	VXORPS y0, y0, y0 \
	VXORPS y1, y1, y1

#define ROW2(at, t, y0, y1) \
	VBROADCASTSS at, t     \
	VFMADD231PS  Y0, t, y0 \
	VFMADD231PS  Y1, t, y1

#define ROW1(at, t, y) \
	VBROADCASTSS at, t    \
	VFMADD231PS  Y0, t, y

#define GET2(y0, y1, end) \
	VMOVUPS    (DI), y0       \
	VMASKMOVPS 32(DI), Y0, y1 \
	ADDQ       R10, DI        \
	DECQ       CX             \
	JZ         end

#define PUT2(y0, y1, end) \
	VMOVUPS y0, (DI)   \
	VMOVUPS y1, 32(DI) \
	ADDQ    R10, DI    \
	DECQ    CX         \
	JZ      end

#define MASKPUT2(y0, y1, end) \
	VMOVUPS    y0, (DI)       \
	VMASKMOVPS y1, Y0, 32(DI) \
	ADDQ       R10, DI        \
	DECQ       CX             \
	JZ         end

#define GET1(y, end) \
	VMASKMOVPS (DI), Y0, y \
	ADDQ       R10, DI     \
	DECQ       CX          \
	JZ         end

#define PUT1(y, end) \
	VMOVUPS y, (DI) \
	ADDQ    R10, DI \
	DECQ    CX      \
	JZ      end

#define MASKPUT1(y, end) \
	VMASKMOVPS y, Y0, (DI) \
	ADDQ       R10, DI     \
	DECQ       CX          \
	JZ         end

// func gemm6x16AVX2(rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer, ldc, next int, acc bool)
TEXT ·gemm6x16AVX2(SB), NOSPLIT, $0-89
	ZERO2(Y4, Y5)
	ZERO2(Y6, Y7)
	ZERO2(Y8, Y9)
	ZERO2(Y10, Y11)
	ZERO2(Y12, Y13)
	ZERO2(Y14, Y15)
	CMPB acc+88(FP), $0
	JEQ  start
	LOADC(8)
	GET2(Y4, Y5, start)
	GET2(Y6, Y7, start)
	GET2(Y8, Y9, start)
	GET2(Y10, Y11, start)
	GET2(Y12, Y13, start)
	GET2(Y14, Y15, start)

start:
	LOADARGS

loop:
	VMOVUPS (BX), Y0
	VMOVUPS 32(BX), Y1
	ROW2((AX), Y2, Y4, Y5)
	ROW2((AX)(SI*1), Y3, Y6, Y7)
	ROW2((AX)(SI*2), Y2, Y8, Y9)
	ROW2((AX)(R8*1), Y3, Y10, Y11)
	ROW2((AX)(SI*4), Y2, Y12, Y13)
	ROW2((AX)(R9*1), Y3, Y14, Y15)
	ADDQ DX, AX
	ADDQ $64, BX
	DECQ CX
	JNZ  loop
	LOADC(8)
	CMPQ R11, $16
	JNE  masked
	PUT2(Y4, Y5, done)
	PUT2(Y6, Y7, done)
	PUT2(Y8, Y9, done)
	PUT2(Y10, Y11, done)
	PUT2(Y12, Y13, done)
	PUT2(Y14, Y15, done)

masked:
	MASKPUT2(Y4, Y5, done)
	MASKPUT2(Y6, Y7, done)
	MASKPUT2(Y8, Y9, done)
	MASKPUT2(Y10, Y11, done)
	MASKPUT2(Y12, Y13, done)
	MASKPUT2(Y14, Y15, done)

done:
	VZEROUPPER
	RET

// func gemm6x8AVX2(rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer, ldc, next int, acc bool)
TEXT ·gemm6x8AVX2(SB), NOSPLIT, $0-89
	ZERO2(Y4, Y5)
	ZERO2(Y6, Y7)
	ZERO2(Y8, Y9)
	CMPB acc+88(FP), $0
	JEQ  start
	LOADC(0)
	GET1(Y4, start)
	GET1(Y5, start)
	GET1(Y6, start)
	GET1(Y7, start)
	GET1(Y8, start)
	GET1(Y9, start)

start:
	LOADARGS

loop:
	VMOVUPS (BX), Y0
	ROW1((AX), Y2, Y4)
	ROW1((AX)(SI*1), Y3, Y5)
	ROW1((AX)(SI*2), Y2, Y6)
	ROW1((AX)(R8*1), Y3, Y7)
	ROW1((AX)(SI*4), Y2, Y8)
	ROW1((AX)(R9*1), Y3, Y9)
	ADDQ DX, AX
	ADDQ $32, BX
	DECQ CX
	JNZ  loop
	LOADC(0)
	CMPQ R11, $8
	JNE  masked
	PUT1(Y4, done)
	PUT1(Y5, done)
	PUT1(Y6, done)
	PUT1(Y7, done)
	PUT1(Y8, done)
	PUT1(Y9, done)

masked:
	MASKPUT1(Y4, done)
	MASKPUT1(Y5, done)
	MASKPUT1(Y6, done)
	MASKPUT1(Y7, done)
	MASKPUT1(Y8, done)
	MASKPUT1(Y9, done)

done:
	VZEROUPPER
	RET
