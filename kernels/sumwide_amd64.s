#include "textflag.h"

// The terms' slice headers are 24 bytes apart; AX is the offset in bytes that all vectors share.

// func sumWide16AVX2(dst []float32, terms [][]float32)
// len(dst) is a multiple of 16 and above 0; there is at least one term.
TEXT ·sumWide16AVX2(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ terms_base+24(FP), SI
	MOVQ terms_len+32(FP), R8
	XORQ AX, AX

block:
	MOVQ SI, R9
	MOVQ R8, R10
	MOVQ (R9), R11
	VCVTPS2PD (R11)(AX*1), Y0
	VCVTPS2PD 16(R11)(AX*1), Y1
	VCVTPS2PD 32(R11)(AX*1), Y2
	VCVTPS2PD 48(R11)(AX*1), Y3

term:
	ADDQ $24, R9
	DECQ R10
	JZ   store
	MOVQ (R9), R11
	VCVTPS2PD (R11)(AX*1), Y4
	VCVTPS2PD 16(R11)(AX*1), Y5
	VCVTPS2PD 32(R11)(AX*1), Y6
	VCVTPS2PD 48(R11)(AX*1), Y7
	VADDPD Y4, Y0, Y0
	VADDPD Y5, Y1, Y1
	VADDPD Y6, Y2, Y2
	VADDPD Y7, Y3, Y3
	JMP  term

store:
	VCVTPD2PSY Y0, X0
	VCVTPD2PSY Y1, X1
	VCVTPD2PSY Y2, X2
	VCVTPD2PSY Y3, X3
	VMOVUPS X0, (DI)(AX*1)
	VMOVUPS X1, 16(DI)(AX*1)
	VMOVUPS X2, 32(DI)(AX*1)
	VMOVUPS X3, 48(DI)(AX*1)
	ADDQ $64, AX
	SUBQ $16, CX
	JNZ  block
	VZEROUPPER
	RET

// func sumWide32AVX512(dst []float32, terms [][]float32)
// len(dst) is a multiple of 32 and above 0; there is at least one term.
TEXT ·sumWide32AVX512(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ terms_base+24(FP), SI
	MOVQ terms_len+32(FP), R8
	XORQ AX, AX

block:
	MOVQ SI, R9
	MOVQ R8, R10
	MOVQ (R9), R11
	VCVTPS2PD (R11)(AX*1), Z0
	VCVTPS2PD 32(R11)(AX*1), Z1
	VCVTPS2PD 64(R11)(AX*1), Z2
	VCVTPS2PD 96(R11)(AX*1), Z3

term:
	ADDQ $24, R9
	DECQ R10
	JZ   store
	MOVQ (R9), R11
	VCVTPS2PD (R11)(AX*1), Z4
	VCVTPS2PD 32(R11)(AX*1), Z5
	VCVTPS2PD 64(R11)(AX*1), Z6
	VCVTPS2PD 96(R11)(AX*1), Z7
	VADDPD Z4, Z0, Z0
	VADDPD Z5, Z1, Z1
	VADDPD Z6, Z2, Z2
	VADDPD Z7, Z3, Z3
	JMP  term

store:
	VCVTPD2PS Z0, Y0
	VCVTPD2PS Z1, Y1
	VCVTPD2PS Z2, Y2
	VCVTPD2PS Z3, Y3
	VMOVUPS Y0, (DI)(AX*1)
	VMOVUPS Y1, 32(DI)(AX*1)
	VMOVUPS Y2, 64(DI)(AX*1)
	VMOVUPS Y3, 96(DI)(AX*1)
	ADDQ $128, AX
	SUBQ $32, CX
	JNZ  block
	VZEROUPPER
	RET
