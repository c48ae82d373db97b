package main

import "strings"

// writeStep writes loops over slices: the greatest index, sums in float64, dropout and Adam.
func (w *writer) writeStep() {
	w.text(generated + "\n// Loops over slices: four vectors at a time, then one by one, then the " +
		"remaining values under a mask.\n")
	w.text(either(w, masksAVX2, maskAVX512))
	w.maxIndex()
	w.addWide()
	w.mix()
	w.dropout()
	w.kept()
	w.packKept()
	w.turnKept()
	w.adam()
	if w.wide {
		w.text("\n// func fence()\nTEXT ·fence(SB), NOSPLIT, $0-0\n\tSFENCE\n\tRET")
	}
}

func (w *writer) maxIndex() {
	w.function("maxIndex", "(col []int32) uint32", 28)
	sums := []int{0, 2, 3, 4}
	for _, v := range sums {
		w.textf("\tZERO V%d", v)
	}
	w.text("\tMOVQ col_base+0(FP), SI\n\tMOVQ col_len+8(FP), CX")
	w.round("many", "each", 4*w.lanes(), func() {
		for i, v := range sums {
			w.textf("\tVPMAXUD %d(SI), V%d, V%d", i*w.bytes(), v, v)
		}
		w.textf("\tADDQ $%d, SI", 4*w.bytes())
	})
	w.round("each", "tail", w.lanes(), func() { w.text("\tVPMAXUD (SI), V0, V0\n\tADDQ $BYTES, SI") })
	w.left("tail")
	w.text(either(w, "\tVPMASKMOVD (SI), Y5, Y1", "\tVMOVDQU32.Z (SI), K1, Z1"))
	w.text(`	VPMAXUD V1, V0, V0

done:
	VPMAXUD V2, V0, V0
	VPMAXUD V4, V3, V3
	VPMAXUD V3, V0, V0`)
	if w.wide {
		w.text("\tVEXTRACTI64X4 $1, Z0, Y1\n\tVPMAXUD Y1, Y0, Y0")
	}
	w.text(`	VEXTRACTI128 $1, Y0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPMAXUD X1, X0, X0
	VMOVD X0, AX
	MOVL AX, ret+24(FP)
	VZEROUPPER
	RET`)
}

func (w *writer) addWide() {
	w.function("addWide", "(x []float32, sum []float64)", 48)
	w.text("\tMOVQ x_base+0(FP), SI\n\tMOVQ x_len+8(FP), CX\n\tMOVQ sum_base+24(FP), DI")
	add := func(vectors int) {
		for i := range vectors {
			w.textf("\tVCVTPS2PD %d(SI), V1\n\tVADDPD %d(DI), V1, V1\n\tVMOVUPD V1, %[2]d(DI)", i*w.bytes()/2,
				i*w.bytes())
		}
		w.textf("\tADDQ $%d, SI\n\tADDQ $%d, DI", vectors*w.bytes()/2, vectors*w.bytes())
	}
	w.round("many", "each", 2*w.lanes(), func() { add(4) })
	w.round("each", "tail", w.lanes()/2, func() { add(1) })
	if w.wide {
		w.left("tail")
		w.text(`	VMOVUPS.Z (SI), K1, Y1
	VCVTPS2PD Y1, Z1
	VMOVUPD.Z (DI), K1, Z2
	VADDPD Z1, Z2, Z2
	VMOVUPD Z2, K1, (DI)`)
	} else { // the mask is for values of 4 bytes, so these are processed one by one
		w.text(`
tail:
	TESTQ CX, CX
	JZ    done
	VMOVSS (SI), X1
	VCVTSS2SD X1, X1, X1
	VADDSD (DI), X1, X1
	VMOVSD X1, (DI)
	ADDQ $4, SI
	ADDQ $8, DI
	DECQ CX
	JMP  tail`)
	}
	w.end()
}

const goldenRatio = 0x9e3779b9 // 2³² over the golden ratio, in 32 bits: it gives every column its own hash

// mix writes the hash that all dropout masks are computed from, and the columns of the lanes.
func (w *writer) mix() {
	w.textf("\n// Multiples 0 to %d of %#x, for the hash of each column.", w.lanes()-1, uint32(goldenRatio))
	for i := 0; i < w.lanes(); i += 2 {
		even, odd := uint32(i*goldenRatio), uint32((i+1)*goldenRatio)
		w.textf("DATA columns<>+%d(SB)/8, $0x%08x%08x", 4*i, odd, even)
	}
	w.text("GLOBL columns<>(SB), RODATA|NOPTR, $BYTES\n")
	w.text(either(w, "// MIX replaces v, hashes of columns, by random bits, and t by the factors: "+
		"Y10 for kept values.", "// MIX replaces v, hashes of columns, by random bits, and K2 by the "+
		"mask of kept values; t is scratch."))
	w.text(`#define MIX(v, t) \
	VPSRLD  $16, v, t \
	XOR   t, v, v   \
	VPMULLD V2, v, v  \
	VPSRLD  $15, v, t \
	XOR   t, v, v   \
	VPMULLD V3, v, v  \
	VPSRLD  $16, v, t \
	XOR   t, v, v   \
` + either(w, "\tVPMAXUD Y4, v, t  \\\n\tVPCMPEQD t, v, t  \\\n\tVPAND t, Y10, t", "\tVPCMPUD $5, Z4, v, K2"))
}

// factors appends code that loads the factors of MIX into V2 and V3.
func (w *writer) factors() { w.text("\tSPLAT 0x7feb352d, V2\n\tSPLAT 0x846ca68b, V3") }

// drop appends code that applies dropout to values of (SI) at positions V7. It writes them to (DI), past the caches if
// past is set, or adds them if add is set.
func (w *writer) drop(masked, add, past bool) {
	t := "\tMIX(V7, V8)\n" + either(w, "", "\tVMOVAPS.Z V10, K2, V9\n") + "\tFOLD VMULPS (SI), up, t\n"
	if add {
		t += "\tFOLD VADDPS (DI), up, t\n"
	}
	up, scratch := either(w, "V8", "V9"), either(w, "V9", "V8")
	t = strings.NewReplacer("up", up, ", t", ", "+scratch).Replace(t)
	store := "STORE"
	if past {
		store = "VMOVNTPS"
	}
	w.body(masked, t+"\t"+store+" "+up+", (DI)")
}

func (w *writer) dropout() {
	w.function("dropout", "(lo, hi, limit uint32, up float32, x, y []float32, add, past bool)", 66)
	w.text(`	VBROADCASTSS lo+0(FP), V0
	VPADDD columns<>(SB), V0, V0
	VBROADCASTSS hi+4(FP), V1
	VBROADCASTSS limit+8(FP), V4
	VBROADCASTSS up+12(FP), V10`)
	w.factors()
	w.textf(`	SPLAT %#x, V6
	MOVQ x_base+16(FP), SI
	MOVQ x_len+24(FP), CX
	MOVQ y_base+40(FP), DI
	MOVBLZX add+64(FP), R8
	TESTL R8, R8
	JNZ  addeach
	CMPB past+65(FP), $0
	JNE  past`, uint32(w.lanes()*goldenRatio))
	loop := func(each, tail string, add bool) {
		w.round(each, tail, w.lanes(), func() {
			w.text("\tXOR V0, V1, V7\n\tVPADDD V6, V0, V0")
			w.drop(false, add, false)
			w.text("\tPREFETCHT0 2048(SI)\n\tPREFETCHT0 2048(DI)\n\tADDQ $BYTES, SI\n\tADDQ $BYTES, DI")
		})
		w.left(tail)
		w.text("\tXOR V0, V1, V7")
		w.drop(true, add, false)
	}
	loop("each", "tail", false)
	w.end()
	loop("addeach", "addtail", true)
	w.text("\tJMP  done\n\npast: // whole lines only\n\tXOR V0, V1, V7\n\tVPADDD V6, V0, V0")
	w.drop(false, false, true)
	w.text("\tPREFETCHT0 2048(SI)\n\tADDQ $BYTES, SI\n\tADDQ $BYTES, DI\n\tSUBQ $LANES, CX\n\tJGT  past\n\tJMP  done")
}

// kept writes a kernel that sets a bit for each value of a row that dropout leaves other than 0, and counts the bits.
func (w *writer) kept() {
	w.function("kept", "(lo, hi, limit uint32, col []int32, x []float32, mask *uint16) int", 80)
	w.text(`	VBROADCASTSS lo+0(FP), V0
	VBROADCASTSS hi+4(FP), V1
	VBROADCASTSS limit+8(FP), V4`)
	w.factors()
	w.textf(`	SPLAT %#x, V6
	ZERO V11
	MOVQ col_base+16(FP), BX
	MOVQ col_len+24(FP), CX
	MOVQ x_base+40(FP), SI
	MOVQ mask+64(FP), DI
	XORQ R9, R9`, uint32(goldenRatio))
	if !w.wide {
		w.text("\tVPCMPEQD Y10, Y10, Y10")
	}
	bits := "\tVPADDD V0, V7, V7\n\tXOR V1, V7, V7\n\tMIX(V7, V8)\n" + either(w,
		"\tVCMPPS $4, Y11, Y9, Y9\n\tVANDPS Y8, Y9, Y9\n\tVMOVMSKPS Y9, AX\n\tMOVB AX, (DI)",
		"\tVCMPPS $4, Z11, Z9, K2, K3\n\tKMOVW K3, AX\n\tMOVW AX, (DI)") + "\n\tPOPCNTL AX, AX\n\tADDQ AX, R9"
	w.round("each", "tail", w.lanes(), func() {
		w.textf("\tVPMULLD (BX), V6, V7\n\tVMOVUPS (SI), V9\n%s\n\tADDQ $BYTES, BX\n\tADDQ $BYTES, SI\n\tADDQ $%d, DI",
			bits, w.lanes()/8)
	})
	w.left("tail")
	w.text("\tLOADINT (BX), V7\n\tVPMULLD V7, V6, V7\n\tLOAD (SI), V9\n" + bits)
	w.text("\ndone:\n\tMOVQ R9, ret+72(FP)\n\tVZEROUPPER\n\tRET")
}

// keptLanes writes AVX2's table: for each set of kept lanes among eight, their indices.
func (w *writer) keptLanes() {
	if w.wide {
		return
	}
	for set := range 256 {
		lanes, n := uint64(0), 0
		for lane := range 8 {
			if set>>lane&1 != 0 {
				lanes |= uint64(lane) << (8 * n)
				n++
			}
		}
		w.textf("DATA lanes<>+%d(SB)/8, $%#x", 8*set, lanes)
	}
	w.text("GLOBL lanes<>(SB), RODATA|NOPTR, $2048")
}

// compress appends code that writes the lanes of V1 and V2 whose bits are set in AX to (DI) and (R8), as whole vectors,
// and counts them in R9.
func (w *writer) compress() string {
	return either(w, `	VPMOVZXBD (R10)(AX*8), Y3
	VPERMPS Y1, Y3, Y1
	VPERMPS Y2, Y3, Y2
	VMOVUPS Y1, (DI)(R9*4)
	VMOVUPS Y2, (R8)(R9*4)`, `	VCOMPRESSPS Z1, K2, Z1
	VPCOMPRESSD Z2, K2, Z2
	VMOVUPS Z1, (DI)(R9*4)
	VMOVDQU32 Z2, (R8)(R9*4)`) + "\n\tPOPCNTL AX, AX\n\tADDQ AX, R9"
}

// packKept writes a kernel that packs the values whose bits are set, times up, and their columns. It writes whole
// vectors: the next one overwrites the surplus.
func (w *writer) packKept() {
	w.keptLanes()
	w.function("packKept", "(mask *uint16, up float32, col []int32, x []float32, at []int32, y []float32) int", 120)
	w.text(`	MOVQ mask+0(FP), R11
	VBROADCASTSS up+8(FP), V10
	MOVQ col_base+16(FP), BX
	MOVQ col_len+24(FP), CX
	MOVQ x_base+40(FP), SI
	MOVQ at_base+64(FP), R8
	MOVQ y_base+88(FP), DI
	XORQ R9, R9` + either(w, "\n\tLEAQ lanes<>(SB), R10", ""))
	bits := either(w, "\tMOVBLZX (R11), AX\n", "\tMOVWLZX (R11), AX\n\tKMOVW AX, K2\n")
	w.round("each", "tail", w.lanes(), func() {
		w.textf("%s\tVMULPS (SI), V10, V1\n\tMOVINT (BX), V2\n%s\n\tADDQ $BYTES, SI\n\tADDQ $BYTES, BX\n"+
			"\tADDQ $%d, R11", bits, w.compress(), w.lanes()/8)
	})
	w.left("tail")
	w.text("\tLOAD (SI), V1\n\tVMULPS V1, V10, V1\n\tLOADINT (BX), V2\n" + bits + w.compress())
	w.text("\ndone:\n\tMOVQ R9, ret+112(FP)\n\tVZEROUPPER\n\tRET")
}

// turnKept writes the same kernel for values whose bit index and row are packed in one number.
func (w *writer) turnKept() {
	w.function("turnKept",
		"(mask *uint16, up float32, place []uint32, x []float32, at []int32, y []float32, bits *uint16) int", 128)
	w.text(`	MOVQ mask+0(FP), R11
	VBROADCASTSS up+8(FP), V10
	MOVQ place_base+16(FP), BX
	MOVQ place_len+24(FP), CX
	MOVQ x_base+40(FP), SI
	MOVQ at_base+64(FP), R8
	MOVQ y_base+88(FP), DI
	MOVQ bits+112(FP), R12
	XORQ R9, R9
	SPLAT 0xfffff, V11
	SPLAT 31, V12` + either(w, "\n\tLEAQ lanes<>(SB), R10", ""))
	// V2 the numbers; V3 the bits from words of 32, shifted so that the highest is set if a value is kept
	bits := "\tVPANDX V11, V2, V3\n\tVPANDNX V12, V3, V4\n\tVPSRLD $5, V3, V3\n" + either(w,
		"\tVPCMPEQD Y6, Y6, Y6\n\tVPGATHERDD Y6, (R11)(Y3*4), Y7\n\tVPSLLVD Y4, Y7, Y7\n",
		"\tKXNORW K3, K3, K3\n\tVPGATHERDD (R11)(Z3*4), K3, Z7\n\tVPSLLVD Z4, Z7, Z7\n")
	bits = strings.NewReplacer("ANDX", either(w, "AND", "ANDD"), "ANDNX", either(w, "ANDN", "ANDND")).Replace(bits)
	kept := either(w, "\tVMOVMSKPS Y7, AX\n", "\tVPMOVD2M Z7, K2\n\tKMOVW K2, AX\n")
	some := either(w, "\tVANDPS Y5, Y7, Y7\n\tVMOVMSKPS Y7, AX\n", "\tVPMOVD2M Z7, K2\n\tKANDW K1, K2, K2\n"+
		"\tKMOVW K2, AX\n")
	store := either(w, "\tMOVB AX, (R12)\n", "\tMOVW AX, (R12)\n") + "\tVPSRLD $20, V2, V2\n"
	w.round("each", "tail", w.lanes(), func() {
		w.textf("\tMOVINT (BX), V2\n%s%s%s\tVMULPS (SI), V10, V1\n%s\n\tADDQ $BYTES, SI\n\tADDQ $BYTES, BX\n"+
			"\tADDQ $%d, R12", bits, kept, store, w.compress(), w.lanes()/8)
	})
	w.left("tail")
	w.text("\tLOADINT (BX), V2\n" + bits + some + store + "\tLOAD (SI), V1\n\tVMULPS V1, V10, V1\n" + w.compress())
	w.text("\ndone:\n\tMOVQ R9, ret+120(FP)\n\tVZEROUPPER\n\tRET")
}

func (w *writer) adam() {
	w.text("\n// The operations have the order of adamGeneric, and none is fused: the bits are the same.\n//")
	w.function("adam", "(p, g, m, v []float32, c adam)", 136)
	for i, c := range []string{"step", "beta1", "rest1", "beta2", "rest2", "eps", "scale", "root", "decay", "shrink"} {
		w.textf("\tVBROADCASTSS c_%s+%d(FP), V%d", c, 96+4*i, 6+i)
	}
	w.text(`	MOVQ p_base+0(FP), SI
	MOVQ p_len+8(FP), CX
	MOVQ g_base+24(FP), DI
	MOVQ m_base+48(FP), BX
	MOVQ v_base+72(FP), R8`)
	const step = `	LOAD (SI), V0
	LOAD (DI), V1
	LOAD (BX), V2
	LOAD (R8), V3
	VMULPS V1, V12, V1
	VMULPS V0, V14, V4
	VADDPS V4, V1, V1
	VMULPS V2, V7, V2
	VMULPS V1, V8, V4
	VADDPS V4, V2, V2
	VMULPS V3, V9, V3
	VMULPS V1, V10, V4
	VMULPS V1, V4, V4
	VADDPS V4, V3, V3
	STORE V2, (BX)
	STORE V3, (R8)
	VMULPS V2, V6, V2
	VSQRTPS V3, V3
	VMULPS V3, V13, V3
	VADDPS V11, V3, V3
	VDIVPS V3, V2, V2
	VMULPS V15, V0, V0
	VSUBPS V2, V0, V0
	STORE V0, (SI)`
	w.round("each", "tail", w.lanes(), func() {
		w.body(false, step)
		w.text("\tADDQ $BYTES, SI\n\tADDQ $BYTES, DI\n\tADDQ $BYTES, BX\n\tADDQ $BYTES, R8")
	})
	w.left("tail")
	w.body(true, step)
	w.end()
}
