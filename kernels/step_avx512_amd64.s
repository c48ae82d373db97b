#include "textflag.h"

// Loops over slices: vectors in fours, then one by one, then what is left under a mask.

// MASK makes K1 the mask of the last CX < 16 values.
#define MASK \
	MOVL  $1, AX  \
	SHLL  CX, AX  \
	DECL  AX      \
	KMOVW AX, K1

// func maxIndexAVX512(col []int32) uint32
TEXT ·maxIndexAVX512(SB), NOSPLIT, $0-28
	VPXORD Z0, Z0, Z0
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	MOVQ col_base+0(FP), SI
	MOVQ col_len+8(FP), CX

many:
	CMPQ CX, $64
	JLT  each
	VPMAXUD (SI), Z0, Z0
	VPMAXUD 64(SI), Z2, Z2
	VPMAXUD 128(SI), Z3, Z3
	VPMAXUD 192(SI), Z4, Z4
	ADDQ $256, SI
	SUBQ $64, CX
	JMP  many

each:
	CMPQ CX, $16
	JLT  tail
	VPMAXUD (SI), Z0, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VMOVDQU32.Z (SI), K1, Z1
	VPMAXUD Z1, Z0, Z0

done:
	VPMAXUD Z2, Z0, Z0
	VPMAXUD Z4, Z3, Z3
	VPMAXUD Z3, Z0, Z0
	VEXTRACTI64X4 $1, Z0, Y1
	VPMAXUD Y1, Y0, Y0
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

// func addWideAVX512(x []float32, sum []float64)
TEXT ·addWideAVX512(SB), NOSPLIT, $0-48
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ sum_base+24(FP), DI

many:
	CMPQ CX, $32
	JLT  each
	VCVTPS2PD (SI), Z1
	VADDPD (DI), Z1, Z1
	VMOVUPD Z1, (DI)
	VCVTPS2PD 32(SI), Z1
	VADDPD 64(DI), Z1, Z1
	VMOVUPD Z1, 64(DI)
	VCVTPS2PD 64(SI), Z1
	VADDPD 128(DI), Z1, Z1
	VMOVUPD Z1, 128(DI)
	VCVTPS2PD 96(SI), Z1
	VADDPD 192(DI), Z1, Z1
	VMOVUPD Z1, 192(DI)
	ADDQ $128, SI
	ADDQ $256, DI
	SUBQ $32, CX
	JMP  many

each:
	CMPQ CX, $8
	JLT  tail
	VCVTPS2PD (SI), Z1
	VADDPD (DI), Z1, Z1
	VMOVUPD Z1, (DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VMOVUPS.Z (SI), K1, Y1
	VCVTPS2PD Y1, Z1
	VMOVUPD.Z (DI), K1, Z2
	VADDPD Z1, Z2, Z2
	VMOVUPD Z2, K1, (DI)

done:
	VZEROUPPER
	RET

// Multiples 0 to 15 of 0x9e3779b9, which tells columns apart.
DATA columns<>+0(SB)/8, $0x9e3779b900000000
DATA columns<>+8(SB)/8, $0xdaa66d2b3c6ef372
DATA columns<>+16(SB)/8, $0x1715609d78dde6e4
DATA columns<>+24(SB)/8, $0x5384540fb54cda56
DATA columns<>+32(SB)/8, $0x8ff34781f1bbcdc8
DATA columns<>+40(SB)/8, $0xcc623af32e2ac13a
DATA columns<>+48(SB)/8, $0x08d12e656a99b4ac
DATA columns<>+56(SB)/8, $0x454021d7a708a81e
GLOBL columns<>(SB), RODATA|NOPTR, $64

// MIX makes of v, places told apart, random bits (t is scratch), and K2 the mask of those that are kept.
#define MIX(v, t) \
	VPSRLD  $16, v, t   \
	VPXORD  t, v, v     \
	VPMULLD Z2, v, v    \
	VPSRLD  $15, v, t   \
	VPXORD  t, v, v     \
	VPMULLD Z3, v, v    \
	VPSRLD  $16, v, t   \
	VPXORD  t, v, v     \
	VPCMPUD $5, Z4, v, K2

// FACTORS makes Z2 and Z3 the factors of MIX.
#define FACTORS \
	MOVL         $0x7feb352d, AX \
	VPBROADCASTD AX, Z2          \
	MOVL         $0x846ca68b, AX \
	VPBROADCASTD AX, Z3

// func dropoutAVX512(lo, hi, limit uint32, up float32, x, y []float32, add bool)
TEXT ·dropoutAVX512(SB), NOSPLIT, $0-65
	VBROADCASTSS lo+0(FP), Z0
	VPADDD columns<>(SB), Z0, Z0
	VBROADCASTSS hi+4(FP), Z1
	VBROADCASTSS limit+8(FP), Z4
	VBROADCASTSS up+12(FP), Z10
	FACTORS
	MOVL $0xe3779b90, AX
	VPBROADCASTD AX, Z6
	MOVQ x_base+16(FP), SI
	MOVQ x_len+24(FP), CX
	MOVQ y_base+40(FP), DI
	MOVBLZX add+64(FP), R8
	TESTL R8, R8
	JNZ  addeach

each:
	CMPQ CX, $16
	JLT  tail
	VPXORD Z0, Z1, Z7
	VPADDD Z6, Z0, Z0
	MIX(Z7, Z8)
	VMOVAPS.Z Z10, K2, Z9
	VMULPS (SI), Z9, Z9
	VMOVUPS Z9, (DI)
	PREFETCHT0 2048(SI)
	PREFETCHT0 2048(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VPXORD Z0, Z1, Z7
	MIX(Z7, Z8)
	VMOVAPS.Z Z10, K2, Z9
	VMOVUPS.Z (SI), K1, Z8
	VMULPS Z8, Z9, Z9
	VMOVUPS Z9, K1, (DI)

done:
	VZEROUPPER
	RET

addeach:
	CMPQ CX, $16
	JLT  addtail
	VPXORD Z0, Z1, Z7
	VPADDD Z6, Z0, Z0
	MIX(Z7, Z8)
	VMOVAPS.Z Z10, K2, Z9
	VMULPS (SI), Z9, Z9
	VADDPS (DI), Z9, Z9
	VMOVUPS Z9, (DI)
	PREFETCHT0 2048(SI)
	PREFETCHT0 2048(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JMP  addeach

addtail:
	TESTQ CX, CX
	JZ    done
	MASK
	VPXORD Z0, Z1, Z7
	MIX(Z7, Z8)
	VMOVAPS.Z Z10, K2, Z9
	VMOVUPS.Z (SI), K1, Z8
	VMULPS Z8, Z9, Z9
	VMOVUPS.Z (DI), K1, Z8
	VADDPS Z8, Z9, Z9
	VMOVUPS Z9, K1, (DI)
	JMP  done

// func dropColumnsAVX512(lo, hi, limit uint32, up float32, col []int32, x, y []float32)
TEXT ·dropColumnsAVX512(SB), NOSPLIT, $0-88
	VBROADCASTSS lo+0(FP), Z0
	VBROADCASTSS hi+4(FP), Z1
	VBROADCASTSS limit+8(FP), Z4
	VBROADCASTSS up+12(FP), Z10
	FACTORS
	MOVL $0x9e3779b9, AX
	VPBROADCASTD AX, Z6
	MOVQ col_base+16(FP), BX
	MOVQ col_len+24(FP), CX
	MOVQ x_base+40(FP), SI
	MOVQ y_base+64(FP), DI

each:
	CMPQ CX, $16
	JLT  tail
	VPMULLD (BX), Z6, Z7
	VPADDD Z0, Z7, Z7
	VPXORD Z1, Z7, Z7
	MIX(Z7, Z8)
	VMOVAPS.Z Z10, K2, Z9
	VMULPS (SI), Z9, Z9
	VMOVUPS Z9, (DI)
	ADDQ $64, BX
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VMOVDQU32.Z (BX), K1, Z7
	VPMULLD Z7, Z6, Z7
	VPADDD Z0, Z7, Z7
	VPXORD Z1, Z7, Z7
	MIX(Z7, Z8)
	VMOVAPS.Z Z10, K2, Z9
	VMOVUPS.Z (SI), K1, Z8
	VMULPS Z8, Z9, Z9
	VMOVUPS Z9, K1, (DI)

done:
	VZEROUPPER
	RET

// func dropRowsAVX512(keys []uint64, add, limit uint32, up float32, row []int32, x, y []float32)
TEXT ·dropRowsAVX512(SB), NOSPLIT, $0-112
	VBROADCASTSS add+24(FP), Z0
	VBROADCASTSS limit+28(FP), Z4
	VBROADCASTSS up+32(FP), Z10
	FACTORS
	MOVQ keys_base+0(FP), R8
	MOVQ row_base+40(FP), BX
	MOVQ row_len+48(FP), CX
	MOVQ x_base+64(FP), SI
	MOVQ y_base+88(FP), DI
	KXNORW K1, K1, K1

each:
	CMPQ CX, $16
	JGE  some
	TESTQ CX, CX
	JZ   done
	MASK

some:
	VMOVDQU32.Z (BX), K1, Z5
	KMOVW K1, K3
	KMOVW K1, K4
	VPXORD Z7, Z7, Z7
	VPXORD Z11, Z11, Z11
	VPGATHERDD (R8)(Z5*8), K3, Z7
	VPGATHERDD 4(R8)(Z5*8), K4, Z11
	VPADDD Z0, Z7, Z7
	VPXORD Z11, Z7, Z7
	MIX(Z7, Z8)
	VMOVAPS.Z Z10, K2, Z9
	VMOVUPS.Z (SI), K1, Z8
	VMULPS Z8, Z9, Z9
	VMOVUPS Z9, K1, (DI)
	ADDQ $64, BX
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGT  each

done:
	VZEROUPPER
	RET

// The order of operations is that of adamGeneric, none is fused: the bits are the same.
//
// func adamAVX512(p, g, m, v []float32, c adam)
TEXT ·adamAVX512(SB), NOSPLIT, $0-136
	VBROADCASTSS c_step+96(FP), Z6
	VBROADCASTSS c_beta1+100(FP), Z7
	VBROADCASTSS c_rest1+104(FP), Z8
	VBROADCASTSS c_beta2+108(FP), Z9
	VBROADCASTSS c_rest2+112(FP), Z10
	VBROADCASTSS c_eps+116(FP), Z11
	VBROADCASTSS c_scale+120(FP), Z12
	VBROADCASTSS c_root+124(FP), Z13
	VBROADCASTSS c_decay+128(FP), Z14
	VBROADCASTSS c_shrink+132(FP), Z15
	MOVQ p_base+0(FP), SI
	MOVQ p_len+8(FP), CX
	MOVQ g_base+24(FP), DI
	MOVQ m_base+48(FP), BX
	MOVQ v_base+72(FP), R8

each:
	CMPQ CX, $16
	JLT  tail
	VMOVUPS (SI), Z0
	VMOVUPS (DI), Z1
	VMOVUPS (BX), Z2
	VMOVUPS (R8), Z3
	VMULPS Z1, Z12, Z1
	VMULPS Z0, Z14, Z4
	VADDPS Z4, Z1, Z1
	VMULPS Z2, Z7, Z2
	VMULPS Z1, Z8, Z4
	VADDPS Z4, Z2, Z2
	VMULPS Z3, Z9, Z3
	VMULPS Z1, Z10, Z4
	VMULPS Z1, Z4, Z4
	VADDPS Z4, Z3, Z3
	VMOVUPS Z2, (BX)
	VMOVUPS Z3, (R8)
	VMULPS Z2, Z6, Z2
	VSQRTPS Z3, Z3
	VMULPS Z3, Z13, Z3
	VADDPS Z11, Z3, Z3
	VDIVPS Z3, Z2, Z2
	VMULPS Z15, Z0, Z0
	VSUBPS Z2, Z0, Z0
	VMOVUPS Z0, (SI)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, BX
	ADDQ $64, R8
	SUBQ $16, CX
	JMP  each

tail:
	TESTQ CX, CX
	JZ    done
	MASK
	VMOVUPS.Z (SI), K1, Z0
	VMOVUPS.Z (DI), K1, Z1
	VMOVUPS.Z (BX), K1, Z2
	VMOVUPS.Z (R8), K1, Z3
	VMULPS Z1, Z12, Z1
	VMULPS Z0, Z14, Z4
	VADDPS Z4, Z1, Z1
	VMULPS Z2, Z7, Z2
	VMULPS Z1, Z8, Z4
	VADDPS Z4, Z2, Z2
	VMULPS Z3, Z9, Z3
	VMULPS Z1, Z10, Z4
	VMULPS Z1, Z4, Z4
	VADDPS Z4, Z3, Z3
	VMOVUPS Z2, K1, (BX)
	VMOVUPS Z3, K1, (R8)
	VMULPS Z2, Z6, Z2
	VSQRTPS Z3, Z3
	VMULPS Z3, Z13, Z3
	VADDPS Z11, Z3, Z3
	VDIVPS Z3, Z2, Z2
	VMULPS Z15, Z0, Z0
	VSUBPS Z2, Z0, Z0
	VMOVUPS Z0, K1, (SI)

done:
	VZEROUPPER
	RET
