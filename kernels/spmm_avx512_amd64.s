#include "textflag.h"
#include "spmm_amd64.h"

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

// func spmm128AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm128AVX512(SB), NOSPLIT, $0-89
	LOADARGS(2)

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
	EDGE(Z31)
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
	LOADARGS(2)
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
	EDGE(Z31)
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
	LOADARGS(2)
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
	EDGE(Z31)
	VFMADD231PS (AX), Z31, K1, Z0
	NEXT(edge)

put:
	VMOVUPS Z0, K1, (DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET
