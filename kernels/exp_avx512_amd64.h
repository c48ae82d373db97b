// SPLAT fills z with the bits.
#define SPLAT(bits, z) \
	MOVL $bits, AX     \
	VPBROADCASTD AX, z

// EXPS512 loads EXP512's constants into Z11 to Z24; Z12 is 89, Z22 1/2 and Z23 1.
#define EXPS512 \
	SPLAT(0xc2b00000, Z11) \ // -88
	SPLAT(0x42b20000, Z12) \ // 89
	SPLAT(0x3fb8aa3b, Z13) \ // 1.4426950408889634
	SPLAT(0x4b400000, Z14) \ // 12582912
	SPLAT(0x3f318000, Z15) \ // 0.693359375
	SPLAT(0xb95e8083, Z16) \ // -0.00021219444
	SPLAT(0x39506967, Z17) \ // 0.000198756915
	SPLAT(0x3ab743ce, Z18) \ // 0.0013981999507
	SPLAT(0x3c088908, Z19) \ // 0.0083334519073
	SPLAT(0x3d2aa9c1, Z20) \ // 0.041665795894
	SPLAT(0x3e2aaaaa, Z21) \ // 0.16666665459
	SPLAT(0x3f000000, Z22) \ // 0.50000001201
	SPLAT(0x3f800000, Z23) \ // 1
	SPLAT(127, Z24)

// EXP512 computes the exponentials Z3·Z2 of the values in x, like exp in norm.go. No multiply-add is fused; Z1 and Z4
// are scratch. NaN stays: it is the second operand of the maximum and of the minimum.
#define EXP512(x) \
	VMAXPS x, Z11, Z1 \
	VMINPS Z1, Z12, Z1 \
	VMULPS Z13, Z1, Z2 \
	VADDPS Z14, Z2, Z2 \
	VSUBPS Z14, Z2, Z2 \
	VMULPS Z15, Z2, Z3 \
	VSUBPS Z3, Z1, Z1 \
	VMULPS Z16, Z2, Z3 \
	VSUBPS Z3, Z1, Z1 \
	VMULPS Z17, Z1, Z3 \
	VADDPS Z18, Z3, Z3 \
	VMULPS Z1, Z3, Z3 \
	VADDPS Z19, Z3, Z3 \
	VMULPS Z1, Z3, Z3 \
	VADDPS Z20, Z3, Z3 \
	VMULPS Z1, Z3, Z3 \
	VADDPS Z21, Z3, Z3 \
	VMULPS Z1, Z3, Z3 \
	VADDPS Z22, Z3, Z3 \
	VMULPS Z1, Z1, Z4 \
	VMULPS Z4, Z3, Z3 \
	VADDPS Z1, Z3, Z3 \
	VADDPS Z23, Z3, Z3 \
	VCVTPS2DQ Z2, Z2 \
	VPADDD Z24, Z2, Z2 \
	VPSLLD $23, Z2, Z2
