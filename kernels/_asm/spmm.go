package main

import "fmt"

// rows is a kernel of Y = S·X that sums so many columns of a row of Y in registers.
type rows struct {
	vectors int
	masked  bool // to the columns there are
	half    bool // X is bfloat16
}

const spmmParameters = "(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)"

// writeSpMM writes the kernels of a sparse matrix times a dense one of float32.
func (w *writer) writeSpMM() {
	w.text(generated + "#include \"spmm_amd64.h\"\n")
	if w.wide {
		w.text(columnMasks)
		w.spmm(rows{8, false, false}, rows{4, true, false}, rows{1, true, false})
		return
	}
	w.text(`// Y14 masks the last 8 columns or fewer.
#define MASK \
	MOVQ    cols+72(FP), CX   \
	MOVQ    $8, AX            \
	SUBQ    CX, AX            \
	LEAQ    masks<>(SB), R11  \
	VMOVUPS (R11)(AX*4), Y14

` + masks)
	w.spmm(rows{8, false, false}, rows{4, false, false}, rows{1, true, false})
}

// writeSpMMBF16 writes those of a dense one of bfloat16.
func (w *writer) writeSpMMBF16() {
	w.text(generated + "#include \"spmm_amd64.h\"\n\n// Sparse times dense where X is bfloat16: rows are widened, by a shift, as they are fetched.")
	if w.wide {
		w.text("\n" + columnMasks)
		w.spmm(rows{16, false, true}, rows{8, false, true}, rows{4, true, true}, rows{1, true, true})
		return
	}
	w.spmm(rows{8, false, true}, rows{1, false, true})
	w.text(narrow)
	for _, n := range []int{4, 2, 1} {
		w.function(fmt.Sprintf("spmmBF16x%d", n), spmmParameters, 89)
		w.textf("\tNARROW(WIDEN%d, GET%[1]d, PUT%[1]d)", n)
	}
}

const columnMasks = `// K1 to K4 mask the last 64 columns or fewer.
#define MASK \
	MOVQ  cols+72(FP), CX \
	MOVQ  $-1, AX         \
	NEGQ  CX              \
	SHRQ  CX, AX          \
	KMOVW AX, K1          \
	SHRQ  $16, AX         \
	KMOVW AX, K2          \
	SHRQ  $16, AX         \
	KMOVW AX, K3          \
	SHRQ  $16, AX         \
	KMOVW AX, K4`

// What is left of the columns for AVX2, which masks no values of 2 bytes.
const narrow = `
// NARROW is the function for fewer columns, loaded by WIDEN, and in Y by GET and PUT.
#define NARROW(WIDEN, GET, PUT) \
	LOADARGS(1)                \
row:                           \
	ROWEND                     \
	VXORPS X0, X0, X0          \
	CMPB acc+88(FP), $0        \
	JEQ  edges                 \
	GET                        \
edges:                         \
	CMPQ R8, CX                \
	JAE  put                   \
edge:                          \
	AHEAD(here)                \
	PREFETCHT0 (R11)           \
here:                          \
	EDGE(X15)                  \
	WIDEN                      \
	VPSLLD $16, X8, X8         \
	VFMADD231PS X8, X15, X0    \
	NEXT(edge)                 \
put:                           \
	PUT                        \
	ADDQ R13, DI               \
	DECQ DX                    \
	JNZ  row                   \
	RET

#define WIDEN4 VPMOVZXWD (AX), X8
#define GET4   VMOVUPS (DI), X0
#define PUT4   VMOVUPS X0, (DI)

#define WIDEN2 \
	VMOVD     (AX), X8 \
	VPMOVZXWD X8, X8
#define GET2 VMOVQ (DI), X0
#define PUT2 VMOVQ X0, (DI)

#define WIDEN1 \
	MOVWLZX (AX), AX \
	VMOVD   AX, X8
#define GET1 VMOVSS (DI), X0
#define PUT1 VMOVSS X0, (DI)`

// A loop over rows, and in it one over the edges of a row.
func (w *writer) spmm(kernels ...rows) {
	for _, k := range kernels {
		size, name := 4, "spmm"
		if k.half {
			size, name = 2, "spmmBF16x"
		}
		w.function(fmt.Sprintf("%s%d", name, k.vectors*w.lanes()), spmmParameters, 89)
		w.textf("\tLOADARGS(%d)", size/2)
		if k.masked {
			w.text("\tMASK")
		}
		w.text("\nrow:\n\tROWEND\n\tCMPB acc+88(FP), $0\n\tJNE  get")
		for v := range k.vectors {
			w.textf("\tZERO V%d", v)
		}
		w.text("\tJMP  edges\n\nget:")
		for v := range k.vectors {
			w.load(k.mask(w, v), v*w.bytes(), "DI", v)
		}
		w.text("\nedges:\n\tCMPQ R8, CX\n\tJAE  put\n\nedge:\n\tAHEAD(here)")
		for b := 0; b < k.vectors*w.lanes()*size; b += 64 {
			w.textf("\tPREFETCHT0 %d(R11)", b)
		}
		value := either(w, "V15", "V31")
		w.textf("\nhere:\n\tEDGE(%s)", value)
		if k.half {
			w.widened(k, value)
		} else {
			for v := range k.vectors {
				at := fmt.Sprintf("%d(AX)", v*w.bytes())
				switch {
				case !k.masked:
					w.textf("\tVFMADD231PS %s, %s, V%d", at, value, v)
				case w.wide:
					w.textf("\tVFMADD231PS %s, %s, K%d, V%d", at, value, v+1, v)
				default:
					w.textf("\tVMASKMOVPS %s, Y14, Y1\n\tVFMADD231PS Y1, %s, V%d", at, value, v)
				}
			}
		}
		w.text("\tNEXT(edge)\n\nput:")
		for v := range k.vectors {
			w.store(k.mask(w, v), v, v*w.bytes(), "DI")
		}
		w.text("\tADDQ R13, DI\n\tDECQ DX\n\tJNZ  row\n\tVZEROUPPER\n\tRET")
	}
}

// widened appends the products of an edge with values of bfloat16, six vectors at a time: as many loads, then as many shifts,
// are under way at once.
func (w *writer) widened(k rows, value string) {
	first, registers := either(w, 8, 16), either(w, 6, 8)
	for g := 0; g < k.vectors; g += 6 {
		group := func(format func(v, r int) string) {
			for v := g; v < min(g+6, k.vectors); v++ {
				w.text("\t" + format(v, first+v%registers))
			}
		}
		group(func(v, r int) string {
			if k.masked {
				return fmt.Sprintf("VPMOVZXWD.Z %d(AX), K%d, V%d", v*w.bytes()/2, v+1, r)
			}
			return fmt.Sprintf("VPMOVZXWD %d(AX), V%d", v*w.bytes()/2, r)
		})
		group(func(v, r int) string { return fmt.Sprintf("VPSLLD $16, V%d, V%d", r, r) })
		group(func(v, r int) string { return fmt.Sprintf("VFMADD231PS V%d, %s, V%d", r, value, v) })
	}
}

// mask names the mask of the v-th vector, if it has one.
func (k rows) mask(w *writer, v int) string {
	if !k.masked {
		return ""
	}
	return either(w, "V14", fmt.Sprintf("K%d", v+1))
}

// load loads a vector that lies so many bytes on, what a mask lets through if one is named; store stores it.
func (w *writer) load(mask string, at int, pointer string, register int) {
	if mask == "" {
		w.textf("\tVMOVUPS %d(%s), V%d", at, pointer, register)
	} else {
		w.textf("\t%s %d(%s), %s, V%d", either(w, "VMASKMOVPS", "VMOVUPS.Z"), at, pointer, mask, register)
	}
}

func (w *writer) store(mask string, register, at int, pointer string) {
	if mask == "" {
		w.textf("\tVMOVUPS V%d, %d(%s)", register, at, pointer)
	} else {
		w.textf("\t%s V%d, %s, %d(%s)", either(w, "VMASKMOVPS", "VMOVUPS"), register, mask, at, pointer)
	}
}
