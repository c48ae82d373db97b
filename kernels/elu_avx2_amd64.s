#include "textflag.h"
#include "exp_amd64.h"

// ELU: vectors of 8, the last one under the mask Y15; no multiply-add is fused.

DATA masks<>+0(SB)/8, $-1
DATA masks<>+8(SB)/8, $-1
DATA masks<>+16(SB)/8, $-1
DATA masks<>+24(SB)/8, $-1
DATA masks<>+32(SB)/8, $0
DATA masks<>+40(SB)/8, $0
DATA masks<>+48(SB)/8, $0
DATA masks<>+56(SB)/8, $0
GLOBL masks<>(SB), RODATA|NOPTR, $64

// MASK makes Y15 the mask of the next min(CX, 8) values; R13 points at masks, R15 is 0.
#define MASK \
	MOVQ    $8, AX            \
	SUBQ    CX, AX            \
	CMOVQLT R15, AX           \
	VMOVUPS (R13)(AX*4), Y15

// The coefficients of the series, and the x above which it is used.
DATA series<>+0(SB)/8, $0x37d00d0137d00d01 // 1/40320
DATA series<>+8(SB)/8, $0x37d00d0137d00d01
DATA series<>+16(SB)/8, $0x37d00d0137d00d01
DATA series<>+24(SB)/8, $0x37d00d0137d00d01
DATA series<>+32(SB)/8, $0x39500d0139500d01 // 1/5040
DATA series<>+40(SB)/8, $0x39500d0139500d01
DATA series<>+48(SB)/8, $0x39500d0139500d01
DATA series<>+56(SB)/8, $0x39500d0139500d01
DATA series<>+64(SB)/8, $0x3ab60b613ab60b61 // 1/720
DATA series<>+72(SB)/8, $0x3ab60b613ab60b61
DATA series<>+80(SB)/8, $0x3ab60b613ab60b61
DATA series<>+88(SB)/8, $0x3ab60b613ab60b61
DATA series<>+96(SB)/8, $0x3c0888893c088889 // 1/120
DATA series<>+104(SB)/8, $0x3c0888893c088889
DATA series<>+112(SB)/8, $0x3c0888893c088889
DATA series<>+120(SB)/8, $0x3c0888893c088889
DATA series<>+128(SB)/8, $0x3d2aaaab3d2aaaab // 1/24
DATA series<>+136(SB)/8, $0x3d2aaaab3d2aaaab
DATA series<>+144(SB)/8, $0x3d2aaaab3d2aaaab
DATA series<>+152(SB)/8, $0x3d2aaaab3d2aaaab
DATA series<>+160(SB)/8, $0x3e2aaaab3e2aaaab // 1/6
DATA series<>+168(SB)/8, $0x3e2aaaab3e2aaaab
DATA series<>+176(SB)/8, $0x3e2aaaab3e2aaaab
DATA series<>+184(SB)/8, $0x3e2aaaab3e2aaaab
DATA series<>+192(SB)/8, $0xbeb33333beb33333 // -0.35
DATA series<>+200(SB)/8, $0xbeb33333beb33333
DATA series<>+208(SB)/8, $0xbeb33333beb33333
DATA series<>+216(SB)/8, $0xbeb33333beb33333
GLOBL series<>(SB), RODATA|NOPTR, $224

// func eluAVX2(x, y []float32)
TEXT ·eluAVX2(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DI
	LEAQ exps<>(SB), R14
	LEAQ series<>(SB), R12
	LEAQ masks<>(SB), R13
	XORQ R15, R15
	VXORPS Y9, Y9, Y9

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y0
	VMOVAPS Y0, Y1
	EXP(R14, Y1, Y2, Y3, Y4)
	VSUBPS 384(R14), Y1, Y1
	VMULPS (R12), Y0, Y4
	VADDPS 32(R12), Y4, Y4
	VMULPS Y0, Y4, Y4
	VADDPS 64(R12), Y4, Y4
	VMULPS Y0, Y4, Y4
	VADDPS 96(R12), Y4, Y4
	VMULPS Y0, Y4, Y4
	VADDPS 128(R12), Y4, Y4
	VMULPS Y0, Y4, Y4
	VADDPS 160(R12), Y4, Y4
	VMULPS Y0, Y4, Y4
	VADDPS 352(R14), Y4, Y4
	VMULPS Y0, Y4, Y4
	VADDPS 384(R14), Y4, Y4
	VMULPS Y0, Y4, Y4
	VCMPPS $0x1e, 192(R12), Y0, Y2
	VBLENDVPS Y2, Y4, Y1, Y1
	VCMPPS $0x1e, Y9, Y0, Y2
	VBLENDVPS Y2, Y0, Y1, Y1
	VMASKMOVPS Y1, Y15, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  each

done:
	VZEROUPPER
	RET

// func eluGradAVX2(y, dy, dx []float32)
TEXT ·eluGradAVX2(SB), NOSPLIT, $0-72
	MOVQ y_base+0(FP), SI
	MOVQ y_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ dx_base+48(FP), DI
	LEAQ masks<>(SB), R13
	XORQ R15, R15
	LEAQ exps<>(SB), R14
	VMOVUPS 384(R14), Y9

each:
	TESTQ CX, CX
	JLE   done
	MASK
	VMASKMOVPS (SI), Y15, Y0
	VMASKMOVPS (BX), Y15, Y1
	VADDPS Y9, Y0, Y0
	VMINPS Y0, Y9, Y0 // NaN stays: it is the second operand
	VMULPS Y1, Y0, Y0
	VMASKMOVPS Y0, Y15, (DI)
	ADDQ $32, SI
	ADDQ $32, BX
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  each

done:
	VZEROUPPER
	RET
