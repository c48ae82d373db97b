#include "textflag.h"

// Loops over slices: vectors in fours, then one by one, then what is left under a mask.

// Eight ones and eight zeros: the mask of n values begins 8-n in.
DATA masks<>+0(SB)/8, $0xffffffffffffffff
DATA masks<>+8(SB)/8, $0xffffffffffffffff
DATA masks<>+16(SB)/8, $0xffffffffffffffff
DATA masks<>+24(SB)/8, $0xffffffffffffffff
DATA masks<>+32(SB)/8, $0x0000000000000000
DATA masks<>+40(SB)/8, $0x0000000000000000
DATA masks<>+48(SB)/8, $0x0000000000000000
DATA masks<>+56(SB)/8, $0x0000000000000000
GLOBL masks<>(SB), RODATA|NOPTR, $64

// MASK makes Y5 the mask of the last CX < 8 values.
#define MASK \
	MOVQ    $8, AX           \
	SUBQ    CX, AX           \
	LEAQ    masks<>(SB), DX  \
	VMOVUPS (DX)(AX*4), Y5

// func maxIndexAVX2(col []int32) uint32
TEXT ·maxIndexAVX2(SB), NOSPLIT, $0-28
	VXORPS Y0, Y0, Y0
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	MOVQ col_base+0(FP), SI
	MOVQ col_len+8(FP), CX

many:
	CMPQ CX, $32
	JLT  each
	VPMAXUD (SI), Y0, Y0
	VPMAXUD 32(SI), Y2, Y2
	VPMAXUD 64(SI), Y3, Y3
	VPMAXUD 96(SI), Y4, Y4
	ADDQ $128, SI
	SUBQ $32, CX
	JMP  many

each:
	CMPQ CX, $8
	JLT  tail
	VPMAXUD (SI), Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VPMASKMOVD (SI), Y5, Y1
	VPMAXUD Y1, Y0, Y0

done:
	VPMAXUD Y2, Y0, Y0
	VPMAXUD Y4, Y3, Y3
	VPMAXUD Y3, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPMAXUD X1, X0, X0
	VMOVD X0, AX
	MOVL AX, ret+24(FP)
	VZEROUPPER
	RET

// func addWideAVX2(x []float32, sum []float64)
TEXT ·addWideAVX2(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ sum_base+24(FP), DI

many:
	CMPQ CX, $16
	JLT  each
	VCVTPS2PD (SI), Y1
	VADDPD (DI), Y1, Y1
	VMOVUPD Y1, (DI)
	VCVTPS2PD 16(SI), Y1
	VADDPD 32(DI), Y1, Y1
	VMOVUPD Y1, 32(DI)
	VCVTPS2PD 32(SI), Y1
	VADDPD 64(DI), Y1, Y1
	VMOVUPD Y1, 64(DI)
	VCVTPS2PD 48(SI), Y1
	VADDPD 96(DI), Y1, Y1
	VMOVUPD Y1, 96(DI)
	ADDQ $64, SI
	ADDQ $128, DI
	SUBQ $16, CX
	JMP  many

each:
	CMPQ CX, $4
	JLT  tail
	VCVTPS2PD (SI), Y1
	VADDPD (DI), Y1, Y1
	VMOVUPD Y1, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $4, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	VMOVSS (SI), X1
	VCVTSS2SD X1, X1, X1
	VADDSD (DI), X1, X1
	VMOVSD X1, (DI)
	ADDQ $4, SI
	ADDQ $8, DI
	DECQ CX
	JMP  tail

done:
	VZEROUPPER
	RET

// Multiples 0 to 7 of 0x9e3779b9, which tells columns apart.
DATA columns<>+0(SB)/8, $0x9e3779b900000000
DATA columns<>+8(SB)/8, $0xdaa66d2b3c6ef372
DATA columns<>+16(SB)/8, $0x1715609d78dde6e4
DATA columns<>+24(SB)/8, $0x5384540fb54cda56
GLOBL columns<>(SB), RODATA|NOPTR, $32

// MIX makes of v, places told apart, random bits (t is scratch), and of t the factors: Y10 where they are kept.
#define MIX(v, t) \
	VPSRLD   $16, v, t  \
	VPXOR    t, v, v    \
	VPMULLD  Y2, v, v   \
	VPSRLD   $15, v, t  \
	VPXOR    t, v, v    \
	VPMULLD  Y3, v, v   \
	VPSRLD   $16, v, t  \
	VPXOR    t, v, v    \
	VPMAXUD  Y4, v, t   \
	VPCMPEQD t, v, t    \
	VPAND    t, Y10, t

// FACTORS makes Y2 and Y3 the factors of MIX.
#define FACTORS \
	MOVL         $0x7feb352d, AX \
	VMOVD        AX, X2          \
	VPBROADCASTD X2, Y2          \
	MOVL         $0x846ca68b, AX \
	VMOVD        AX, X3          \
	VPBROADCASTD X3, Y3

// func dropoutAVX2(lo, hi, limit uint32, up float32, x, y []float32, add bool)
TEXT ·dropoutAVX2(SB), NOSPLIT, $0-65
	VBROADCASTSS lo+0(FP), Y0
	VPADDD columns<>(SB), Y0, Y0
	VBROADCASTSS hi+4(FP), Y1
	VBROADCASTSS limit+8(FP), Y4
	VBROADCASTSS up+12(FP), Y10
	FACTORS
	MOVL $0xf1bbcdc8, AX
	VMOVD AX, X6
	VPBROADCASTD X6, Y6
	MOVQ x_base+16(FP), SI
	MOVQ x_len+24(FP), CX
	MOVQ y_base+40(FP), DI
	MOVBLZX add+64(FP), R8
	TESTL R8, R8
	JNZ  addeach

each:
	CMPQ CX, $8
	JLT  tail
	VPXOR Y0, Y1, Y7
	VPADDD Y6, Y0, Y0
	MIX(Y7, Y8)
	VMULPS (SI), Y8, Y8
	VMOVUPS Y8, (DI)
	PREFETCHT0 2048(SI)
	PREFETCHT0 2048(DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VPXOR Y0, Y1, Y7
	MIX(Y7, Y8)
	VMASKMOVPS (SI), Y5, Y9
	VMULPS Y9, Y8, Y8
	VMASKMOVPS Y8, Y5, (DI)

done:
	VZEROUPPER
	RET

addeach:
	CMPQ CX, $8
	JLT  addtail
	VPXOR Y0, Y1, Y7
	VPADDD Y6, Y0, Y0
	MIX(Y7, Y8)
	VMULPS (SI), Y8, Y8
	VADDPS (DI), Y8, Y8
	VMOVUPS Y8, (DI)
	PREFETCHT0 2048(SI)
	PREFETCHT0 2048(DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  addeach

addtail:
	TESTQ CX, CX
	JZ    done
	MASK
	VPXOR Y0, Y1, Y7
	MIX(Y7, Y8)
	VMASKMOVPS (SI), Y5, Y9
	VMULPS Y9, Y8, Y8
	VMASKMOVPS (DI), Y5, Y9
	VADDPS Y9, Y8, Y8
	VMASKMOVPS Y8, Y5, (DI)
	JMP  done

// func dropColumnsAVX2(lo, hi, limit uint32, up float32, col []int32, x, y []float32)
TEXT ·dropColumnsAVX2(SB), NOSPLIT, $0-88
	VBROADCASTSS lo+0(FP), Y0
	VBROADCASTSS hi+4(FP), Y1
	VBROADCASTSS limit+8(FP), Y4
	VBROADCASTSS up+12(FP), Y10
	FACTORS
	MOVL $0x9e3779b9, AX
	VMOVD AX, X6
	VPBROADCASTD X6, Y6
	MOVQ col_base+16(FP), BX
	MOVQ col_len+24(FP), CX
	MOVQ x_base+40(FP), SI
	MOVQ y_base+64(FP), DI

each:
	CMPQ CX, $8
	JLT  tail
	VPMULLD (BX), Y6, Y7
	VPADDD Y0, Y7, Y7
	VPXOR Y1, Y7, Y7
	MIX(Y7, Y8)
	VMULPS (SI), Y8, Y8
	VMOVUPS Y8, (DI)
	ADDQ $32, BX
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VMASKMOVPS (BX), Y5, Y7
	VPMULLD Y7, Y6, Y7
	VPADDD Y0, Y7, Y7
	VPXOR Y1, Y7, Y7
	MIX(Y7, Y8)
	VMASKMOVPS (SI), Y5, Y9
	VMULPS Y9, Y8, Y8
	VMASKMOVPS Y8, Y5, (DI)

done:
	VZEROUPPER
	RET

// func dropRowsAVX2(keys []uint64, add, limit uint32, up float32, row []int32, x, y []float32)
TEXT ·dropRowsAVX2(SB), NOSPLIT, $0-112
	VBROADCASTSS add+24(FP), Y0
	VBROADCASTSS limit+28(FP), Y4
	VBROADCASTSS up+32(FP), Y10
	FACTORS
	MOVQ keys_base+0(FP), R8
	MOVQ row_base+40(FP), BX
	MOVQ row_len+48(FP), CX
	MOVQ x_base+64(FP), SI
	MOVQ y_base+88(FP), DI
	VPCMPEQD Y5, Y5, Y5

each:
	CMPQ CX, $8
	JGE  some
	TESTQ CX, CX
	JZ   done
	MASK

some:
	VMASKMOVPS (BX), Y5, Y9
	VMOVAPS Y5, Y12
	VMOVAPS Y5, Y13
	VPXOR Y7, Y7, Y7
	VPXOR Y11, Y11, Y11
	VPGATHERDD Y12, (R8)(Y9*8), Y7
	VPGATHERDD Y13, 4(R8)(Y9*8), Y11
	VPADDD Y0, Y7, Y7
	VPXOR Y11, Y7, Y7
	MIX(Y7, Y8)
	VMASKMOVPS (SI), Y5, Y9
	VMULPS Y9, Y8, Y8
	VMASKMOVPS Y8, Y5, (DI)
	ADDQ $32, BX
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JGT  each

done:
	VZEROUPPER
	RET

// The order of operations is that of adamGeneric, none is fused: the bits are the same.
//
// func adamAVX2(p, g, m, v []float32, c adam)
TEXT ·adamAVX2(SB), NOSPLIT, $0-136
	VBROADCASTSS c_step+96(FP), Y6
	VBROADCASTSS c_beta1+100(FP), Y7
	VBROADCASTSS c_rest1+104(FP), Y8
	VBROADCASTSS c_beta2+108(FP), Y9
	VBROADCASTSS c_rest2+112(FP), Y10
	VBROADCASTSS c_eps+116(FP), Y11
	VBROADCASTSS c_scale+120(FP), Y12
	VBROADCASTSS c_root+124(FP), Y13
	VBROADCASTSS c_decay+128(FP), Y14
	VBROADCASTSS c_shrink+132(FP), Y15
	MOVQ p_base+0(FP), SI
	MOVQ p_len+8(FP), CX
	MOVQ g_base+24(FP), DI
	MOVQ m_base+48(FP), BX
	MOVQ v_base+72(FP), R8

each:
	CMPQ CX, $8
	JLT  tail
	VMOVUPS (SI), Y0
	VMOVUPS (DI), Y1
	VMOVUPS (BX), Y2
	VMOVUPS (R8), Y3
	VMULPS Y1, Y12, Y1
	VMULPS Y0, Y14, Y4
	VADDPS Y4, Y1, Y1
	VMULPS Y2, Y7, Y2
	VMULPS Y1, Y8, Y4
	VADDPS Y4, Y2, Y2
	VMULPS Y3, Y9, Y3
	VMULPS Y1, Y10, Y4
	VMULPS Y1, Y4, Y4
	VADDPS Y4, Y3, Y3
	VMOVUPS Y2, (BX)
	VMOVUPS Y3, (R8)
	VMULPS Y2, Y6, Y2
	VSQRTPS Y3, Y3
	VMULPS Y3, Y13, Y3
	VADDPS Y11, Y3, Y3
	VDIVPS Y3, Y2, Y2
	VMULPS Y15, Y0, Y0
	VSUBPS Y2, Y0, Y0
	VMOVUPS Y0, (SI)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, BX
	ADDQ $32, R8
	SUBQ $8, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VMASKMOVPS (SI), Y5, Y0
	VMASKMOVPS (DI), Y5, Y1
	VMASKMOVPS (BX), Y5, Y2
	VMASKMOVPS (R8), Y5, Y3
	VMULPS Y1, Y12, Y1
	VMULPS Y0, Y14, Y4
	VADDPS Y4, Y1, Y1
	VMULPS Y2, Y7, Y2
	VMULPS Y1, Y8, Y4
	VADDPS Y4, Y2, Y2
	VMULPS Y3, Y9, Y3
	VMULPS Y1, Y10, Y4
	VMULPS Y1, Y4, Y4
	VADDPS Y4, Y3, Y3
	VMASKMOVPS Y2, Y5, (BX)
	VMASKMOVPS Y3, Y5, (R8)
	VMULPS Y2, Y6, Y2
	VSQRTPS Y3, Y3
	VMULPS Y3, Y13, Y3
	VADDPS Y11, Y3, Y3
	VDIVPS Y3, Y2, Y2
	VMULPS Y15, Y0, Y0
	VSUBPS Y2, Y0, Y0
	VMASKMOVPS Y0, Y5, (SI)

done:
	VZEROUPPER
	RET
