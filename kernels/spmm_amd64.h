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

// Kernels of a panel: the edges of a row begin at a place of its own. SI the places, R10 the ends, R8 the column of the edge, R11
// from there to its value, CX the row's end; R15 the first column of the panel, R9 how many there are.

#define PANELARGS \
	MOVQ rows+0(FP), DX   \
	MOVQ at+8(FP), SI     \
	MOVQ ends+16(FP), R10 \
	MOVQ val+32(FP), R11  \
	SUBQ col+24(FP), R11  \
	MOVQ first+40(FP), R15 \
	MOVQ tall+48(FP), R9  \
	MOVQ x+56(FP), BX     \
	MOVQ ldx+64(FP), R12  \
	MOVQ y+72(FP), DI     \
	MOVQ ldy+80(FP), R13  \
	SHLQ $2, R12          \
	SHLQ $2, R13

// PLACES sets R8 to a row's place and CX to its end, and fetches what begins at the place of the row that comes four later.
#define PLACES \
	MOVQ col+24(FP), AX  \
	MOVQ 32(SI), R8      \
	LEAQ (AX)(R8*4), R8  \
	PREFETCHT0 (R8)      \
	PREFETCHT0 64(R8)    \
	PREFETCHT0 (R8)(R11*1) \
	PREFETCHT0 64(R8)(R11*1) \
	MOVQ (SI), R8        \
	MOVQ (R10), CX       \
	LEAQ (AX)(R8*4), R8  \
	LEAQ (AX)(CX*4), CX

// WITHIN points AX at the edge's row of X, or jumps where the edge is not of the panel.
#define WITHIN(past) \
	MOVL  (R8), AX \
	SUBL  R15, AX  \
	CMPL  AX, R9   \
	JAE   past     \
	IMULQ R12, AX  \
	ADDQ  BX, AX

// STOPPED writes where R8 is to the row's place and goes on to the next row's.
#define STOPPED \
	SUBQ col+24(FP), R8 \
	SHRQ $2, R8         \
	MOVQ R8, (SI)       \
	ADDQ $8, SI         \
	ADDQ $8, R10
