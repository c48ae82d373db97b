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

// FADDP adds neighbours: those of n, then those of m.
#define FADDP(d, n, m) OP3(0x6e20d400, d, n, m)

// All ones where true.
#define FCMGT(d, n, m) OP3(0x6ea0e400, d, n, m)
#define FCMGT0(d, n)   OP2(0x4ea0c800, d, n)
#define FCMLT0(d, n)   OP2(0x4ea0e800, d, n)
#define CMHS(d, n, m)  OP3(0x6ea03c00, d, n, m)

// BIC is n and not m; BIT takes from n where m has ones.
#define BIC(d, n, m) OP3(0x4e601c00, d, n, m)
#define BIT(d, n, m) OP3(0x6ea01c00, d, n, m)

#define MUL(d, n, m)  OP3(0x4ea09c00, d, n, m)
#define UMAX(d, n, m) OP3(0x6ea06400, d, n, m)
#define UMAXV(d, n)   OP2(0x6eb0a800, d, n)

// The lower and the upper two of n as float64, and their sum.
#define FCVTL(d, n)    OP2(0x0e617800, d, n)
#define FCVTL2(d, n)   OP2(0x4e617800, d, n)
#define FADD2(d, n, m) OP3(0x4e60d400, d, n, m)

// The lower and the upper four bfloat16 of n as float32, and the upper halves of n.
#define SHLL(d, n)  OP2(0x2e613800, d, n)
#define SHLL2(d, n) OP2(0x6e613800, d, n)
#define SHRN(d, n)  OP2(0x0f108400, d, n)

#define FCMEQ(d, n, m) OP3(0x4e20e400, d, n, m)
