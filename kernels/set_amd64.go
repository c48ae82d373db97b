package kernels

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// usable returns the sets that this processor and its operating system support, the slowest first.
func usable() []*set {
	sets := []*set{generic}
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA {
		sets = append(sets, avx2)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
			sets = append(sets, avx512)
		}
	}
	return sets
}

var avx2 = &set{
	name: "avx2",

	axpy:     axpyAVX2,
	dot:      dotAVX2,
	add:      addAVX2,
	scale:    scaleAVX2,
	relu:     reluAVX2,
	reluGrad: reluGradAVX2,
	where:    whereAVX2,
	leakyDot: leakyDotAVX2, leakyGrad: leakyGradAVX2, leakySource: leakySourceAVX2,
	elu:      eluAVX2,
	eluGrad:  eluGradAVX2,
	waves:    wavesAVX2,
	adam:     adamAVX2,
	dropout:  dropoutAVX2,
	kept:     keptAVX2,
	packKept: packKeptAVX2,
	turnKept: turnKeptAVX2,
	addWide:  addWideAVX2,
	sumWide:  sumWideAVX2,
	integers: integersAVX2,
	maxIndex: maxIndexAVX2,

	toBF16:   toBF16AVX2,
	fromBF16: fromBF16AVX2,
	maxAbs:   maxAbsAVX2,
	toInt8:   toInt8AVX2,
	fromInt8: fromInt8AVX2,
	toFixed:  toFixedAVX2,
	fixed:    fixedAVX2,

	sum:        sumAVX2,
	sumSquares: sumSquaresAVX2,
	normalise:  normaliseAVX2,
	normSums:   normSumsAVX2,
	normGrad:   normGradAVX2,
	addNorm:    addNormAVX2,
	max:        maxAVX2,
	expSum:     expSumAVX2,
	softmax:    softmaxAVX2,
	fence:      fence,

	pick:       pickAVX,
	logits:     logitsAVX2,
	weights:    weightsAVX2,
	drop:       dropAVX2,
	attend:     attendAVX2,
	attendDots: attendDotsAVX2,
	logitGrads: logitGradsAVX2,
	addPicked:  addPickedAVX,

	gemm:  gemmBlocked,
	tiles: tiles{rows: 6, cols: 16, height: func(int) int { return 6 }, run: tileAVX2, lay: packAVX2},
	spmm:  spmmAVX2,
	panel: panels{panelAVX2, 64},
	spmax: spmaxAVX2,
}

var avx512 = &set{
	name: "avx512",

	axpy:     axpyAVX512,
	dot:      dotAVX512,
	add:      addAVX512,
	scale:    scaleAVX512,
	relu:     reluAVX512,
	reluGrad: reluGradAVX512,
	where:    whereAVX512,
	leakyDot: leakyDotAVX512, leakyGrad: leakyGradAVX512, leakySource: leakySourceAVX512,
	elu:      eluAVX512,
	eluGrad:  eluGradAVX512,
	waves:    wavesAVX512,
	adam:     adamAVX512,
	dropout:  dropoutAVX512,
	kept:     keptAVX512,
	packKept: packKeptAVX512,
	turnKept: turnKeptAVX512,
	addWide:  addWideAVX512,
	sumWide:  sumWideAVX512,
	integers: integersAVX2,
	maxIndex: maxIndexAVX512,

	keystream: keystreamAVX512, expandKey: expandKeyAVX512,

	toBF16:   toBF16AVX512,
	fromBF16: fromBF16AVX512,
	maxAbs:   maxAbsAVX512,
	toInt8:   toInt8AVX512,
	fromInt8: fromInt8AVX512,
	toFixed:  toFixedAVX512,
	fixed:    fixedAVX512,

	sum:        sumAVX512,
	sumSquares: sumSquaresAVX512,
	normalise:  normaliseAVX512,
	normSums:   normSumsAVX512,
	normGrad:   normGradAVX512,
	addNorm:    addNormAVX512,
	max:        maxAVX512,
	expSum:     expSumAVX512,
	softmax:    softmaxAVX512,
	fence:      fence,

	pick:       pickAVX,
	logits:     logitsAVX512,
	weights:    weightsAVX512,
	drop:       dropAVX512,
	attend:     attendAVX512,
	attendDots: attendDotsAVX512,
	logitGrads: logitGradsAVX512,
	addPicked:  addPickedAVX,

	gemm: gemmBlocked,
	tiles: tiles{rows: 14, cols: 32, height: heightAVX512, run: tileAVX512, masks: true, transpose: transposeAVX512,
		lay: packAVX512},
	wider: tiles{rows: 9, cols: 48, height: func(int) int { return 9 }, run: tile48AVX512, masks: true,
		transpose: transposeAVX512, lay: packAVX512},
	spmm:  spmmAVX512,
	panel: panels{panelAVX512, 128},
	spmax: spmaxAVX512,

	gemmBF16: gemmAMX,
}

func tileAVX2(_, rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer,
	ldc, next int, acc bool) {
	if cols > 8 {
		gemm6x16AVX2(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	} else {
		gemm6x8AVX2(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	}
}

// heightAVX512 returns the height that covers the remaining rows with the fewest surplus rows.
func heightAVX512(left int) int {
	if left <= 8 || left == 15 || left == 16 {
		return 8
	}
	return 14
}

func tile48AVX512(_, rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer,
	ldc, next int, acc bool) {
	gemm9x48AVX512(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
}

func tileAVX512(height, rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer,
	ldc, next int, acc bool) {
	tall := height == 14
	switch {
	case tall && cols > 16:
		gemm14x32AVX512(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	case tall && cols > 8:
		gemm14x16AVX512(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	case tall:
		gemm14x8AVX512(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	case cols > 16:
		gemm8x32AVX512(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	case cols > 8:
		gemm8x16AVX512(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	default:
		gemm8x8AVX512(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	}
}
