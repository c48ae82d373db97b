#include "textflag.h"

// Two registers have AES-256's round keys in turn: X1 has one, X3 the next.
// See Gueron, "Intel Advanced Encryption Standard (AES) New Instructions Set", 2012, figure 28.

// SPREAD is x ^= x<<32 ^ x<<64 ^ x<<96 ^ word.
#define SPREAD(x, word) \
	VPSLLDQ $4, x, X4 \
	VPXOR   X4, x, x  \
	VPSLLDQ $4, X4, X4 \
	VPXOR   X4, x, x  \
	VPSLLDQ $4, X4, X4 \
	VPXOR   X4, x, x  \
	VPXOR   word, x, x

#define EVEN(constant, at) \
	VAESKEYGENASSIST $constant, X3, X2 \
	VPSHUFD $0xff, X2, X2              \
	SPREAD(X1, X2)                     \
	VMOVDQU X1, at(DI)

#define ODD(at) \
	VAESKEYGENASSIST $0, X1, X2 \
	VPSHUFD $0xaa, X2, X2       \
	SPREAD(X3, X2)              \
	VMOVDQU X3, at(DI)

// func expandKeyVAES(key *[32]byte, rounds *[15][16]byte)
TEXT ·expandKeyVAES(SB), NOSPLIT, $0-16
	MOVQ key+0(FP), SI
	MOVQ rounds+8(FP), DI
	VMOVDQU (SI), X1
	VMOVDQU 16(SI), X3
	VMOVDQU X1, (DI)
	VMOVDQU X3, 16(DI)
	EVEN(0x01, 32)
	ODD(48)
	EVEN(0x02, 64)
	ODD(80)
	EVEN(0x04, 96)
	ODD(112)
	EVEN(0x08, 128)
	ODD(144)
	EVEN(0x10, 160)
	ODD(176)
	EVEN(0x20, 192)
	ODD(208)
	EVEN(0x40, 224)
	VZEROUPPER
	RET

// Reverses the bytes of a block: counters are big-endian.
DATA turn<>+0(SB)/8, $0x08090a0b0c0d0e0f
DATA turn<>+8(SB)/8, $0x0001020304050607
GLOBL turn<>(SB), RODATA|NOPTR, $16

// Offsets of the counters of four blocks from the first.
DATA lanes<>+0(SB)/8, $0
DATA lanes<>+8(SB)/8, $0
DATA lanes<>+16(SB)/8, $1
DATA lanes<>+24(SB)/8, $0
DATA lanes<>+32(SB)/8, $2
DATA lanes<>+40(SB)/8, $0
DATA lanes<>+48(SB)/8, $3
DATA lanes<>+56(SB)/8, $0
GLOBL lanes<>(SB), RODATA|NOPTR, $64

DATA four<>+0(SB)/8, $4
DATA four<>+8(SB)/8, $0
GLOBL four<>(SB), RODATA|NOPTR, $16

// The round keys are in Z16 to Z30, the counters of the next four blocks in Z9.
#define BEGIN(x) \
	VPSHUFB Z10, Z9, x \
	VPADDQ  Z11, Z9, Z9 \
	VPXORQ  Z16, x, x

// ROUND is one round of 32 blocks.
#define ROUND(key) \
	VAESENC key, Z0, Z0 \
	VAESENC key, Z1, Z1 \
	VAESENC key, Z2, Z2 \
	VAESENC key, Z3, Z3 \
	VAESENC key, Z4, Z4 \
	VAESENC key, Z5, Z5 \
	VAESENC key, Z6, Z6 \
	VAESENC key, Z7, Z7

#define END(OP, x, at) \
	VAESENCLAST Z30, x, x    \
	VMOVDQU64   at(DI), Z8   \
	OP          x, Z8, Z8    \
	VMOVDQU64   Z8, at(DI)

// KEYSTREAM is y = OP(y, stream) from a block on: 512 bytes at a time, then 64, then the rest.
#define KEYSTREAM(OP) \
	MOVQ rounds+0(FP), AX         \
	MOVQ block+8(FP), BX          \
	MOVQ y_base+16(FP), DI        \
	MOVQ y_len+24(FP), CX         \
	VBROADCASTI32X4 (AX), Z16     \
	VBROADCASTI32X4 16(AX), Z17   \
	VBROADCASTI32X4 32(AX), Z18   \
	VBROADCASTI32X4 48(AX), Z19   \
	VBROADCASTI32X4 64(AX), Z20   \
	VBROADCASTI32X4 80(AX), Z21   \
	VBROADCASTI32X4 96(AX), Z22   \
	VBROADCASTI32X4 112(AX), Z23  \
	VBROADCASTI32X4 128(AX), Z24  \
	VBROADCASTI32X4 144(AX), Z25  \
	VBROADCASTI32X4 160(AX), Z26  \
	VBROADCASTI32X4 176(AX), Z27  \
	VBROADCASTI32X4 192(AX), Z28  \
	VBROADCASTI32X4 208(AX), Z29  \
	VBROADCASTI32X4 224(AX), Z30  \
	VBROADCASTI32X4 turn<>(SB), Z10 \
	VBROADCASTI32X4 four<>(SB), Z11 \
	VMOVQ BX, X9                  \
	VSHUFI32X4 $0, Z9, Z9, Z9     \
	VPADDQ lanes<>(SB), Z9, Z9    \
	CMPQ CX, $512                 \
	JB   rest                     \
blocks:                           \
	BEGIN(Z0)                     \
	BEGIN(Z1)                     \
	BEGIN(Z2)                     \
	BEGIN(Z3)                     \
	BEGIN(Z4)                     \
	BEGIN(Z5)                     \
	BEGIN(Z6)                     \
	BEGIN(Z7)                     \
	ROUND(Z17)                    \
	ROUND(Z18)                    \
	ROUND(Z19)                    \
	ROUND(Z20)                    \
	ROUND(Z21)                    \
	ROUND(Z22)                    \
	ROUND(Z23)                    \
	ROUND(Z24)                    \
	ROUND(Z25)                    \
	ROUND(Z26)                    \
	ROUND(Z27)                    \
	ROUND(Z28)                    \
	ROUND(Z29)                    \
	END(OP, Z0, 0)                \
	END(OP, Z1, 64)               \
	END(OP, Z2, 128)              \
	END(OP, Z3, 192)              \
	END(OP, Z4, 256)              \
	END(OP, Z5, 320)              \
	END(OP, Z6, 384)              \
	END(OP, Z7, 448)              \
	ADDQ $512, DI                 \
	SUBQ $512, CX                 \
	CMPQ CX, $512                 \
	JAE  blocks                   \
rest:                             \
	TESTQ CX, CX                  \
	JZ   done                     \
	MOVQ $-1, DX                  \
	CMPQ CX, $64                  \
	JAE  some                     \
	BZHIQ CX, DX, DX              \
	MOVQ $64, CX                  \
some:                             \
	KMOVQ DX, K1                  \
	BEGIN(Z0)                     \
	VAESENC Z17, Z0, Z0           \
	VAESENC Z18, Z0, Z0           \
	VAESENC Z19, Z0, Z0           \
	VAESENC Z20, Z0, Z0           \
	VAESENC Z21, Z0, Z0           \
	VAESENC Z22, Z0, Z0           \
	VAESENC Z23, Z0, Z0           \
	VAESENC Z24, Z0, Z0           \
	VAESENC Z25, Z0, Z0           \
	VAESENC Z26, Z0, Z0           \
	VAESENC Z27, Z0, Z0           \
	VAESENC Z28, Z0, Z0           \
	VAESENC Z29, Z0, Z0           \
	VAESENCLAST Z30, Z0, Z0       \
	VMOVDQU8.Z (DI), K1, Z8       \
	OP Z0, Z8, Z8                 \
	VMOVDQU8 Z8, K1, (DI)         \
	ADDQ $64, DI                  \
	SUBQ $64, CX                  \
	JMP  rest                     \
done:                             \
	VZEROUPPER                    \
	RET

// func addStreamBytesVAES(rounds *[15][16]byte, block int, y []byte)
TEXT ·addStreamBytesVAES(SB), NOSPLIT, $0-40
	KEYSTREAM(VPADDB)

// func addStreamWordsVAES(rounds *[15][16]byte, block int, y []byte)
TEXT ·addStreamWordsVAES(SB), NOSPLIT, $0-40
	KEYSTREAM(VPADDW)

// func addStreamLongsVAES(rounds *[15][16]byte, block int, y []byte)
TEXT ·addStreamLongsVAES(SB), NOSPLIT, $0-40
	KEYSTREAM(VPADDD)

// func addStreamQuadsVAES(rounds *[15][16]byte, block int, y []byte)
TEXT ·addStreamQuadsVAES(SB), NOSPLIT, $0-40
	KEYSTREAM(VPADDQ)

// func subStreamBytesVAES(rounds *[15][16]byte, block int, y []byte)
TEXT ·subStreamBytesVAES(SB), NOSPLIT, $0-40
	KEYSTREAM(VPSUBB)

// func subStreamWordsVAES(rounds *[15][16]byte, block int, y []byte)
TEXT ·subStreamWordsVAES(SB), NOSPLIT, $0-40
	KEYSTREAM(VPSUBW)

// func subStreamLongsVAES(rounds *[15][16]byte, block int, y []byte)
TEXT ·subStreamLongsVAES(SB), NOSPLIT, $0-40
	KEYSTREAM(VPSUBD)

// func subStreamQuadsVAES(rounds *[15][16]byte, block int, y []byte)
TEXT ·subStreamQuadsVAES(SB), NOSPLIT, $0-40
	KEYSTREAM(VPSUBQ)
