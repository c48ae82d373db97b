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

// func scatter8AVX(q []float32, table []float32, ld int, col []int32, lo, hi int)
TEXT ·scatter8AVX(SB), NOSPLIT, $0-96
	MOVQ q_base+0(FP), DI
	MOVQ table_base+24(FP), BX
	MOVQ ld+48(FP), R12
	MOVQ col_base+56(FP), SI
	MOVQ col_len+64(FP), CX
	MOVQ lo+80(FP), R8
	MOVQ hi+88(FP), R9
	SUBQ R8, R9
	SHLQ $2, R12
	TESTQ CX, CX
	JZ   done

each:
	MOVLQSX (SI), AX
	MOVQ AX, DX
	SUBQ R8, DX
	CMPQ DX, R9 // unsigned: columns below lo are excluded, too
	JAE  next
	IMULQ R12, AX
	VMOVUPS (DI), Y0
	VADDPS (BX)(AX*1), Y0, Y0
	VMOVUPS Y0, (BX)(AX*1)

next:
	ADDQ $4, SI
	ADDQ $32, DI
	DECQ CX
	JNZ  each

done:
	VZEROUPPER
	RET

// func scatter4AVX(q []float32, table []float32, ld int, col []int32, lo, hi int)
TEXT ·scatter4AVX(SB), NOSPLIT, $0-96
	MOVQ q_base+0(FP), DI
	MOVQ table_base+24(FP), BX
	MOVQ ld+48(FP), R12
	MOVQ col_base+56(FP), SI
	MOVQ col_len+64(FP), CX
	MOVQ lo+80(FP), R8
	MOVQ hi+88(FP), R9
	SUBQ R8, R9
	SHLQ $2, R12
	TESTQ CX, CX
	JZ   done

each:
	MOVLQSX (SI), AX
	MOVQ AX, DX
	SUBQ R8, DX
	CMPQ DX, R9 // unsigned: columns below lo are excluded, too
	JAE  next
	IMULQ R12, AX
	MOVUPS (DI), X0
	MOVUPS (BX)(AX*1), X1
	ADDPS X1, X0
	MOVUPS X0, (BX)(AX*1)

next:
	ADDQ $4, SI
	ADDQ $16, DI
	DECQ CX
	JNZ  each

done:
	RET
