#include "textflag.h"

// Conversions of slices whose length is a multiple of 8. Go processes the rest.

#define SPLAT(bits, x, y) \
	MOVL $bits, AX     \
	VMOVD AX, x        \
	VPBROADCASTD x, y

// func toBF16x8AVX2(x []float32, y []uint16)
TEXT ·toBF16x8AVX2(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DI
	SPLAT(1, X10, Y10)
	SPLAT(0x7fff, X11, Y11)
	SPLAT(0x40, X12, Y12)
	TESTQ CX, CX
	JZ    done

each:
	VMOVUPS (SI), Y1
	VPSRLD $16, Y1, Y2
	VPAND Y10, Y2, Y3
	VPADDD Y11, Y1, Y4
	VPADDD Y3, Y4, Y4
	VPSRLD $16, Y4, Y4
	VPOR Y12, Y2, Y2
	VCMPPS $3, Y1, Y1, Y5
	VBLENDVPS Y5, Y2, Y4, Y4
	VPACKUSDW Y4, Y4, Y4
	VPERMQ $8, Y4, Y4
	VMOVUPS X4, (DI)
	ADDQ $32, SI
	ADDQ $16, DI
	SUBQ $8, CX
	JNZ  each

done:
	VZEROUPPER
	RET

// func fromBF16x8AVX2(x []uint16, y []float32)
TEXT ·fromBF16x8AVX2(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DI
	TESTQ CX, CX
	JZ    done

each:
	VPMOVZXWD (SI), Y1
	VPSLLD $16, Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  each

done:
	VZEROUPPER
	RET

// func maxAbs8AVX2(x []float32) float32
TEXT ·maxAbs8AVX2(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	SPLAT(0x7fffffff, X10, Y10)
	VPXOR Y0, Y0, Y0
	TESTQ CX, CX
	JZ    done

each:
	VPAND (SI), Y10, Y1
	VPMAXUD Y1, Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ  each

done:
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPMAXUD X1, X0, X0
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func toInt8x8AVX2(up float32, x []float32, y []int8)
TEXT ·toInt8x8AVX2(SB), NOSPLIT, $0-56
	VBROADCASTSS up+0(FP), Y0
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI
	TESTQ CX, CX
	JZ    done

each:
	VMULPS (SI), Y0, Y1
	VCVTPS2DQ Y1, Y1
	VPACKSSDW Y1, Y1, Y1
	VPERMQ $8, Y1, Y1
	VPACKSSWB X1, X1, X1
	VMOVQ X1, (DI)
	ADDQ $32, SI
	ADDQ $8, DI
	SUBQ $8, CX
	JNZ  each

done:
	VZEROUPPER
	RET

// func fromInt8x8AVX2(scale float32, x []int8, y []float32)
TEXT ·fromInt8x8AVX2(SB), NOSPLIT, $0-56
	VBROADCASTSS scale+0(FP), Y0
	MOVQ x_base+8(FP), SI
	MOVQ x_len+16(FP), CX
	MOVQ y_base+32(FP), DI
	TESTQ CX, CX
	JZ    done

each:
	VPMOVSXBD (SI), Y1
	VCVTDQ2PS Y1, Y1
	VMULPS Y0, Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ $8, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  each

done:
	VZEROUPPER
	RET

// func toFixed8AVX2(x []float32, up []float64, b []byte)
TEXT ·toFixed8AVX2(SB), NOSPLIT, $0-72
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ up_base+24(FP), DX
	MOVQ b_base+48(FP), DI
	MOVQ $0x4338000000000000, AX // 0x1.8p52
	VMOVQ AX, X10
	VPBROADCASTQ X10, Y10
	TESTQ CX, CX
	JZ    done

each:
	VCVTPS2PD (SI), Y1
	VCVTPS2PD 16(SI), Y2
	VMULPD (DX), Y1, Y1
	VMULPD 32(DX), Y2, Y2
	VADDPD Y10, Y1, Y1
	VADDPD Y10, Y2, Y2
	VSHUFPS $0x88, Y2, Y1, Y1
	VPERMQ $0xd8, Y1, Y1
	VMOVDQU Y1, (DI)
	ADDQ $32, SI
	ADDQ $64, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  each

done:
	VZEROUPPER
	RET

// func fixed8AVX2(b []byte, steps []float64, x []float32)
TEXT ·fixed8AVX2(SB), NOSPLIT, $0-72
	MOVQ b_base+0(FP), SI
	MOVQ steps_base+24(FP), DX
	MOVQ x_base+48(FP), DI
	MOVQ x_len+56(FP), CX
	TESTQ CX, CX
	JZ    done

each:
	VCVTDQ2PD (SI), Y1
	VCVTDQ2PD 16(SI), Y2
	VMULPD (DX), Y1, Y1
	VMULPD 32(DX), Y2, Y2
	VCVTPD2PSY Y1, X1
	VCVTPD2PSY Y2, X2
	VMOVUPS X1, (DI)
	VMOVUPS X2, 16(DI)
	ADDQ $32, SI
	ADDQ $64, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  each

done:
	VZEROUPPER
	RET
