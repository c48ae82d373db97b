#include "textflag.h"

// func gather8AVX(q []float32, table []float32, ld int, col []int32)
TEXT ·gather8AVX(SB), NOSPLIT, $0-80
	MOVQ q_base+0(FP), DI
	MOVQ table_base+24(FP), BX
	MOVQ ld+48(FP), R12
	MOVQ col_base+56(FP), SI
	MOVQ col_len+64(FP), CX
	SHLQ $2, R12
	TESTQ CX, CX
	JZ   done

each:
	MOVLQSX (SI), AX
	IMULQ R12, AX
	VMOVUPS (BX)(AX*1), Y0
	VMOVUPS Y0, (DI)
	ADDQ $4, SI
	ADDQ $32, DI
	DECQ CX
	JNZ  each

done:
	VZEROUPPER
	RET

// func gather4AVX(q []float32, table []float32, ld int, col []int32)
TEXT ·gather4AVX(SB), NOSPLIT, $0-80
	MOVQ q_base+0(FP), DI
	MOVQ table_base+24(FP), BX
	MOVQ ld+48(FP), R12
	MOVQ col_base+56(FP), SI
	MOVQ col_len+64(FP), CX
	SHLQ $2, R12
	TESTQ CX, CX
	JZ   done

each:
	MOVLQSX (SI), AX
	IMULQ R12, AX
	MOVUPS (BX)(AX*1), X0
	MOVUPS X0, (DI)
	ADDQ $4, SI
	ADDQ $16, DI
	DECQ CX
	JNZ  each

done:
	RET
