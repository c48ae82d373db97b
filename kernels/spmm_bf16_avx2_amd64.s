#include "textflag.h"
#include "spmm_amd64.h"

// Sparse times dense where X is bfloat16: rows are widened, by a shift, as they are fetched.

// func spmmBF16x64AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x64AVX2(SB), NOSPLIT, $0-89
	LOADARGS(1)

row:
	ROWEND
	CMPB acc+88(FP), $0
	JNE  get
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	JMP  edges

get:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VMOVUPS 128(DI), Y4
	VMOVUPS 160(DI), Y5
	VMOVUPS 192(DI), Y6
	VMOVUPS 224(DI), Y7

edges:
	CMPQ R8, CX
	JAE  put

edge:
	AHEAD(here)
	PREFETCHT0 (R11)
	PREFETCHT0 64(R11)

here:
	EDGE(Y15)
	VPMOVZXWD (AX), Y8
	VPMOVZXWD 16(AX), Y9
	VPMOVZXWD 32(AX), Y10
	VPMOVZXWD 48(AX), Y11
	VPMOVZXWD 64(AX), Y12
	VPMOVZXWD 80(AX), Y13
	VPSLLD $16, Y8, Y8
	VPSLLD $16, Y9, Y9
	VPSLLD $16, Y10, Y10
	VPSLLD $16, Y11, Y11
	VPSLLD $16, Y12, Y12
	VPSLLD $16, Y13, Y13
	VFMADD231PS Y8, Y15, Y0
	VFMADD231PS Y9, Y15, Y1
	VFMADD231PS Y10, Y15, Y2
	VFMADD231PS Y11, Y15, Y3
	VFMADD231PS Y12, Y15, Y4
	VFMADD231PS Y13, Y15, Y5
	VPMOVZXWD 96(AX), Y8
	VPMOVZXWD 112(AX), Y9
	VPSLLD $16, Y8, Y8
	VPSLLD $16, Y9, Y9
	VFMADD231PS Y8, Y15, Y6
	VFMADD231PS Y9, Y15, Y7
	NEXT(edge)

put:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// func spmmBF16x8AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x8AVX2(SB), NOSPLIT, $0-89
	LOADARGS(1)

row:
	ROWEND
	CMPB acc+88(FP), $0
	JNE  get
	VXORPS Y0, Y0, Y0
	JMP  edges

get:
	VMOVUPS (DI), Y0

edges:
	CMPQ R8, CX
	JAE  put

edge:
	AHEAD(here)
	PREFETCHT0 (R11)

here:
	EDGE(Y15)
	VPMOVZXWD (AX), Y8
	VPSLLD $16, Y8, Y8
	VFMADD231PS Y8, Y15, Y0
	NEXT(edge)

put:
	VMOVUPS Y0, (DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// NARROW is the function for fewer columns, loaded by WIDEN, and in Y by GET and PUT.
#define NARROW(WIDEN, GET, PUT) \
	LOADARGS(1)                \
row:                           \
	ROWEND                     \
	VXORPS X0, X0, X0          \
	CMPB acc+88(FP), $0        \
	JEQ  edges                 \
	GET                        \
edges:                         \
	CMPQ R8, CX                \
	JAE  put                   \
edge:                          \
	AHEAD(here)                \
	PREFETCHT0 (R11)           \
here:                          \
	EDGE(X15)                  \
	WIDEN                      \
	VPSLLD $16, X8, X8         \
	VFMADD231PS X8, X15, X0    \
	NEXT(edge)                 \
put:                           \
	PUT                        \
	ADDQ R13, DI               \
	DECQ DX                    \
	JNZ  row                   \
	RET

#define WIDEN4 VPMOVZXWD (AX), X8
#define GET4   VMOVUPS (DI), X0
#define PUT4   VMOVUPS X0, (DI)

#define WIDEN2 \
	VMOVD     (AX), X8 \
	VPMOVZXWD X8, X8
#define GET2 VMOVQ (DI), X0
#define PUT2 VMOVQ X0, (DI)

#define WIDEN1 \
	MOVWLZX (AX), AX \
	VMOVD   AX, X8
#define GET1 VMOVSS (DI), X0
#define PUT1 VMOVSS X0, (DI)

// func spmmBF16x4AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x4AVX2(SB), NOSPLIT, $0-89
	NARROW(WIDEN4, GET4, PUT4)

// func spmmBF16x2AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x2AVX2(SB), NOSPLIT, $0-89
	NARROW(WIDEN2, GET2, PUT2)

// func spmmBF16x1AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmmBF16x1AVX2(SB), NOSPLIT, $0-89
	NARROW(WIDEN1, GET1, PUT1)
