// Instructions that Go's assembler does not know. d is the result, n and m the operands: numbers of V registers, four
// float32 or uint32 each unless said otherwise.

#define OP3(code, d, n, m) WORD $(code | (m)<<16 | (n)<<5 | (d))
#define OP2(code, d, n)    WORD $(code | (n)<<5 | (d))

#define FADD(d, n, m) OP3(0x4e20d400, d, n, m)
#define FSUB(d, n, m) OP3(0x4ea0d400, d, n, m)
#define FMUL(d, n, m) OP3(0x6e20dc00, d, n, m)
#define FDIV(d, n, m) OP3(0x6e20fc00, d, n, m)
#define FSQRT(d, n)   OP2(0x6ea1f800, d, n)
#define FMLA(d, n, m) OP3(0x4e20cc00, d, n, m)

// FMLAE adds to d the product of n and value l of m.
#define FMLAE(d, n, m, l) OP3((0x4f801000 | ((l)&1)<<21 | ((l)>>1)<<11), d, n, m)

// BFMMLA adds the products of two rows of n and two rows of m, four bfloat16 each, to d, 2×2.
#define BFMMLA(d, n, m) OP3(0x6e40ec00, d, n, m)

// FADDP adds adjacent values: n's, then m's.
#define FADDP(d, n, m) OP3(0x6e20d400, d, n, m)

// All ones where true.
#define FCMGT(d, n, m) OP3(0x6ea0e400, d, n, m)
#define FCMGT0(d, n)   OP2(0x4ea0c800, d, n)
#define FCMLT0(d, n)   OP2(0x4ea0e800, d, n)
#define CMHS(d, n, m)  OP3(0x6ea03c00, d, n, m)
#define CMEQ(d, n, m)  OP3(0x6ea08c00, d, n, m)

// BIC is n and not m; BIT copies the bits of n for which m is 1.
#define BIC(d, n, m) OP3(0x4e601c00, d, n, m)
#define BIT(d, n, m) OP3(0x6ea01c00, d, n, m)

#define MUL(d, n, m)  OP3(0x4ea09c00, d, n, m)
#define UMAX(d, n, m) OP3(0x6ea06400, d, n, m)
#define UMAXV(d, n)   OP2(0x6eb0a800, d, n)

// The lower and the upper two values of n as float64, and their sum.
#define FCVTL(d, n)    OP2(0x0e617800, d, n)
#define FCVTL2(d, n)   OP2(0x4e617800, d, n)
#define FADD2(d, n, m) OP3(0x4e60d400, d, n, m)

// The lower and the upper four bfloat16 of n as float32, and the upper halves of n's values.
#define SHLL(d, n)  OP2(0x2e613800, d, n)
#define SHLL2(d, n) OP2(0x6e613800, d, n)
#define SHRN(d, n)  OP2(0x0f108400, d, n)

#define FCMEQ(d, n, m) OP3(0x4e20e400, d, n, m)

#define FMAX(d, n, m)   OP3(0x4e20f400, d, n, m)
#define FMIN(d, n, m)   OP3(0x4ea0f400, d, n, m)
// Conversions: to the nearest integer, ties to even; back; int32 to int16 in the lower and the upper half; int16 to
// int8.
#define FCVTNS(d, n) OP2(0x4e21a800, d, n)
#define SCVTF(d, n)  OP2(0x4e21d800, d, n)
#define XTN(d, n)    OP2(0x0e612800, d, n)
#define XTN2(d, n)   OP2(0x4e612800, d, n)
#define XTNB(d, n)   OP2(0x0e212800, d, n)
#define XTNB2(d, n)  OP2(0x4e212800, d, n)

// Conversions of the lower or upper half: int8 to int16, and int16 to int32.
#define SXTLB(d, n)  OP2(0x0f08a400, d, n)
#define SXTLB2(d, n) OP2(0x4f08a400, d, n)
#define SXTL(d, n)   OP2(0x0f10a400, d, n)
#define SXTL2(d, n)  OP2(0x4f10a400, d, n)

#define FCVTZS(d, n)    OP2(0x4ea1b800, d, n)
#define FSUB2(d, n, m)  OP3(0x4ee0d400, d, n, m)
#define FMUL2(d, n, m)  OP3(0x6e60dc00, d, n, m)

// EXPS loads what EXP needs into V16 to V29; R is scratch.
#define CONST(bits, R, v) \
	MOVD $(bits), R       \
	VDUP R, v.S4

#define EXPS(R) \
	CONST(0xc2b00000, R, V16) \ // -88
	CONST(0x42b20000, R, V17) \ // 89
	CONST(0x3fb8aa3b, R, V18) \ // 1.4426950408889634
	CONST(0x4b400000, R, V19) \ // 12582912
	CONST(0x3f318000, R, V20) \ // 0.693359375
	CONST(0xb95e8083, R, V21) \ // -0.00021219444
	CONST(0x39506967, R, V22) \ // 0.000198756915
	CONST(0x3ab743ce, R, V23) \ // 0.0013981999507
	CONST(0x3c088908, R, V24) \ // 0.0083334519073
	CONST(0x3d2aa9c1, R, V25) \ // 0.041665795894
	CONST(0x3e2aaaaa, R, V26) \ // 0.16666665459
	CONST(0x3f000000, R, V27) \ // 0.50000001201
	CONST(0x3f800000, R, V28) \ // 1
	CONST(127, R, V29)

// EXP replaces the values in V(y) by their exponentials, like exp in norm.go; V0, V1 and V15 are scratch. Nothing is
// fused.
#define EXP(y) \
	FMAX(y, y, 16)  \
	FMIN(y, y, 17)  \
	FMUL(0, y, 18)  \
	FADD(0, 0, 19)  \
	FSUB(0, 0, 19)  \
	FMUL(1, 0, 20)  \
	FSUB(y, y, 1)   \
	FMUL(1, 0, 21)  \
	FSUB(y, y, 1)   \
	FMUL(1, y, 22)  \
	FADD(1, 1, 23)  \
	FMUL(1, 1, y)   \
	FADD(1, 1, 24)  \
	FMUL(1, 1, y)   \
	FADD(1, 1, 25)  \
	FMUL(1, 1, y)   \
	FADD(1, 1, 26)  \
	FMUL(1, 1, y)   \
	FADD(1, 1, 27)  \
	FCVTZS(0, 0)    \
	VADD V29.S4, V0.S4, V0.S4 \
	VSHL $23, V0.S4, V0.S4    \
	FMUL(15, y, y)  \
	FMUL(1, 1, 15)  \
	FADD(1, 1, y)   \
	FADD(1, 1, 28)  \
	FMUL(y, 1, 0)
