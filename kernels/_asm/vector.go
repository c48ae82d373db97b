package main

import (
	"fmt"
	"strings"
)

// slices is a kernel over slices of CX values, each at a pointer that advances. It processes several vectors a turn,
// then one by one, then the remaining values under the mask.
type slices struct {
	comment          string
	name, parameters string
	size             int    // size of the arguments, bytes
	load             string // loads the arguments
	pointers         string
	unrolled         int
	vector           string // assembly for one vector, AT bytes on; SUM is its own register
	result           string // computes the result from the four SUMs, if there is one
}

var vectorKernels = []slices{
	{
		name: "axpy", parameters: "(a float32, x, y []float32)", size: 56, pointers: "SI DI", unrolled: 4,
		load: "\tVBROADCASTSS a+0(FP), V0\n\tMOVQ x_base+8(FP), SI\n\tMOVQ x_len+16(FP), CX\n" +
			"\tMOVQ y_base+32(FP), DI",
		vector: "\tLOAD AT(SI), V1\n\tVMULPS V0, V1, V1\n\tLOAD AT(DI), V2\n\tVADDPS V1, V2, V2\n\tSTORE V2, AT(DI)",
	},
	{
		name: "add", parameters: "(x, y []float32)", size: 48, pointers: "SI DI", unrolled: 4,
		load:   "\tMOVQ x_base+0(FP), SI\n\tMOVQ x_len+8(FP), CX\n\tMOVQ y_base+24(FP), DI",
		vector: "\tLOAD AT(SI), V1\n\tLOAD AT(DI), V2\n\tVADDPS V1, V2, V2\n\tSTORE V2, AT(DI)",
	},
	{
		name: "scale", parameters: "(a float32, x []float32)", size: 32, pointers: "SI", unrolled: 4,
		load:   "\tVBROADCASTSS a+0(FP), V0\n\tMOVQ x_base+8(FP), SI\n\tMOVQ x_len+16(FP), CX",
		vector: "\tLOAD AT(SI), V1\n\tVMULPS V0, V1, V1\n\tSTORE V1, AT(SI)",
	},
	{
		comment: "The maximum of 0 and x is its second operand, x, if x is NaN.",
		name:    "relu", parameters: "(x, y []float32)", size: 48, pointers: "SI DI", unrolled: 4,
		load:   "\tZERO V0\n\tMOVQ x_base+0(FP), SI\n\tMOVQ x_len+8(FP), CX\n\tMOVQ y_base+24(FP), DI",
		vector: "\tLOAD AT(SI), V1\n\tVMAXPS V1, V0, V1\n\tSTORE V1, AT(DI)",
	},
	{
		name: "reluGrad", parameters: "(y, dy, dx []float32)", size: 72, pointers: "SI BX DI", unrolled: 2,
		load: "\tZERO V0\n\tMOVQ y_base+0(FP), SI\n\tMOVQ y_len+8(FP), CX\n\tMOVQ dy_base+24(FP), BX\n" +
			"\tMOVQ dx_base+48(FP), DI",
		vector: "\tLOAD AT(SI), V1\n\tLOAD AT(BX), V2\n\tPOSITIVE\n\tSTORE V2, AT(DI)",
	},
	{
		name: "where", parameters: "(e int32, arg []int32, x, y []float32)", size: 80, pointers: "BX SI DI",
		unrolled: 4, load: "\tVBROADCASTSS e+0(FP), V0\n\tMOVQ arg_base+8(FP), BX\n\tMOVQ arg_len+16(FP), CX\n" +
			"\tMOVQ x_base+32(FP), SI\n\tMOVQ y_base+56(FP), DI",
		vector: "\tLOAD AT(BX), V1\n\tLOAD AT(SI), V2\n\tWHERE\n\tSTORE V2, AT(DI)",
	},
	{
		name: "dot", parameters: "(x, y []float32) float32", size: 52, pointers: "SI DI", unrolled: 4,
		load: "\tZERO V10\n\tZERO V11\n\tZERO V12\n\tZERO V13\n\tMOVQ x_base+0(FP), SI\n\tMOVQ x_len+8(FP), CX\n" +
			"\tMOVQ y_base+24(FP), DI",
		vector: "\tLOAD AT(SI), V1\n\tLOAD AT(DI), V2\n\tVFMADD231PS V1, V2, SUM",
		result: `	VADDPS V11, V10, V10
	VADDPS V13, V12, V12
	VADDPS V12, V10, V0
	HALVE
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VMOVHLPS X0, X0, X1
	VADDPS X1, X0, X0
	VMOVSHDUP X0, X1
	VADDSS X1, X0, X0
	VMOVSS X0, ret+48(FP)
`,
	},
}

// vectorKernels also includes LeakyReLU: V0 is 0, V8 a factor and V9 the factor below 0.
func init() {
	reduce := vectorKernels[len(vectorKernels)-1].result
	const u = "\tLOAD AT(BX), V1\n\tLOAD AT(DI), V2\n\tVADDPS V1, V2, V2\n"
	vectorKernels = append(vectorKernels, slices{
		name: "leakyDot", parameters: "(slope float32, v, x, y []float32) float32", size: 84, pointers: "SI BX DI",
		unrolled: 4, load: "\tVBROADCASTSS slope+0(FP), V0\n\tZERO V10\n\tZERO V11\n\tZERO V12\n\tZERO V13\n" +
			"\tMOVQ v_base+8(FP), SI\n\tMOVQ v_len+16(FP), CX\n\tMOVQ x_base+32(FP), BX\n\tMOVQ y_base+56(FP), DI",
		vector: u + "\tVMULPS V0, V2, V1\n\tVMAXPS V1, V2, V2\n\tLOAD AT(SI), V1\n\tVFMADD231PS V1, V2, SUM",
		result: strings.ReplaceAll(reduce, "ret+48(FP)", "ret+80(FP)"),
	}, slices{
		name: "leakyGrad", parameters: "(d, slope float32, v, x, y, dv, dy []float32)", size: 128,
		pointers: "SI BX DI R8 R9", unrolled: 2,
		load: "\tZERO V0\n\tVBROADCASTSS d+0(FP), V8\n\tVBROADCASTSS slope+4(FP), V9\n\tVMULPS V8, V9, V9\n" +
			"\tMOVQ v_base+8(FP), SI\n\tMOVQ v_len+16(FP), CX\n\tMOVQ x_base+32(FP), BX\n\tMOVQ y_base+56(FP), DI\n" +
			"\tMOVQ dv_base+80(FP), R8\n\tMOVQ dy_base+104(FP), R9",
		vector: u + "\tFACTOR\n\tVMULPS V2, V4, V2\n\tLOAD AT(R8), V1\n\tVADDPS V2, V1, V1\n\tSTORE V1, AT(R8)\n" +
			"\tLOAD AT(SI), V1\n\tVMULPS V1, V4, V1\n\tLOAD AT(R9), V2\n\tVADDPS V1, V2, V2\n\tSTORE V2, AT(R9)",
	}, slices{
		name: "leakySource", parameters: "(p, d, slope float32, dh, v, x, y, dx []float32)", size: 136,
		pointers: "R8 SI BX DI R9", unrolled: 2, load: "\tZERO V0\n\tVBROADCASTSS p+0(FP), V7\n" +
			"\tVBROADCASTSS d+4(FP), V8\n\tVBROADCASTSS slope+8(FP), V9\n\tVMULPS V8, V9, V9\n\tMOVQ dh_base+16(FP), " +
			"R8\n\tMOVQ v_base+40(FP), SI\n\tMOVQ v_len+48(FP), CX\n\tMOVQ x_base+64(FP), BX\n\tMOVQ y_base+88(FP), " +
			"DI\n\tMOVQ dx_base+112(FP), R9",
		vector: u + "\tFACTOR\n\tLOAD AT(SI), V1\n\tVMULPS V1, V4, V4\n\tLOAD AT(R8), V1\n\tVMULPS V1, V7, V1\n" +
			"\tVADDPS V4, V1, V1\n\tLOAD AT(R9), V2\n\tVADDPS V1, V2, V2\n\tSTORE V2, AT(R9)",
	})
}

// writeVector writes the kernels over slices that map each value.
func (w *writer) writeVector() {
	w.text(generated + "\n// Loops over slices: several vectors at a time, then one by one, then the " +
		"remaining values under a mask.\n")
	w.text(either(w, masksAVX2, maskAVX512))
	// how each set selects: values where two numbers are equal; where a number is positive; the factor where it is
	// negative; the two halves of a vector
	own := strings.NewReplacer(
		"WHERE", either(w, "VPCMPEQD V0, V1, V1\n\tVPAND V1, V2, V2", "VPCMPEQD V0, V1, K2\n\tVMOVAPS.Z V2, K2, V2"),
		"\tFACTOR\n", either(w, "\tVCMPPS $1, V0, V2, V4\n\tVBLENDVPS V4, V9, V8, V4\n",
			"\tVCMPPS $1, V0, V2, K2\n\tVMOVAPS V8, V4\n\tVMOVAPS V9, K2, V4\n"),
		"POSITIVE", either(w, "VCMPPS $0x1e, V0, V1, V1\n\tVANDPS V1, V2, V2", "VCMPPS $0x1e, V0, V1, K2\n"+
			"\tVMOVAPS.Z V2, K2, V2"),
		"\tHALVE\n", either(w, "", "\tVEXTRACTF64X4 $1, Z0, Y1\n\tVADDPS Y1, Y0, Y0\n"))
	for _, k := range vectorKernels {
		if k.comment != "" {
			w.text("\n// " + k.comment + "\n//")
		}
		w.function(k.name, k.parameters, k.size)
		w.text(k.load)
		vectors := func(n int, masked bool) {
			for i := range n {
				w.body(masked, strings.NewReplacer("AT", fmt.Sprint(i*w.bytes()), "SUM",
					fmt.Sprintf("V%d", 10+i)).Replace(own.Replace(k.vector)))
			}
		}
		turn := func(label, next string, n int) {
			w.round(label, next, n*w.lanes(), func() {
				vectors(n, false)
				for _, p := range strings.Fields(k.pointers) {
					w.textf("\tADDQ $%d, %s", n*w.bytes(), p)
				}
			})
		}
		turn("many", "each", k.unrolled)
		turn("each", "tail", 1)
		w.left("tail")
		vectors(1, true)
		w.text("\ndone:\n" + own.Replace(k.result) + "\tVZEROUPPER\n\tRET")
	}
}
