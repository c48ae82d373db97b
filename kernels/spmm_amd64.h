// Macros of the kernels of Y = S·X. They sum some columns of a row of Y at a time, in registers, over the row's
// edges. Edges of successive rows are adjacent, so one pointer walks through columns and values. R8 points at the
// edge's column, R9 at its value, CX at the row's end; BX and R12 are X and its stride, DI and R13 Y's.

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

// ROWEND sets CX to the address after the row's last column.
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

// AHEAD points R11 at the row of X 16 edges later, or jumps if there is none.
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

// Kernels of a panel: each row has its own first edge. SI points at the first edges, R10 at the ends, R8 at the
// edge's column, CX at the row's end; R11 is the offset from a column to its value; R15 the panel's first column, R9
// its number of columns.

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

// PLACES sets R8 to a row's first edge and CX to its end, and prefetches the first edge of the row four rows later.
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

// WITHIN points AX at the edge's row of X, or jumps if the edge is not in the panel.
#define WITHIN(past) \
	MOVL  (R8), AX \
	SUBL  R15, AX  \
	CMPL  AX, R9   \
	JAE   past     \
	IMULQ R12, AX  \
	ADDQ  BX, AX

// STOPPED stores R8 as the row's next edge and advances to the next row.
#define STOPPED \
	SUBQ col+24(FP), R8 \
	SHRQ $2, R8         \
	MOVQ R8, (SI)       \
	ADDQ $8, SI         \
	ADDQ $8, R10
