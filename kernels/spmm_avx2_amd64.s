#include "textflag.h"
#include "spmm_amd64.h"

// Y14 masks the last 8 columns or fewer.
#define MASK \
	MOVQ    cols+72(FP), CX   \
	MOVQ    $8, AX            \
	SUBQ    CX, AX            \
	LEAQ    masks<>(SB), R11  \
	VMOVUPS (R11)(AX*4), Y14

DATA masks<>+0(SB)/8, $-1
DATA masks<>+8(SB)/8, $-1
DATA masks<>+16(SB)/8, $-1
DATA masks<>+24(SB)/8, $-1
DATA masks<>+32(SB)/8, $0
DATA masks<>+40(SB)/8, $0
DATA masks<>+48(SB)/8, $0
DATA masks<>+56(SB)/8, $0
GLOBL masks<>(SB), RODATA|NOPTR, $64

// func spmm64AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm64AVX2(SB), NOSPLIT, $0-89
	LOADARGS(2)

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
	PREFETCHT0 128(R11)
	PREFETCHT0 192(R11)

here:
	EDGE(Y15)
	VFMADD231PS (AX), Y15, Y0
	VFMADD231PS 32(AX), Y15, Y1
	VFMADD231PS 64(AX), Y15, Y2
	VFMADD231PS 96(AX), Y15, Y3
	VFMADD231PS 128(AX), Y15, Y4
	VFMADD231PS 160(AX), Y15, Y5
	VFMADD231PS 192(AX), Y15, Y6
	VFMADD231PS 224(AX), Y15, Y7
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

// func spmm32AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm32AVX2(SB), NOSPLIT, $0-89
	LOADARGS(2)

row:
	ROWEND
	CMPB acc+88(FP), $0
	JNE  get
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	JMP  edges

get:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3

edges:
	CMPQ R8, CX
	JAE  put

edge:
	AHEAD(here)
	PREFETCHT0 (R11)
	PREFETCHT0 64(R11)

here:
	EDGE(Y15)
	VFMADD231PS (AX), Y15, Y0
	VFMADD231PS 32(AX), Y15, Y1
	VFMADD231PS 64(AX), Y15, Y2
	VFMADD231PS 96(AX), Y15, Y3
	NEXT(edge)

put:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// func spmm8AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
TEXT ·spmm8AVX2(SB), NOSPLIT, $0-89
	LOADARGS(2)
	MASK

row:
	ROWEND
	CMPB acc+88(FP), $0
	JNE  get
	VXORPS Y0, Y0, Y0
	JMP  edges

get:
	VMASKMOVPS (DI), Y14, Y0

edges:
	CMPQ R8, CX
	JAE  put

edge:
	AHEAD(here)
	PREFETCHT0 (R11)

here:
	EDGE(Y15)
	VMASKMOVPS (AX), Y14, Y1
	VFMADD231PS Y1, Y15, Y0
	NEXT(edge)

put:
	VMASKMOVPS Y0, Y14, (DI)
	ADDQ R13, DI
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET
