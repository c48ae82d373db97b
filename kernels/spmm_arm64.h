// Macros of the kernels of Y = S·X. They sum some columns of a row of Y at a time, in registers, over the row's
// edges. The values of X have 1<<shift bytes. Edges of successive rows are adjacent, so one pointer walks through
// columns and values. R2 points at the edge's column, R3 at its value, R10 at the row's end; R5 and R6 are X and its
// stride, R7 and R8 Y's.

#define LOADARGS(shift) \
	MOVD  rows+0(FP), R0     \
	MOVD  rowPtr+8(FP), R1   \
	MOVD  col+16(FP), R12    \
	MOVD  val+24(FP), R3     \
	MOVD  step+32(FP), R4    \
	MOVD  x+40(FP), R5       \
	MOVD  ldx+48(FP), R6     \
	MOVD  y+56(FP), R7       \
	MOVD  ldy+64(FP), R8     \
	MOVD  far+80(FP), R9     \
	MOVBU acc+88(FP), R13    \
	LSL   $shift, R6         \
	LSL   $2, R8             \
	ADD   R9<<2, R12, R9     \
	MOVD.P 8(R1), R11        \
	ADD   R11<<2, R12, R2    \
	MADD  R4, R3, R11, R3

// ROWEND sets R10 to the address after the row's last column.
#define ROWEND \
	MOVD.P 8(R1), R10     \
	ADD    R10<<2, R12, R10

// EDGE points R11 at the edge's row of X and loads its value to V31.
#define EDGE \
	MOVW.P 4(R2), R11     \
	FMOVS  (R3), F31      \
	ADD    R4, R3         \
	MADD   R6, R5, R11, R11

// AHEAD points R14 at the row of X 16 edges later, or jumps if there is none.
#define AHEAD(none) \
	CMP  R9, R2           \
	BHS  none             \
	MOVW 64(R2), R14      \
	MADD R6, R5, R14, R14
