package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// rowSums is a kernel that sums functions of a row's columns. Sixteen lanes of float32 sum 128 columns, and their total
// is added in float64. It processes sixteen columns a turn, in AVX2 as two vectors.
type rowSums struct {
	name, parameters string
	size             int // size of the arguments, bytes
	load             string
	vector           string // code for one vector, AT bytes on; T0, T1 … are scratch, S0, S1 … the lanes of each sum
	pointers         string
	ahead            string // pointers whose rows are prefetched
	many             bool   // AVX-512 processes 128 columns at once as long as it can
	first            string // code for the first of these vectors, if it can write instead of adding to zeros
	results          []string
	avx2, avx512     registers
}

// registers are the numbers of the vector registers that a kernel uses.
type registers struct {
	scratch []int
	lanes   [][]int // [sum] sixteen lanes
	totals  []int   // [sum] its float64 total
	fold    []int   // scratch to fold lanes
}

var numbered = regexp.MustCompile(`\b[TS]\d\b`)

// named replaces T0, T1 … and S0, S1 … in assembly by registers; a sum's register is its lanes' v-th vector.
func (r registers) named(t string, v int) string {
	return numbered.ReplaceAllStringFunc(t, func(name string) string {
		i := name[1] - '0'
		if name[0] == 'T' {
			return fmt.Sprintf("V%d", r.scratch[i])
		}
		return fmt.Sprintf("V%d", r.lanes[i][v])
	})
}

func rowSumKernels(w *writer) []rowSums {
	return []rowSums{
		{
			name: "sum", parameters: "(x []float32) float64", size: 32, pointers: "SI", ahead: "SI", many: true,
			load:    "\tMOVQ x_base+0(FP), SI\n\tMOVQ x_len+8(FP), CX",
			first:   "\tLOAD AT(SI), S0",
			vector:  "\tFOLD VADDPS AT(SI), S0, T0",
			results: []string{"ret+24(FP)"},
			avx2:    registers{[]int{4}, [][]int{{1, 2}}, []int{0}, []int{4, 5, 6, 7}},
			avx512:  registers{[]int{2}, [][]int{{1}}, []int{0}, []int{2, 3}},
		},
		{
			name: "sumSquares", parameters: "(x []float32, mean float32) float64", size: 40, pointers: "SI", many: true,
			load:    "\tMOVQ x_base+0(FP), SI\n\tMOVQ x_len+8(FP), CX\n\tVBROADCASTSS mean+24(FP), V10",
			vector:  "\tLOAD AT(SI), T0\n\tKEEP VSUBPS V10, T0, T0\n\tVMULPS T0, T0, T0\n\tVADDPS T0, S0, S0",
			results: []string{"ret+32(FP)"},
			avx2:    registers{[]int{4}, [][]int{{1, 2}}, []int{0}, []int{4, 5, 6, 7}},
			avx512:  registers{[]int{2}, [][]int{{1}}, []int{0}, []int{2, 3}},
		},
		{
			name: "normSums", parameters: "(x, dy, gain []float32, mean, inv float32) (a, b float64)", size: 96,
			pointers: "SI BX DX", ahead: "SI BX",
			load: `	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ gain_base+48(FP), DX
	VBROADCASTSS mean+72(FP), V10
	VBROADCASTSS inv+76(FP), V11`,
			vector: `	LOAD AT(SI), T0
	LOAD AT(BX), T1
	LOAD AT(DX), T2
	VSUBPS V10, T0, T0
	KEEP VMULPS V11, T0, T0
	VMULPS T2, T1, T1
	VADDPS T1, S0, S0
	VMULPS T0, T1, T1
	VADDPS T1, S1, S1`,
			results: []string{"a+80(FP)", "b+88(FP)"},
			avx2:    registers{[]int{8, 9, 12}, [][]int{{2, 3}, {4, 5}}, []int{0, 1}, []int{6, 7, 8, 9}},
			avx512:  registers{[]int{1, 2, 3}, [][]int{{8}, {9}}, []int{0, 5}, []int{1, 2}},
		},
		{
			name: "expSum", parameters: "(shift float32, x, y []float32) float64", size: 64, pointers: "SI DI",
			load: "\tVBROADCASTSS shift+0(FP), V10\n\tMOVQ x_base+8(FP), SI\n\tMOVQ x_len+16(FP), CX\n" +
				"\tMOVQ y_base+32(FP), DI\n" +
				either(w, "\tLEAQ exps<>(SB), R14", "\tEXPS512"),
			vector: "\tLOAD AT(SI), T0\n\tVSUBPS V10, T0, T0\n" +
				either(w, "\tEXP(R14, Y4, Y5, Y6, Y7)\n\tVANDPS Y15, Y4, Y4",
					"\tEXP512(Z1)\n\tVMULPS.Z Z2, Z3, K1, Z3") +
				"\n\tSTORE T1, AT(DI)\n\tVADDPS T1, S0, S0",
			results: []string{"ret+56(FP)"},
			avx2:    registers{[]int{4, 4}, [][]int{{1, 2}}, []int{0}, []int{4, 5, 6, 7}},
			avx512:  registers{[]int{1, 3}, [][]int{{6}}, []int{0}, []int{1, 2}},
		},
	}
}

// columns is a kernel that processes a row's columns one vector after another.
type columns struct {
	name, parameters string
	size             int // size of the arguments, bytes
	load             string
	fill             string // fills a register
	vector           string // code for one vector
	pointers         string
	doubles          string // pointers to float64
	result           string
	after            string // jump targets after the loop
}

func columnKernels(w *writer) []columns {
	return []columns{
		{
			name: "normalise", parameters: "(x, gain, bias, y []float32, mean, inv float32, past bool)", size: 105,
			pointers: "SI BX DX DI",
			load: `	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ gain_base+24(FP), BX
	MOVQ bias_base+48(FP), DX
	MOVQ y_base+72(FP), DI
	VBROADCASTSS mean+96(FP), V10
	VBROADCASTSS inv+100(FP), V11
	MOVBLZX past+104(FP), R8`,
			vector: `	LOAD (SI), V1
	LOAD (BX), V2
	LOAD (DX), V3
	VSUBPS V10, V1, V1
	VMULPS V11, V1, V1
	VMULPS V2, V1, V1
	VADDPS V3, V1, V1
	TESTL R8, R8
	JNZ   past
	STORE V1, (DI)
	PREFETCHT0 1024(DI)

on:`,
			after: "\npast: // whole lines only\n\tVMOVNTPS V1, (DI)\n\tJMP   on",
		},
		{
			name: "normGrad", parameters: "(x, dy, gain, dx []float32, mean, inv, ma, mb float32)", size: 112,
			pointers: "SI BX DX DI",
			load: `	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ dy_base+24(FP), BX
	MOVQ gain_base+48(FP), DX
	MOVQ dx_base+72(FP), DI
	VBROADCASTSS mean+96(FP), V10
	VBROADCASTSS inv+100(FP), V11
	VBROADCASTSS ma+104(FP), V12
	VBROADCASTSS mb+108(FP), V13`,
			vector: `	LOAD (SI), V1
	LOAD (BX), V2
	LOAD (DX), V3
	LOAD (DI), V4
	VSUBPS V10, V1, V1
	VMULPS V11, V1, V1
	VMULPS V3, V2, V2
	VSUBPS V12, V2, V2
	VMULPS V13, V1, V1
	VSUBPS V1, V2, V2
	VMULPS V11, V2, V2
	VADDPS V2, V4, V4
	STORE V4, (DI)
	PREFETCHT0 2048(DI)`,
		},
		{
			name: "addNorm", parameters: "(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, " +
				"gain, bias []float64)", size: 144,
			load: `	MOVQ x_base+8(FP), SI
	MOVQ ldx+32(FP), R12
	MOVQ dy_base+40(FP), BX
	MOVQ lddy+64(FP), R14
	MOVQ gain_base+96(FP), DI
	MOVQ gain_len+104(FP), CX
	MOVQ bias_base+120(FP), DX
	SHLQ $2, R12
	SHLQ $2, R14`,
			vector: w.addNorm(), pointers: "SI BX", doubles: "DI DX",
		},
		{
			name: "max", parameters: "(x []float32) float32", size: 28, pointers: "SI",
			load: "\tMOVQ x_base+0(FP), SI\n\tMOVQ x_len+8(FP), CX",
			fill: "\n\tMOVL $0xff800000, AX // −Inf\n" + either(w, "\tVMOVD AX, X0\n\tVBROADCASTSS X0, Y0",
				"\tVPBROADCASTD AX, Z0"),
			vector: "\tLOAD (SI), V1 // a NaN here is ignored: it is the first operand of the maximum\n" +
				either(w, "\tVMAXPS Y0, Y1, Y1\n\tVBLENDVPS Y15, Y1, Y0, Y0", "\tVMAXPS Z0, Z1, K1, Z0"),
			result: either(w, "", "\tVEXTRACTF64X4 $1, Z0, Y1\n\tVMAXPS Y1, Y0, Y0\n") + `	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSS X0, ret+24(FP)
`,
		},
	}
}

// writeNorm writes the row kernels of LayerNorm and softmax: sums over a row, and functions of each column.
func (w *writer) writeNorm() {
	w.mask = "Y15" // lower registers have lanes and exponentials
	w.text(generated + either(w, "#include \"exp_amd64.h\"\n", "#include \"exp_avx512_amd64.h\"\n") + `
// Rows of LayerNorm and softmax: vectors of LANES, the last one under a mask. Sixteen lanes of float32 sum 128
// columns, and float64 sums these, in the order of plain Go. No multiply-add is fused. Later rows are prefetched: a
// row is read several times, and memory would be idle meanwhile.
`)
	w.text(either(w, normMasksAVX2, normMasksAVX512))
	for _, k := range rowSumKernels(w) {
		w.rowSums(k)
	}
	for _, k := range columnKernels(w) {
		w.columns(k)
	}
}

const normMasksAVX2 = masks + `

// MASK makes Y15 the mask of the next min(CX, 8) values; R13 points at masks, R15 is 0.
#define MASK \
	MOVQ    $8, AX            \
	SUBQ    CX, AX            \
	CMOVQLT R15, AX           \
	VMOVUPS (R13)(AX*4), Y15

#define MASKS \
	LEAQ masks<>(SB), R13 \
	XORQ R15, R15`

const normMasksAVX512 = `// MASK makes K1 the mask of the last CX < 16 values, and K2 of those after eight; ALL sets both for 16 values.
#define MASK \
	MOVL     $1, AX     \
	SHLL     CX, AX     \
	DECL     AX         \
	KMOVW    AX, K1     \
	KSHIFTRW $8, K1, K2

#define ALL \
	MOVL     $0xffff, AX \
	KMOVW    AX, K1      \
	KSHIFTRW $8, K1, K2`

// arguments appends code that loads the arguments, the address of AVX2's masks, and registers with constants. If all is
// set, AVX-512 also gets the mask of full vectors.
func (w *writer) arguments(load, fill string, all bool) {
	w.text(load + either(w, "\n\tMASKS", "") + fill)
	if w.wide && all {
		w.text("\tALL")
	}
}

// ifNone, followed by a label, jumps there if no columns remain.
const ifNone = "\n\tTESTQ CX, CX\n\tJLE  "

// masked starts the next vector, under its mask.
func (w *writer) masked() { w.text(either(w, "\tMASK", "\tCMPQ CX, $16\n\tJLT  tail\n\nnext:")) }

// tail follows a kernel: AVX-512 jumps to it for the last vector; first is code that comes before it.
func (w *writer) tail(first string) {
	if w.wide {
		w.text("\ntail:" + first + "\n\tMASK\n\tJMP  next")
	}
}

// advance appends code that moves pointers on by a number of bytes.
func (w *writer) advance(pointers string, by int) {
	for _, p := range strings.Fields(pointers) {
		w.textf("\tADDQ $%d, %s", by, p)
	}
}

func (w *writer) columns(k columns) {
	w.function(k.name, k.parameters, k.size)
	w.arguments(k.load, k.fill, true)
	w.text("\neach:" + either(w, ifNone+"done", ""))
	w.masked()
	w.text(k.vector)
	w.advance(k.pointers, w.bytes())
	w.advance(k.doubles, 2*w.bytes())
	w.text("\tSUBQ $LANES, CX\n\t" + either(w, "JMP", "JGT") + "  each\n\ndone:\n" + k.result + "\tVZEROUPPER\n\tRET")
	w.tail(ifNone + "done")
	if k.after != "" {
		w.text(k.after)
	}
}

// rowSums writes a kernel that processes a row in parts of 128 columns, each in eight turns of sixteen. With `many` it
// processes whole parts at once, and then the rest of the row in turns.
func (w *writer) rowSums(k rowSums) {
	r := either(w, k.avx2, k.avx512)
	lanes, totals := "", ""
	for i, sum := range r.lanes {
		for _, v := range sum {
			lanes += fmt.Sprintf("\n\tZERO V%d", v)
		}
		totals += fmt.Sprintf("\n\tZERO %s%d", either(w, "X", "Z"), r.totals[i])
	}
	vector := func(t string, v, at int, masked bool) {
		w.body(masked, strings.ReplaceAll(r.named(t, v), "AT", fmt.Sprint(at)))
	}
	fold := func() {
		for i, sum := range r.lanes {
			w.fold(sum, r.totals[i], r.fold)
		}
	}
	many, ahead := k.many && w.wide, strings.Fields(k.ahead)

	w.function(k.name, k.parameters, k.size)
	w.arguments(k.load, totals, !many)
	if many {
		w.round("many", "few", 128, func() {
			for _, p := range ahead {
				for at := 2048; at < 2048+512; at += 64 {
					w.textf("\tPREFETCHT0 %d(%s)", at, p)
				}
			}
			vector(cmp.Or(k.first, lanes[1:]+"\n"+k.vector), 0, 0, false)
			for at := 64; at < 512; at += 64 {
				vector(k.vector, 0, at, false)
			}
			fold()
			w.advance(k.pointers, 512)
		})
		w.text("\nfew:" + ifNone + "done" + lanes + "\n\tALL\n\neach:")
		ahead = nil
	} else {
		w.text("\npart:" + ifNone + "done" + lanes + "\n\tMOVQ $8, R8\n\neach:")
	}
	for v := range r.lanes[0] {
		w.masked()
		if v == 0 {
			for _, p := range ahead {
				w.textf("\tPREFETCHT0 2048(%s)", p)
			}
		}
		vector(k.vector, v, v*w.bytes(), true)
		if v == len(r.lanes[0])-1 {
			w.advance(k.pointers, 64)
		}
		w.text("\tSUBQ $LANES, CX")
		if !many {
			w.text("\tJLE  last")
		}
	}
	if many {
		w.text("\tJGT  each\n\nlast:")
		fold()
	} else {
		w.text("\tDECQ R8\n\tJNZ  each\n\nlast:")
		fold()
		w.text("\tJMP  part")
	}
	w.text("\ndone:")
	for i, result := range k.results {
		w.textf("\tVMOVSD X%d, %s", r.totals[i], result)
	}
	w.text("\tVZEROUPPER\n\tRET")
	if many {
		w.tail(ifNone + "last")
	} else {
		w.tail("")
	}
}

// float64s makes V(low) and V(high) the float64 of V(v).
func (w *writer) float64s(v, low, high int) string {
	return fmt.Sprintf(either(w, "\tVEXTRACTF128 $1, Y%[1]d, X%[3]d\n\tVCVTPS2PD X%[1]d, Y%[2]d\n"+
		"\tVCVTPS2PD X%[3]d, Y%[3]d",
		"\tVCVTPS2PD Y%[1]d, Z%[2]d\n\tVEXTRACTF64X4 $1, Z%[1]d, Y%[3]d\n\tVCVTPS2PD Y%[3]d, Z%[3]d"), v, low, high)
}

// fold adds sixteen lanes, columns 0 to 15 modulo 16, and adds their sum to the total; s are scratch.
func (w *writer) fold(lanes []int, total int, s []int) {
	to, other := s[0], s[1]
	w.text(w.float64s(lanes[0], s[0], s[1]))
	if w.wide {
		to, other = lanes[0], s[0]
		w.textf("\tVADDPD Z%[1]d, Z%[2]d, Z%[3]d\n\tVEXTRACTF64X4 $1, Z%[3]d, Y%[2]d\n\tVADDPD Y%[2]d, Y%[3]d, Y%[3]d",
			s[1], s[0], to)
	} else {
		w.text(w.float64s(lanes[1], s[2], s[3]))
		w.textf("\tVADDPD Y%[3]d, Y%[1]d, Y%[1]d\n\tVADDPD Y%[4]d, Y%[2]d, Y%[2]d\n\tVADDPD Y%[2]d, Y%[1]d, Y%[1]d",
			s[0], s[1], s[2], s[3])
	}
	w.textf(`	VEXTRACTF128 $1, Y%[1]d, X%[2]d
	VADDPD X%[2]d, X%[1]d, X%[1]d
	VPERMILPD $1, X%[1]d, X%[2]d
	VADDSD X%[2]d, X%[1]d, X%[1]d
	VADDSD X%[1]d, X%[3]d, X%[3]d`, to, other, total)
}

// addNorm loops over the rows and adds the results of a vector of columns to float64 sums, whose masks cover half as
// many values.
func (w *writer) addNorm() string {
	own := strings.NewReplacer("VSUBPS MEAN", either(w, "VBROADCASTSS (R10), Y3\n\tVSUBPS Y3", "VSUBPS.BCST (R10)"),
		"VMULPS INV", either(w, "VBROADCASTSS 4(R10), Y3\n\tVMULPS Y3", "VMULPS.BCST 4(R10)"))
	t := either(w, "\tVPMOVSXDQ X15, Y13\n\tVEXTRACTF128 $1, Y15, X14\n\tVPMOVSXDQ X14, Y14\n", "") +
		own.Replace(`	ZERO V6
	ZERO V8
	MOVQ SI, R8
	MOVQ BX, R9
	MOVQ stats_base+72(FP), R10
	MOVQ rows+0(FP), R11

row:
	LOAD (R8), V1
	LOAD (R9), V2
	VADDPS V2, V8, V8
	VSUBPS MEAN, V1, V1
	VMULPS INV, V1, V1
	VMULPS V2, V1, V1
	VADDPS V1, V6, V6
	ADDQ R12, R8
	ADDQ R14, R9
	ADDQ $8, R10
	DECQ R11
	JNZ  row
`) + w.float64s(6, 1, 2) + "\n" + w.float64s(8, 3, 4)
	add := either(w, "\n\tVMASKMOVPD %[1]s, %[2]s, Y5\n\tVADDPD Y%[3]d, Y5, Y5\n\tVMASKMOVPD Y5, %[2]s, %[1]s",
		"\n\tVMOVUPD.Z %[1]s, %[2]s, Z5\n\tVADDPD Z%[3]d, Z5, Z5\n\tVMOVUPD Z5, %[2]s, %[1]s")
	low, high := either(w, "Y13", "K1"), either(w, "Y14", "K2")
	for i, sum := range []string{"(DI)", "(DX)"} {
		t += fmt.Sprintf(add, sum, low, 2*i+1) + fmt.Sprintf(add, fmt.Sprint(w.bytes())+sum, high, 2*i+2)
	}
	return t
}
