#include "textflag.h"

// Maxima over edges by rows, some columns at a time in registers: Y's values, and the columns of S with the maxima. R8
// points at the edge's column, CX at the row's end; BX and R12 are X and its stride, DI and R13 are Y's, R9 and R10
// are arg's. An unordered comparison is false, so NaN is ignored.

#define LOADARGS \
	MOVQ rows+0(FP), DX    \
	MOVQ rowPtr+8(FP), SI  \
	MOVQ col+16(FP), R8    \
	MOVQ x+24(FP), BX      \
	MOVQ ldx+32(FP), R12   \
	MOVQ y+40(FP), DI      \
	MOVQ ldy+48(FP), R13   \
	MOVQ arg+56(FP), R9    \
	MOVQ lda+64(FP), R10   \
	SHLQ $2, R12           \
	SHLQ $2, R13           \
	SHLQ $2, R10           \
	MOVQ (SI), AX          \
	LEAQ (R8)(AX*4), R8

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

// Y14 masks the last 8 columns or fewer.
#define MASK \
	MOVQ    cols+72(FP), CX   \
	MOVQ    $8, AX            \
	SUBQ    CX, AX            \
	LEAQ    masks<>(SB), R11  \
	VMOVUPS (R11)(AX*4), Y14

// func spmax32AVX2(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer, lda, cols int)
TEXT ·spmax32AVX2(SB), NOSPLIT, $0-80
	LOADARGS

row:
	ADDQ $8, SI
	MOVQ (SI), CX
	MOVQ col+16(FP), AX
	LEAQ (AX)(CX*4), CX
	CMPQ R8, CX
	JAE  next
	VMOVUPS (DI), Y0
	VMOVUPS (R9), Y4
	VMOVUPS 32(DI), Y1
	VMOVUPS 32(R9), Y5
	VMOVUPS 64(DI), Y2
	VMOVUPS 64(R9), Y6
	VMOVUPS 96(DI), Y3
	VMOVUPS 96(R9), Y7

edge:
	MOVLQSX (R8), AX
	VPBROADCASTD (R8), Y8
	IMULQ R12, AX
	ADDQ BX, AX
	VMOVUPS (AX), Y9
	VCMPPS $0x1e, Y0, Y9, Y10
	VBLENDVPS Y10, Y9, Y0, Y0
	VBLENDVPS Y10, Y8, Y4, Y4
	VMOVUPS 32(AX), Y9
	VCMPPS $0x1e, Y1, Y9, Y10
	VBLENDVPS Y10, Y9, Y1, Y1
	VBLENDVPS Y10, Y8, Y5, Y5
	VMOVUPS 64(AX), Y9
	VCMPPS $0x1e, Y2, Y9, Y10
	VBLENDVPS Y10, Y9, Y2, Y2
	VBLENDVPS Y10, Y8, Y6, Y6
	VMOVUPS 96(AX), Y9
	VCMPPS $0x1e, Y3, Y9, Y10
	VBLENDVPS Y10, Y9, Y3, Y3
	VBLENDVPS Y10, Y8, Y7, Y7
	ADDQ $4, R8
	CMPQ R8, CX
	JB   edge
	VMOVUPS Y0, (DI)
	VMOVUPS Y4, (R9)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y5, 32(R9)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y6, 64(R9)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y7, 96(R9)

next:
	ADDQ R13, DI
	ADDQ R10, R9
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// func spmax8AVX2(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer, lda, cols int)
TEXT ·spmax8AVX2(SB), NOSPLIT, $0-80
	LOADARGS
	MASK

row:
	ADDQ $8, SI
	MOVQ (SI), CX
	MOVQ col+16(FP), AX
	LEAQ (AX)(CX*4), CX
	CMPQ R8, CX
	JAE  next
	VMASKMOVPS (DI), Y14, Y0
	VMASKMOVPS (R9), Y14, Y4

edge:
	MOVLQSX (R8), AX
	VPBROADCASTD (R8), Y8
	IMULQ R12, AX
	ADDQ BX, AX
	VMASKMOVPS (AX), Y14, Y9
	VCMPPS $0x1e, Y0, Y9, Y10
	VBLENDVPS Y10, Y9, Y0, Y0
	VBLENDVPS Y10, Y8, Y4, Y4
	ADDQ $4, R8
	CMPQ R8, CX
	JB   edge
	VMASKMOVPS Y0, Y14, (DI)
	VMASKMOVPS Y4, Y14, (R9)

next:
	ADDQ R13, DI
	ADDQ R10, R9
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET
