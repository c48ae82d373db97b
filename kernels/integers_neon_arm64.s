#include "textflag.h"

// PACKED is y = OP(y, x), 64 bytes at a time; the length of the slices is a positive multiple of 64.
#define PACKED(OP, LANES) \
	MOVD x_base+0(FP), R0  \
	MOVD x_len+8(FP), R2   \
	MOVD y_base+24(FP), R1 \
block:                   \
	VLD1.P 64(R0), [V0.B16, V1.B16, V2.B16, V3.B16] \
	VLD1 (R1), [V4.B16, V5.B16, V6.B16, V7.B16]     \
	OP V0.LANES, V4.LANES, V4.LANES \
	OP V1.LANES, V5.LANES, V5.LANES \
	OP V2.LANES, V6.LANES, V6.LANES \
	OP V3.LANES, V7.LANES, V7.LANES \
	VST1.P [V4.B16, V5.B16, V6.B16, V7.B16], 64(R1) \
	SUBS $64, R2           \
	BNE  block             \
	RET

// func addBytesNEON(x, y []byte)
TEXT ·addBytesNEON(SB), NOSPLIT, $0-48
	PACKED(VADD, B16)

// func addWordsNEON(x, y []byte)
TEXT ·addWordsNEON(SB), NOSPLIT, $0-48
	PACKED(VADD, H8)

// func addLongsNEON(x, y []byte)
TEXT ·addLongsNEON(SB), NOSPLIT, $0-48
	PACKED(VADD, S4)

// func addQuadsNEON(x, y []byte)
TEXT ·addQuadsNEON(SB), NOSPLIT, $0-48
	PACKED(VADD, D2)

// func subBytesNEON(x, y []byte)
TEXT ·subBytesNEON(SB), NOSPLIT, $0-48
	PACKED(VSUB, B16)

// func subWordsNEON(x, y []byte)
TEXT ·subWordsNEON(SB), NOSPLIT, $0-48
	PACKED(VSUB, H8)

// func subLongsNEON(x, y []byte)
TEXT ·subLongsNEON(SB), NOSPLIT, $0-48
	PACKED(VSUB, S4)

// func subQuadsNEON(x, y []byte)
TEXT ·subQuadsNEON(SB), NOSPLIT, $0-48
	PACKED(VSUB, D2)
