// EXP replaces the values in y by their exponentials, like exp in norm.go: no multiply-add is fused. k, p and t are
// scratch, E points at exps.

DATA exps<>+0(SB)/8, $0xc2b00000c2b00000 // -88
DATA exps<>+8(SB)/8, $0xc2b00000c2b00000
DATA exps<>+16(SB)/8, $0xc2b00000c2b00000
DATA exps<>+24(SB)/8, $0xc2b00000c2b00000
DATA exps<>+32(SB)/8, $0x42b2000042b20000 // 89
DATA exps<>+40(SB)/8, $0x42b2000042b20000
DATA exps<>+48(SB)/8, $0x42b2000042b20000
DATA exps<>+56(SB)/8, $0x42b2000042b20000
DATA exps<>+64(SB)/8, $0x3fb8aa3b3fb8aa3b // 1.4426950408889634
DATA exps<>+72(SB)/8, $0x3fb8aa3b3fb8aa3b
DATA exps<>+80(SB)/8, $0x3fb8aa3b3fb8aa3b
DATA exps<>+88(SB)/8, $0x3fb8aa3b3fb8aa3b
DATA exps<>+96(SB)/8, $0x4b4000004b400000 // 12582912
DATA exps<>+104(SB)/8, $0x4b4000004b400000
DATA exps<>+112(SB)/8, $0x4b4000004b400000
DATA exps<>+120(SB)/8, $0x4b4000004b400000
DATA exps<>+128(SB)/8, $0x3f3180003f318000 // 0.693359375
DATA exps<>+136(SB)/8, $0x3f3180003f318000
DATA exps<>+144(SB)/8, $0x3f3180003f318000
DATA exps<>+152(SB)/8, $0x3f3180003f318000
DATA exps<>+160(SB)/8, $0xb95e8083b95e8083 // -0.00021219444
DATA exps<>+168(SB)/8, $0xb95e8083b95e8083
DATA exps<>+176(SB)/8, $0xb95e8083b95e8083
DATA exps<>+184(SB)/8, $0xb95e8083b95e8083
DATA exps<>+192(SB)/8, $0x3950696739506967 // 0.000198756915
DATA exps<>+200(SB)/8, $0x3950696739506967
DATA exps<>+208(SB)/8, $0x3950696739506967
DATA exps<>+216(SB)/8, $0x3950696739506967
DATA exps<>+224(SB)/8, $0x3ab743ce3ab743ce // 0.0013981999507
DATA exps<>+232(SB)/8, $0x3ab743ce3ab743ce
DATA exps<>+240(SB)/8, $0x3ab743ce3ab743ce
DATA exps<>+248(SB)/8, $0x3ab743ce3ab743ce
DATA exps<>+256(SB)/8, $0x3c0889083c088908 // 0.0083334519073
DATA exps<>+264(SB)/8, $0x3c0889083c088908
DATA exps<>+272(SB)/8, $0x3c0889083c088908
DATA exps<>+280(SB)/8, $0x3c0889083c088908
DATA exps<>+288(SB)/8, $0x3d2aa9c13d2aa9c1 // 0.041665795894
DATA exps<>+296(SB)/8, $0x3d2aa9c13d2aa9c1
DATA exps<>+304(SB)/8, $0x3d2aa9c13d2aa9c1
DATA exps<>+312(SB)/8, $0x3d2aa9c13d2aa9c1
DATA exps<>+320(SB)/8, $0x3e2aaaaa3e2aaaaa // 0.16666665459
DATA exps<>+328(SB)/8, $0x3e2aaaaa3e2aaaaa
DATA exps<>+336(SB)/8, $0x3e2aaaaa3e2aaaaa
DATA exps<>+344(SB)/8, $0x3e2aaaaa3e2aaaaa
DATA exps<>+352(SB)/8, $0x3f0000003f000000 // 0.50000001201
DATA exps<>+360(SB)/8, $0x3f0000003f000000
DATA exps<>+368(SB)/8, $0x3f0000003f000000
DATA exps<>+376(SB)/8, $0x3f0000003f000000
DATA exps<>+384(SB)/8, $0x3f8000003f800000 // 1
DATA exps<>+392(SB)/8, $0x3f8000003f800000
DATA exps<>+400(SB)/8, $0x3f8000003f800000
DATA exps<>+408(SB)/8, $0x3f8000003f800000
DATA exps<>+416(SB)/8, $0x0000007f0000007f // 127
DATA exps<>+424(SB)/8, $0x0000007f0000007f
DATA exps<>+432(SB)/8, $0x0000007f0000007f
DATA exps<>+440(SB)/8, $0x0000007f0000007f
GLOBL exps<>(SB), RODATA|NOPTR, $448

#define EXP(E, y, k, p, t) \
	VMOVUPS (E), p \
	VMAXPS y, p, y \
	VMOVUPS 32(E), p \
	VMINPS y, p, y \
	VMULPS 64(E), y, k \
	VADDPS 96(E), k, k \
	VSUBPS 96(E), k, k \
	VMULPS 128(E), k, p \
	VSUBPS p, y, y \
	VMULPS 160(E), k, p \
	VSUBPS p, y, y \
	VMULPS 192(E), y, p \
	VADDPS 224(E), p, p \
	VMULPS y, p, p \
	VADDPS 256(E), p, p \
	VMULPS y, p, p \
	VADDPS 288(E), p, p \
	VMULPS y, p, p \
	VADDPS 320(E), p, p \
	VMULPS y, p, p \
	VADDPS 352(E), p, p \
	VCVTPS2DQ k, k \
	VPADDD 416(E), k, k \
	VPSLLD $23, k, k \
	VMOVUPS k, t \
	VMULPS y, y, k \
	VMULPS k, p, p \
	VADDPS y, p, p \
	VADDPS 384(E), p, p \
	VMULPS t, p, y
