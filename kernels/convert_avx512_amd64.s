#include "textflag.h"

// Conversions: vectors one by one, then the remaining values under a mask.

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

// The lower halves of 16 integers of 64 bits in two registers.
DATA lower<>+0(SB)/8, $0x0000000200000000
DATA lower<>+8(SB)/8, $0x0000000600000004
DATA lower<>+16(SB)/8, $0x0000000a00000008
DATA lower<>+24(SB)/8, $0x0000000e0000000c
DATA lower<>+32(SB)/8, $0x0000001200000010
DATA lower<>+40(SB)/8, $0x0000001600000014
DATA lower<>+48(SB)/8, $0x0000001a00000018
DATA lower<>+56(SB)/8, $0x0000001e0000001c
GLOBL lower<>(SB), RODATA|NOPTR, $64

// For slices whose length is a multiple of 16. Go processes the rest.

// func toFixed16AVX512(x []float32, up []float64, b []byte)
TEXT ·toFixed16AVX512(SB), NOSPLIT, $0-72
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ up_base+24(FP), DX
	MOVQ b_base+48(FP), DI
	MOVQ $0x4338000000000000, AX // 0x1.8p52
	VPBROADCASTQ AX, Z10
	VMOVDQU64 lower<>(SB), Z11
	TESTQ CX, CX
	JZ    done

each:
	VCVTPS2PD (SI), Z1
	VCVTPS2PD 32(SI), Z2
	VMULPD (DX), Z1, Z1
	VMULPD 64(DX), Z2, Z2
	VADDPD Z10, Z1, Z1
	VADDPD Z10, Z2, Z2
	VPERMT2D Z2, Z11, Z1
	VMOVDQU64 Z1, (DI)
	ADDQ $64, SI
	ADDQ $128, DX
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ  each

done:
	VZEROUPPER
	RET

// func fixed16AVX512(b []byte, steps []float64, x []float32)
TEXT ·fixed16AVX512(SB), NOSPLIT, $0-72
	MOVQ b_base+0(FP), SI
	MOVQ steps_base+24(FP), DX
	MOVQ x_base+48(FP), DI
	MOVQ x_len+56(FP), CX
	TESTQ CX, CX
	JZ    done

each:
	VCVTDQ2PD (SI), Z1
	VCVTDQ2PD 32(SI), Z2
	VMULPD (DX), Z1, Z1
	VMULPD 64(DX), Z2, Z2
	VCVTPD2PS Z1, Y1
	VCVTPD2PS Z2, Y2
	VMOVUPS Y1, (DI)
	VMOVUPS Y2, 32(DI)
	ADDQ $64, SI
	ADDQ $128, DX
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ  each

done:
	VZEROUPPER
	RET
