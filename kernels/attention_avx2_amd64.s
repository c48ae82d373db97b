#include "textflag.h"
#include "exp_amd64.h"

// Logits and weights of an attention's edges, by heads: vectors of 8 values, two of which make the sixteen lanes. No
// multiply-add is fused; attention_generic.go explains the lanes.

DATA masks<>+0(SB)/8, $-1
DATA masks<>+8(SB)/8, $-1
DATA masks<>+16(SB)/8, $-1
DATA masks<>+24(SB)/8, $-1
DATA masks<>+32(SB)/8, $0
DATA masks<>+40(SB)/8, $0
DATA masks<>+48(SB)/8, $0
DATA masks<>+56(SB)/8, $0
GLOBL masks<>(SB), RODATA|NOPTR, $64

DATA ones<>+0(SB)/8, $0x3f8000003f800000
DATA ones<>+8(SB)/8, $0x3f8000003f800000
DATA ones<>+16(SB)/8, $0x3f8000003f800000
DATA ones<>+24(SB)/8, $0x3f8000003f800000
DATA ones<>+32(SB)/8, $0x3f8000003f800000
DATA ones<>+40(SB)/8, $0x3f8000003f800000
DATA ones<>+48(SB)/8, $0x3f8000003f800000
DATA ones<>+56(SB)/8, $0x3f8000003f800000
GLOBL ones<>(SB), RODATA|NOPTR, $64

// MASK makes Y15 the mask of the next min(CX, 8) values; MASKS points at masks.
#define MASK(MASKS) \
	XORQ    R15, R15          \
	MOVQ    $8, AX            \
	SUBQ    CX, AX            \
	CMOVQLT R15, AX           \
	VMOVUPS (MASKS)(AX*4), Y15

#define LOGITS(off, top, own) \
	VMASKMOVPS off(SI), Y15, Y1    \
	VADDPS     own, Y1, Y1         \
	VMULPS     Y10, Y1, Y2         \
	VCMPPS     $0x11, Y9, Y1, Y3   \
	VBLENDVPS  Y3, Y2, Y1, Y1      \
	VMASKMOVPS Y1, Y15, off(SI)    \
	VMAXPS     top, Y1, Y1         \
	VBLENDVPS  Y15, Y1, top, top

// func logitsAVX2(q []float32, slope float32, own, top *headLanes)
TEXT ·logitsAVX2(SB), NOSPLIT, $0-48
	MOVQ q_base+0(FP), SI
	MOVQ q_len+8(FP), CX
	VBROADCASTSS slope+24(FP), Y10
	MOVQ own+32(FP), BX
	MOVQ top+40(FP), DX
	LEAQ masks<>(SB), R14
	VMOVUPS (BX), Y11
	VMOVUPS 32(BX), Y12
	VMOVUPS (DX), Y0
	VMOVUPS 32(DX), Y4
	VXORPS Y9, Y9, Y9

each:
	TESTQ CX, CX
	JLE   done
	MASK(R14)
	LOGITS(0, Y0, Y11)
	SUBQ  $8, CX
	JLE   done
	MASK(R14)
	LOGITS(32, Y4, Y12)
	SUBQ  $8, CX
	ADDQ  $64, SI
	JMP   each

done:
	VMOVUPS Y0, (DX)
	VMOVUPS Y4, 32(DX)
	VZEROUPPER
	RET

#define WEIGHTS(off, p) \
	VMASKMOVPS off(SI), Y15, Y1      \
	VCMPPS     $0x11, Y9, Y1, Y2     \
	VMOVUPS    384(R14), Y5          \
	VBLENDVPS  Y2, Y10, Y5, Y5       \
	VMASKMOVPS off(BX), Y15, Y2      \
	VSUBPS     Y2, Y1, Y1            \
	EXP(R14, Y1, Y2, Y3, Y4)         \
	VANDPS     Y15, Y1, Y1           \
	VADDPS     Y1, p, p              \
	VMULPS     Y5, Y1, Y2            \
	VMASKMOVPS Y2, Y15, off(R11)     \
	VMASKMOVPS off(R9), Y15, Y3      \
	VMULPS     Y3, Y1, Y1            \
	VMASKMOVPS Y1, Y15, off(DI)

// func weightsAVX2(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes)
TEXT ·weightsAVX2(SB), NOSPLIT, $0-72
	MOVQ n+0(FP), CX
	MOVQ q+8(FP), SI
	MOVQ shift+16(FP), BX
	MOVQ step+24(FP), R8
	MOVQ keep+32(FP), R9
	MOVQ $64, R10
	MOVQ w+40(FP), DI
	MOVQ slopes+48(FP), R11
	LEAQ exps<>(SB), R14
	LEAQ masks<>(SB), R13
	TESTQ R9, R9
	JNZ  kept
	LEAQ ones<>(SB), R9
	XORQ R10, R10

kept:
	VBROADCASTSS slope+56(FP), Y10
	VXORPS Y9, Y9, Y9
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7

each:
	TESTQ CX, CX
	JLE   done
	MASK(R13)
	WEIGHTS(0, Y6)
	SUBQ  $8, CX
	JLE   done
	MASK(R13)
	WEIGHTS(32, Y7)
	SUBQ  $8, CX
	ADDQ  $64, SI
	ADDQ  R8, BX
	ADDQ  R10, R9
	ADDQ  $64, DI
	ADDQ  $64, R11
	JMP   each

done:
	MOVQ sum+64(FP), R12
	VADDPS (R12), Y6, Y6
	VADDPS 32(R12), Y7, Y7
	VMOVUPS Y6, (R12)
	VMOVUPS Y7, 32(R12)
	VZEROUPPER
	RET
