#include "textflag.h"

// Conversions: vectors one by one, then what is left under a mask.

// MASK makes K1 the mask of the last CX < 16 values.
#define MASK \
	MOVL  $1, AX  \
	SHLL  CX, AX  \
	DECL  AX      \
	KMOVW AX, K1

// ALL makes K1 the mask of a whole vector.
#define ALL \
	MOVL  $0xffff, AX \
	KMOVW AX, K1

#define SPLAT(bits, z) \
	MOVL $bits, AX     \
	VPBROADCASTD AX, z

// func toBF16AVX512(x []float32, y []uint16)
TEXT ·toBF16AVX512(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DI
	SPLAT(1, Z10)
	SPLAT(0x7fff, Z11)
	SPLAT(0x40, Z12)
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VPSRLD $16, Z1, Z2
	VPANDD Z10, Z2, Z3
	VPADDD Z11, Z1, Z4
	VPADDD Z3, Z4, Z4
	VPSRLD $16, Z4, Z4
	VCMPPS $3, Z1, Z1, K2
	VPORD Z12, Z2, K2, Z4
	VPMOVDW Z4, K1, (DI)
	ADDQ $64, SI
	ADDQ $32, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	MASK
	JMP   next

// func fromBF16AVX512(x []uint16, y []float32)
TEXT ·fromBF16AVX512(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DI
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VPMOVZXWD.Z (SI), K1, Z1
	VPSLLD $16, Z1, Z1
	VMOVUPS Z1, K1, (DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	MASK
	JMP   next

// func maxAbsAVX512(x []float32) float32
TEXT ·maxAbsAVX512(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	SPLAT(0x7fffffff, Z10)
	VPXORD Z0, Z0, Z0
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VPANDD Z10, Z1, Z1
	VPMAXUD Z1, Z0, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JGT  each

done:
	VEXTRACTI64X4 $1, Z0, Y1
	VPMAXUD Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPMAXUD X1, X0, X0
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	MASK
	JMP   next

// func toInt8AVX512(up float32, x []float32, y []int8)
TEXT ·toInt8AVX512(SB), NOSPLIT, $0-56
	VBROADCASTSS up+0(FP), Z0
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VMOVUPS.Z (SI), K1, Z1
	VMULPS Z0, Z1, Z1
	VCVTPS2DQ Z1, Z1
	VPMOVDB Z1, K1, (DI)
	ADDQ $64, SI
	ADDQ $16, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	MASK
	JMP   next

// func fromInt8AVX512(scale float32, x []int8, y []float32)
TEXT ·fromInt8AVX512(SB), NOSPLIT, $0-56
	VBROADCASTSS scale+0(FP), Z0
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI
	ALL

each:
	CMPQ CX, $16
	JLT  tail

next:
	VPMOVSXBD.Z (SI), K1, Z1
	VCVTDQ2PS Z1, Z1
	VMULPS Z0, Z1, Z1
	VMOVUPS Z1, K1, (DI)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

tail:
	TESTQ CX, CX
	JLE   done
	MASK
	JMP   next
