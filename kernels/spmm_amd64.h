// What the kernels of Y = S·X have in common. Rows of Y, some columns of them at a time, are summed in registers over
// the edges of the row.
// Edges of one row follow those of the row before it, so one pointer walks through columns and values.
// R8 the column of the edge, R9 its value, CX the row's end; BX and R12 X and its stride, DI and R13 those of Y.

#define LOADARGS \
	MOVQ  rows+0(FP), DX     \
	MOVQ  rowPtr+8(FP), SI   \
	MOVQ  col+16(FP), R8     \
	MOVQ  val+24(FP), R9     \
	MOVQ  step+32(FP), R10   \
	MOVQ  x+40(FP), BX       \
	MOVQ  ldx+48(FP), R12    \
	MOVQ  y+56(FP), DI       \
	MOVQ  ldy+64(FP), R13    \
	MOVQ  far+80(FP), R15    \
	SHLQ  $2, R12            \
	SHLQ  $2, R13            \
	LEAQ  (R8)(R15*4), R15   \
	MOVQ  (SI), AX           \
	LEAQ  (R8)(AX*4), R8     \
	IMULQ R10, AX            \
	ADDQ  AX, R9

// ROWEND sets CX to the place after the row's last column.
#define ROWEND \
	ADDQ $8, SI            \
	MOVQ (SI), CX          \
	MOVQ col+16(FP), AX    \
	LEAQ (AX)(CX*4), CX

// EDGE points AX at the edge's row of X and broadcasts its value to w.
#define EDGE(w) \
	MOVLQSX      (R8), AX  \
	IMULQ        R12, AX   \
	ADDQ         BX, AX    \
	VBROADCASTSS (R9), w

// AHEAD points R11 at the row of X that comes 16 edges later, or jumps where there is none.
#define AHEAD(none) \
	CMPQ    R8, R15      \
	JAE     none         \
	MOVLQSX 64(R8), R11  \
	IMULQ   R12, R11     \
	ADDQ    BX, R11

#define NEXT(loop) \
	ADDQ $4, R8   \
	ADDQ R10, R9  \
	CMPQ R8, CX   \
	JB   loop
