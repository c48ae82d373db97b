#include "textflag.h"
#include "exp_avx512_amd64.h"

// ELU: vectors of 16, the last one under the mask K1; no multiply-add is fused.

#define TAIL \
	MOVL  $1, AX \
	SHLL  CX, AX \
	DECL  AX     \
	KMOVW AX, K1

#define ALL \
	MOVL  $0xffff, AX \
	KMOVW AX, K1

// func eluAVX512(x, y []float32)
TEXT ·eluAVX512(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DI
	EXPS512
	SPLAT(0x37d00d01, Z25) // 1/40320
	SPLAT(0x39500d01, Z26) // 1/5040
	SPLAT(0x3ab60b61, Z27) // 1/720
	SPLAT(0x3c088889, Z28) // 1/120
	SPLAT(0x3d2aaaab, Z29) // 1/24
	SPLAT(0x3e2aaaab, Z30) // 1/6
	SPLAT(0xbeb33333, Z31) // -0.35
	VPXORD Z10, Z10, Z10
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z0
	EXP512(Z0)
	VMULPS Z2, Z3, Z3
	VSUBPS Z23, Z3, Z3
	VMULPS Z25, Z0, Z4
	VADDPS Z26, Z4, Z4
	VMULPS Z0, Z4, Z4
	VADDPS Z27, Z4, Z4
	VMULPS Z0, Z4, Z4
	VADDPS Z28, Z4, Z4
	VMULPS Z0, Z4, Z4
	VADDPS Z29, Z4, Z4
	VMULPS Z0, Z4, Z4
	VADDPS Z30, Z4, Z4
	VMULPS Z0, Z4, Z4
	VADDPS Z22, Z4, Z4
	VMULPS Z0, Z4, Z4
	VADDPS Z23, Z4, Z4
	VMULPS Z0, Z4, Z4
	VCMPPS $0x1e, Z31, Z0, K2 // values for the series
	VMOVAPS Z4, K2, Z3
	VCMPPS $0x1e, Z10, Z0, K2
	VMOVAPS Z0, K2, Z3
	VMOVUPS Z3, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next

// func eluGradAVX512(y, dy, dx []float32)
TEXT ·eluGradAVX512(SB), NOSPLIT, $0-72
	MOVQ y_base+0(FP), SI
	MOVQ y_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ dx_base+48(FP), DI
	SPLAT(0x3f800000, Z23) // 1
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z0
	VADDPS Z23, Z0, Z0
	VMINPS Z0, Z23, Z0 // NaN stays: it is the second operand
	VMULPS.Z (BX), Z0, K1, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $64, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	TAIL
	JMP   next
