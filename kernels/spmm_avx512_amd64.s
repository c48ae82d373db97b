#include "textflag.h"

// Rows of Y = S·X, some columns of them at a time, summed in registers over the edges of the row.
// Edges of one row follow those of the row before it, so one pointer walks through columns and values.
// R8 the column of the edge, R9 its value, CX the row's end; BX and R12 X and its stride, DI and R13 those of Y.

#define LOADARGS \
	MOVQ  rows+0(FP), DX     \
	MOVQ  rowPtr+8(FP), SI   \
	MOVQ  col+16(FP), R8     \
	MOVQ  val+24(FP), R9     \
	MOVQ  step+32(FP), R10   \
	MOVQ  x+40(FP), BX       \
	MOVQ  ldx+48(FP), R12    \
	MOVQ  y+56(FP), DI       \
	MOVQ  ldy+64(FP), R13    \
	MOVQ  far+80(FP), R15    \
	SHLQ  $2, R12            \
	SHLQ  $2, R13            \
	LEAQ  (R8)(R15*4), R15   \
	MOVQ  (SI), AX           \
	LEAQ  (R8)(AX*4), R8     \
	IMULQ R10, AX            \
	ADDQ  AX, R9

// ROWEND sets CX to the place after the row's last column.
#define ROWEND \
	ADDQ $8, SI            \
	MOVQ (SI), CX          \
	MOVQ col+16(FP), AX    \
	LEAQ (AX)(CX*4), CX

// EDGE points AX at the edge's row of X and broadcasts its value.
#define EDGE \
	MOVLQSX      (R8), AX  \
	IMULQ        R12, AX   \
	ADDQ         BX, AX    \
	VBROADCASTSS (R9), Z31

// AHEAD points R11 at the row of X that comes 16 edges later, or jumps where there is none.
#define AHEAD(none) \
	CMPQ    R8, R15      \
	JAE     none         \
	MOVLQSX 64(R8), R11  \
	IMULQ   R12, R11     \
	ADDQ    BX, R11

#define NEXT(loop) \
	ADDQ $4, R8   \
	ADDQ R10, R9  \
	CMPQ R8, CX   \
	JB   loop

// K1 to K4 mask the last 64 columns or fewer.
#define MASKS \
	MOVQ  cols+72(FP), CX \
	MOVQ  $-1, AX         \
	NEGQ  CX              \
	SHRQ  CX, AX          \
	KMOVW AX, K1          \
	SHRQ  $16, AX         \
	KMOVW AX, K2          \
	SHRQ  $16, AX         \
	KMOVW AX, K3          \
	SHRQ  $16, AX         \
	KMOVW AX, K4

// func spmm256AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm256AVX512(SB), NOSPLIT, $0-89
	LOADARGS

row:
	ROWEND
	CMPB acc+88(FP), $0
	JNE  get
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	VPXORD Z8, Z8, Z8
	VPXORD Z9, Z9, Z9
	VPXORD Z10, Z10, Z10
	VPXORD Z11, Z11, Z11
	VPXORD Z12, Z12, Z12
	VPXORD Z13, Z13, Z13
	VPXORD Z14, Z14, Z14
	VPXORD Z15, Z15, Z15
	JMP  edges

get:
	VMOVUPS (DI), Z0
	VMOVUPS 64(DI), Z1
	VMOVUPS 128(DI), Z2
	VMOVUPS 192(DI), Z3
	VMOVUPS 256(DI), Z4
	VMOVUPS 320(DI), Z5
	VMOVUPS 384(DI), Z6
	VMOVUPS 448(DI), Z7
	VMOVUPS 512(DI), Z8
	VMOVUPS 576(DI), Z9
	VMOVUPS 640(DI), Z10
	VMOVUPS 704(DI), Z11
	VMOVUPS 768(DI), Z12
	VMOVUPS 832(DI), Z13
	VMOVUPS 896(DI), Z14
	VMOVUPS 960(DI), Z15

edges:
	CMPQ R8, CX
	JAE  put

edge:
	AHEAD(here)
	PREFETCHT0 (R11)
	PREFETCHT0 64(R11)
	PREFETCHT0 128(R11)
	PREFETCHT0 192(R11)
	PREFETCHT0 256(R11)
	PREFETCHT0 320(R11)
	PREFETCHT0 384(R11)
	PREFETCHT0 448(R11)
	PREFETCHT0 512(R11)
	PREFETCHT0 576(R11)
	PREFETCHT0 640(R11)
	PREFETCHT0 704(R11)
	PREFETCHT0 768(R11)
	PREFETCHT0 832(R11)
	PREFETCHT0 896(R11)
	PREFETCHT0 960(R11)

here:
	EDGE
	VFMADD231PS (AX), Z31, Z0
	VFMADD231PS 64(AX), Z31, Z1
	VFMADD231PS 128(AX), Z31, Z2
	VFMADD231PS 192(AX), Z31, Z3
	VFMADD231PS 256(AX), Z31, Z4
	VFMADD231PS 320(AX), Z31, Z5
	VFMADD231PS 384(AX), Z31, Z6
	VFMADD231PS 448(AX), Z31, Z7
	VFMADD231PS 512(AX), Z31, Z8
	VFMADD231PS 576(AX), Z31, Z9
	VFMADD231PS 640(AX), Z31, Z10
	VFMADD231PS 704(AX), Z31, Z11
	VFMADD231PS 768(AX), Z31, Z12
	VFMADD231PS 832(AX), Z31, Z13
	VFMADD231PS 896(AX), Z31, Z14
	VFMADD231PS 960(AX), Z31, Z15
	NEXT(edge)

put:
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	VMOVUPS Z8, 512(DI)
	VMOVUPS Z9, 576(DI)
	VMOVUPS Z10, 640(DI)
	VMOVUPS Z11, 704(DI)
	VMOVUPS Z12, 768(DI)
	VMOVUPS Z13, 832(DI)
	VMOVUPS Z14, 896(DI)
	VMOVUPS Z15, 960(DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// func spmm128AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm128AVX512(SB), NOSPLIT, $0-89
	LOADARGS

row:
	ROWEND
	CMPB acc+88(FP), $0
	JNE  get
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	JMP  edges

get:
	VMOVUPS (DI), Z0
	VMOVUPS 64(DI), Z1
	VMOVUPS 128(DI), Z2
	VMOVUPS 192(DI), Z3
	VMOVUPS 256(DI), Z4
	VMOVUPS 320(DI), Z5
	VMOVUPS 384(DI), Z6
	VMOVUPS 448(DI), Z7

edges:
	CMPQ R8, CX
	JAE  put

edge:
	AHEAD(here)
	PREFETCHT0 (R11)
	PREFETCHT0 64(R11)
	PREFETCHT0 128(R11)
	PREFETCHT0 192(R11)
	PREFETCHT0 256(R11)
	PREFETCHT0 320(R11)
	PREFETCHT0 384(R11)
	PREFETCHT0 448(R11)

here:
	EDGE
	VFMADD231PS (AX), Z31, Z0
	VFMADD231PS 64(AX), Z31, Z1
	VFMADD231PS 128(AX), Z31, Z2
	VFMADD231PS 192(AX), Z31, Z3
	VFMADD231PS 256(AX), Z31, Z4
	VFMADD231PS 320(AX), Z31, Z5
	VFMADD231PS 384(AX), Z31, Z6
	VFMADD231PS 448(AX), Z31, Z7
	NEXT(edge)

put:
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// func spmm64AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm64AVX512(SB), NOSPLIT, $0-89
	LOADARGS
	MASKS

row:
	ROWEND
	CMPB acc+88(FP), $0
	JNE  get
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	JMP  edges

get:
	VMOVUPS.Z (DI), K1, Z0
	VMOVUPS.Z 64(DI), K2, Z1
	VMOVUPS.Z 128(DI), K3, Z2
	VMOVUPS.Z 192(DI), K4, Z3

edges:
	CMPQ R8, CX
	JAE  put

edge:
	AHEAD(here)
	PREFETCHT0 (R11)
	PREFETCHT0 64(R11)
	PREFETCHT0 128(R11)
	PREFETCHT0 192(R11)

here:
	EDGE
	VFMADD231PS (AX), Z31, K1, Z0
	VFMADD231PS 64(AX), Z31, K2, Z1
	VFMADD231PS 128(AX), Z31, K3, Z2
	VFMADD231PS 192(AX), Z31, K4, Z3
	NEXT(edge)

put:
	VMOVUPS Z0, K1, (DI)
	VMOVUPS Z1, K2, 64(DI)
	VMOVUPS Z2, K3, 128(DI)
	VMOVUPS Z3, K4, 192(DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// func spmm16AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm16AVX512(SB), NOSPLIT, $0-89
	LOADARGS
	MASKS

row:
	ROWEND
	CMPB acc+88(FP), $0
	JNE  get
	VPXORD Z0, Z0, Z0
	JMP  edges

get:
	VMOVUPS.Z (DI), K1, Z0

edges:
	CMPQ R8, CX
	JAE  put

edge:
	AHEAD(here)
	PREFETCHT0 (R11)

here:
	EDGE
	VFMADD231PS (AX), Z31, K1, Z0
	NEXT(edge)

put:
	VMOVUPS Z0, K1, (DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET
