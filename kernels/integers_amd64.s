#include "textflag.h"

// PACKED is y = OP(y, x), 128 bytes at a time; the length of the slices is a positive multiple of 128.
#define PACKED(OP) \
	MOVQ x_base+0(FP), SI  \
	MOVQ x_len+8(FP), CX   \
	MOVQ y_base+24(FP), DI \
block:                   \
	VMOVDQU (DI), Y0       \
	VMOVDQU 32(DI), Y1     \
	VMOVDQU 64(DI), Y2     \
	VMOVDQU 96(DI), Y3     \
	OP (SI), Y0, Y0        \
	OP 32(SI), Y1, Y1      \
	OP 64(SI), Y2, Y2      \
	OP 96(SI), Y3, Y3      \
	VMOVDQU Y0, (DI)       \
	VMOVDQU Y1, 32(DI)     \
	VMOVDQU Y2, 64(DI)     \
	VMOVDQU Y3, 96(DI)     \
	ADDQ $128, SI          \
	ADDQ $128, DI          \
	SUBQ $128, CX          \
	JNZ  block             \
	VZEROUPPER             \
	RET

// func addBytesAVX2(x, y []byte)
TEXT ·addBytesAVX2(SB), NOSPLIT, $0-48
	PACKED(VPADDB)

// func addWordsAVX2(x, y []byte)
TEXT ·addWordsAVX2(SB), NOSPLIT, $0-48
	PACKED(VPADDW)

// func addLongsAVX2(x, y []byte)
TEXT ·addLongsAVX2(SB), NOSPLIT, $0-48
	PACKED(VPADDD)

// func addQuadsAVX2(x, y []byte)
TEXT ·addQuadsAVX2(SB), NOSPLIT, $0-48
	PACKED(VPADDQ)

// func subBytesAVX2(x, y []byte)
TEXT ·subBytesAVX2(SB), NOSPLIT, $0-48
	PACKED(VPSUBB)

// func subWordsAVX2(x, y []byte)
TEXT ·subWordsAVX2(SB), NOSPLIT, $0-48
	PACKED(VPSUBW)

// func subLongsAVX2(x, y []byte)
TEXT ·subLongsAVX2(SB), NOSPLIT, $0-48
	PACKED(VPSUBD)

// func subQuadsAVX2(x, y []byte)
TEXT ·subQuadsAVX2(SB), NOSPLIT, $0-48
	PACKED(VPSUBQ)
