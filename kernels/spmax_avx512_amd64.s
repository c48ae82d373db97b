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

// func spmax64AVX512(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer, lda, cols int)
TEXT ·spmax64AVX512(SB), NOSPLIT, $0-80
	LOADARGS
	MASKS

row:
	ADDQ $8, SI
	MOVQ (SI), CX
	MOVQ col+16(FP), AX
	LEAQ (AX)(CX*4), CX
	CMPQ R8, CX
	JAE  next
	VMOVUPS.Z (DI), K1, Z0
	VMOVDQU32.Z (R9), K1, Z4
	VMOVUPS.Z 64(DI), K2, Z1
	VMOVDQU32.Z 64(R9), K2, Z5
	VMOVUPS.Z 128(DI), K3, Z2
	VMOVDQU32.Z 128(R9), K3, Z6
	VMOVUPS.Z 192(DI), K4, Z3
	VMOVDQU32.Z 192(R9), K4, Z7

edge:
	MOVLQSX (R8), AX
	VPBROADCASTD (R8), Z8
	IMULQ R12, AX
	ADDQ BX, AX
	VMOVUPS.Z (AX), K1, Z9
	VCMPPS $0x1e, Z0, Z9, K1, K5
	VMOVAPS Z9, K5, Z0
	VMOVDQA32 Z8, K5, Z4
	VMOVUPS.Z 64(AX), K2, Z9
	VCMPPS $0x1e, Z1, Z9, K2, K5
	VMOVAPS Z9, K5, Z1
	VMOVDQA32 Z8, K5, Z5
	VMOVUPS.Z 128(AX), K3, Z9
	VCMPPS $0x1e, Z2, Z9, K3, K5
	VMOVAPS Z9, K5, Z2
	VMOVDQA32 Z8, K5, Z6
	VMOVUPS.Z 192(AX), K4, Z9
	VCMPPS $0x1e, Z3, Z9, K4, K5
	VMOVAPS Z9, K5, Z3
	VMOVDQA32 Z8, K5, Z7
	ADDQ $4, R8
	CMPQ R8, CX
	JB   edge
	VMOVUPS Z0, K1, (DI)
	VMOVDQU32 Z4, K1, (R9)
	VMOVUPS Z1, K2, 64(DI)
	VMOVDQU32 Z5, K2, 64(R9)
	VMOVUPS Z2, K3, 128(DI)
	VMOVDQU32 Z6, K3, 128(R9)
	VMOVUPS Z3, K4, 192(DI)
	VMOVDQU32 Z7, K4, 192(R9)

next:
	ADDQ R13, DI
	ADDQ R10, R9
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// func spmax16AVX512(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer, lda, cols int)
TEXT ·spmax16AVX512(SB), NOSPLIT, $0-80
	LOADARGS
	MASKS

row:
	ADDQ $8, SI
	MOVQ (SI), CX
	MOVQ col+16(FP), AX
	LEAQ (AX)(CX*4), CX
	CMPQ R8, CX
	JAE  next
	VMOVUPS.Z (DI), K1, Z0
	VMOVDQU32.Z (R9), K1, Z4

edge:
	MOVLQSX (R8), AX
	VPBROADCASTD (R8), Z8
	IMULQ R12, AX
	ADDQ BX, AX
	VMOVUPS.Z (AX), K1, Z9
	VCMPPS $0x1e, Z0, Z9, K1, K5
	VMOVAPS Z9, K5, Z0
	VMOVDQA32 Z8, K5, Z4
	ADDQ $4, R8
	CMPQ R8, CX
	JB   edge
	VMOVUPS Z0, K1, (DI)
	VMOVDQU32 Z4, K1, (R9)

next:
	ADDQ R13, DI
	ADDQ R10, R9
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET
