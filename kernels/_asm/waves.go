package main

import (
	"fmt"
	"math"
	"regexp"
	"strings"
)

// waveNumbers lists the numbers of cosine in kernels/cosine.go, and bits.
var waveNumbers = []struct {
	name string
	bits uint64
}{
	{"OCTANTS", math.Float64bits(4 / math.Pi)}, {"PART1", math.Float64bits(7.85398125648498535156e-1)},
	{"PART2", math.Float64bits(3.77489470793079817668e-8)}, {"PART3", math.Float64bits(2.69515142907905952645e-15)},
	{"S0", math.Float64bits(1.58962301576546568060e-10)}, {"S1", math.Float64bits(-2.50507477628578072866e-8)},
	{"S2", math.Float64bits(2.75573136213857245213e-6)}, {"S3", math.Float64bits(-1.98412698295895385996e-4)},
	{"S4", math.Float64bits(8.33333333332211858878e-3)}, {"S5", math.Float64bits(-1.66666666666666307295e-1)},
	{"C0", math.Float64bits(-1.13585365213876817300e-11)}, {"C1", math.Float64bits(2.08757008419747316778e-9)},
	{"C2", math.Float64bits(-2.75573141792967388112e-7)}, {"C3", math.Float64bits(2.48015872888517045348e-5)},
	{"C4", math.Float64bits(-1.38888888888730564116e-3)}, {"C5", math.Float64bits(4.16666666666665929218e-2)},
	{"MINUSHALF", math.Float64bits(-0.5)}, {"ONE", math.Float64bits(1)}, {"ROOT2", math.Float64bits(math.Sqrt2)},
	{"WHOLE", math.Float64bits(1 << 52)}, {"UNIT", 1}, {"TWO", 2}, {"EVEN", ^uint64(1)}, {"SIGN", 1 << 63},
	{"ABS", math.MaxInt64},
}

// wave is assembly for one vector, in the order of cosine. H is the register for its values as float32. V1 has the
// truncated octant, made even, in its low bits, because 2⁵² is added. V3 is the sine, V4 the cosine.
const wave = `	LOAD (DI), H0
	LOAD (SI), H1
	VCVTPS2PD H0, V0
	VCVTPS2PD H1, V1
	VADDPD V1, V0, V0
	VANDPD $ABS, V0, V0
	VMULPD $OCTANTS, V0, V1
	TRUNCATE $3, V1, V1
	VADDPD $WHOLE, V1, V1
	VPADDQ $UNIT, V1, V1
	VANDPD $EVEN, V1, V1
	VSUBPD $WHOLE, V1, V2
	VMULPD $PART1, V2, V3
	VSUBPD V3, V0, V0
	VMULPD $PART2, V2, V3
	VSUBPD V3, V0, V0
	VMULPD $PART3, V2, V3
	VSUBPD V3, V0, V0
	VMULPD V0, V0, V2
	VMULPD $S0, V2, V3
	VMULPD $C0, V2, V4
	VADDPD $S1, V3, V3
	VADDPD $C1, V4, V4
	VMULPD V2, V3, V3
	VMULPD V2, V4, V4
	VADDPD $S2, V3, V3
	VADDPD $C2, V4, V4
	VMULPD V2, V3, V3
	VMULPD V2, V4, V4
	VADDPD $S3, V3, V3
	VADDPD $C3, V4, V4
	VMULPD V2, V3, V3
	VMULPD V2, V4, V4
	VADDPD $S4, V3, V3
	VADDPD $C4, V4, V4
	VMULPD V2, V3, V3
	VMULPD V2, V4, V4
	VADDPD $S5, V3, V3
	VADDPD $C5, V4, V4
	VMULPD V2, V0, V6
	VMULPD V6, V3, V3
	VADDPD V0, V3, V3
	VMULPD V2, V2, V6
	VMULPD V6, V4, V4
	VMULPD $MINUSHALF, V2, V6
	VADDPD $ONE, V6, V6
	VADDPD V4, V6, V4
	VPSLLQ $62, V1, V6
	SELECT V6, V3, V4
	VPADDQ $TWO, V1, V1
	VPSLLQ $61, V1, V1
	VANDPD $SIGN, V1, V1
	VXORPD V1, V4, V4
	VMULPD $ROOT2, V4, V4
	NARROW V4, H4
	STORE H4, (DI)`

var waveNumber = regexp.MustCompile(`\t(\w+) \$([A-Z]\w*), `)

// writeWaves writes √2 times the cosines of sums.
func (w *writer) writeWaves() {
	w.mask = "X5" // half of Y5: each value has twice its bytes
	w.text(generated + "\n// √2·cos(y + phase), if |y + phase| is below 2²⁹: vectors of float64, the last one under " +
		"a mask. No multiply-add\n// is fused.\n")
	w.text(either(w, masksAVX2, maskAVX512) + "\n")
	number := map[string]string{}
	for i, n := range waveNumbers {
		number[n.name] = fmt.Sprintf("waves<>+%d(SB)", 8*i)
		w.textf("DATA %s/8, $%#x // %s", number[n.name], n.bits, n.name)
	}
	w.textf("GLOBL waves<>(SB), RODATA|NOPTR, $%d", 8*len(waveNumbers))
	w.function("nearWaves", "(phase, y []float32)", 48)
	w.text("\tMOVQ phase_base+0(FP), SI\n\tMOVQ phase_len+8(FP), CX\n\tMOVQ y_base+24(FP), DI\n" +
		either(w, "\tVPCMPEQD Y5, Y5, Y5", "\tKXNORW K1, K1, K1") + " // all values")
	w.textf("\neach:\n\tCMPQ CX, $%d\n\tJGE  next", w.lanes()/2)
	w.left("tail")
	text := waveNumber.ReplaceAllStringFunc(wave, func(start string) string {
		part := waveNumber.FindStringSubmatch(start)
		return fmt.Sprintf(either(w, "\tVBROADCASTSD %[2]s, Y15\n\t%[1]s Y15, ", "\t%s.BCST %s, "), part[1],
			number[part[2]])
	})
	w.text("\nnext:\n" + strings.NewReplacer("H0", either(w, "X0", "Y0"), "H1", either(w, "X1", "Y1"), "H4",
		either(w, "X4", "Y4"), "TRUNCATE", either(w, "VROUNDPD", "VRNDSCALEPD"), "NARROW",
		either(w, "VCVTPD2PSY", "VCVTPD2PS"), "SELECT V6, V3, V4",
		either(w, "VBLENDVPD Y6, Y3, Y4, Y4", "VPMOVQ2M Z6, K2\n\tVMOVAPD Z3, K2, Z4")).Replace(text))
	w.textf("\tADDQ $%d, SI\n\tADDQ $%[1]d, DI\n\tSUBQ $%d, CX\n\tJGT  each", w.bytes()/2, w.lanes()/2)
	w.end()
}
