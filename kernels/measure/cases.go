// Package measure times the kernels on the work of training and compares them with peaks of this machine, measured at
// the same time. The peaks are multiply-adds in registers, triad and gathered rows of memory. All measurements
// alternate. The results are medians of ratios between adjacent measurements, from turns in which the machine kept its
// speed.
package measure

import (
	"fmt"

	"github.com/heddle-gnn/heddle/kernels"
)

// Case is a piece of work and the peak that it is compared with.
type Case struct {
	Name, Unit string
	Work       float64             // flops or bytes a run
	Peak       func(Clock) float64 // measures the machine's rate, 10⁹ a second (0 = unknown here); nil: no peak
	Baseline   string              // the same work, in the format of bench/baselines/kernels_torch.py (empty = none)
	Prepare    func() (run func())
}

// Cases returns the kernels' cases; with large, also those that take seconds or gigabytes.
func Cases(large bool) (all []Case) {
	squares := []int{512, 1024, 2048}
	if large {
		squares = append(squares, 4096)
	}
	for _, n := range squares {
		all = append(all, gemm("NN", n, n, n))
	}
	for _, d := range [][3]int{{140, 256, 1433}, {100_000, 256, 100}, {100_000, 47, 256}, {100_000, 40, 128},
		{2708, 7, 256}} {
		m, n, k := d[0], d[1], d[2] // a layer, and the gradients of its weights and its inputs
		all = append(all, gemm("NN", m, n, k), gemm("TN", k, n, m), gemm("NT", m, k, n))
	}
	graphs := []*Graph{Uniform(100_000, 20), Skewed(50_000, 20), Skewed(100_000, 100)}
	if large {
		graphs = append(graphs, Skewed(1_000_000, 20))
	}
	for _, g := range graphs {
		for _, n := range []int{16, 64, 128, 256} {
			all = append(all, spmm(g, n))
		}
	}
	return append(all, rows()...)
}

func gemm(form string, m, n, k int) Case {
	run, lda, ldb := kernels.GemmNN, k, n
	switch form {
	case "TN":
		run, lda = kernels.GemmTN, m
	case "NT":
		run, ldb = kernels.GemmNT, k
	}
	return Case{
		Name: fmt.Sprintf("Gemm%s %d×%d×%d", form, m, n, k), Unit: "GFLOP/s",
		Work: 2 * float64(m) * float64(n) * float64(k), Peak: fma,
		Baseline: fmt.Sprintf("gemm %s %d %d %d", form, m, n, k),
		Prepare: func() func() {
			a, b, c := Values(m*k), Values(k*n), make([]float32, m*n)
			return func() { run(m, n, k, a, lda, b, ldb, c, n, false) }
		},
	}
}

// Graph has as many sources as destinations, all with the same degree.
type Graph struct {
	Name   string
	Nodes  int
	RowPtr []int64
	Col    []int32
	Seed   string // how the baseline makes a similar graph
}

// Uniform returns a graph with neighbours sampled from all nodes: the worst case for caches.
func Uniform(nodes, degree int) *Graph {
	return draw(fmt.Sprintf("random %d×%d", nodes, degree), nodes, degree, 1)
}

// Skewed returns a graph with neighbours from a power law: node i has a density of i^(−2/3).
func Skewed(nodes, degree int) *Graph {
	return draw(fmt.Sprintf("skewed %d×%d", nodes, degree), nodes, degree, 3)
}

func draw(name string, nodes, degree, power int) *Graph {
	g := &Graph{Name: name, Nodes: nodes, RowPtr: make([]int64, nodes+1), Col: make([]int32, nodes*degree)}
	for i := range g.RowPtr {
		g.RowPtr[i] = int64(i * degree)
	}
	for e := range g.Col {
		u := float64(mix(uint64(e))>>11) * 0x1p-53
		x := u
		for range power - 1 {
			x *= u
		}
		g.Col[e] = int32(x * float64(nodes))
	}
	g.Seed = fmt.Sprintf("%d %d %d", nodes, degree, power)
	return g
}

func spmm(g *Graph, n int) Case {
	return Case{
		Name: fmt.Sprintf("SpMM %s, %d wide", g.Name, n),
		Unit: "GB/s", Work: float64(4 * n * len(g.Col)), Peak: Gather(g.Col, 4*n),
		Baseline: fmt.Sprintf("spmm %s %d", g.Seed, n),
		Prepare: func() func() {
			x, y, val := Values(g.Nodes*n), kernels.Room(g.Nodes*n), Values(len(g.Col))
			return func() { kernels.SpMM(g.RowPtr, g.Col, val, n, x, n, y, n, false) }
		},
	}
}

// rows returns the loops that are bound by memory, on slabs larger than the caches.
func rows() []Case {
	const tall, wide, classes = 100_000, 256, 500_000
	const n = tall * wide
	return []Case{
		{Name: "Axpy", Unit: "GB/s", Work: 12 * n, Peak: triad,
			Baseline: fmt.Sprintf("axpy %d", n), Prepare: func() func() {
				x, y := Values(n), Values(n)
				return func() { kernels.Axpy(1e-3, x, y) }
			}},
		{Name: "AdamStep", Unit: "GB/s", Work: 28 * n, Peak: triad,
			Baseline: fmt.Sprintf("adam %d", n), Prepare: func() func() {
				p, g, m, v := Values(n), Values(n), make([]float32, n), make([]float32, n)
				return func() { kernels.AdamStep(p, g, m, v, 1, 1e-3, 0.9, 0.999, 1e-8, 0.1, 0.001, 0, 0) }
			}},
		{Name: "LayerNorm", Unit: "GB/s", Work: 8 * n, Peak: triad,
			Baseline: fmt.Sprintf("layernorm %d %d", tall, wide), Prepare: func() func() {
				x, y, gain, stats := Values(n), make([]float32, n), Values(wide), make([]float32, 2*tall)
				return func() { kernels.LayerNorm(tall, 1e-5, x, wide, gain, gain, y, wide, stats) }
			}},
		{Name: "LayerNormGrad", Unit: "GB/s", Work: 16 * n, Peak: triad,
			Baseline: fmt.Sprintf("layernormgrad %d %d", tall, wide), Prepare: func() func() {
				x, y, gain, stats := Values(n), make([]float32, n), Values(wide), make([]float32, 2*tall)
				dgain, dbias := make([]float32, wide), make([]float32, wide)
				kernels.LayerNorm(tall, 1e-5, x, wide, gain, gain, y, wide, stats)
				dy := Values(n)
				return func() { kernels.LayerNormGrad(tall, x, wide, stats, gain, dy, wide, y, wide, dgain, dbias) }
			}},
		{Name: "ExpSum of rows of 64", Unit: "GB/s", Work: 8 * n, Peak: triad,
			Baseline: fmt.Sprintf("softmax %d 64", n/64), Prepare: func() func() {
				w := &softmax{x: Values(n), y: make([]float32, n)}
				return func() { kernels.Parallel(w, pieces) }
			}},
		{Name: "CrossEntropy of rows of 47", Unit: "GB/s", Work: 8 * 47 * classes, Peak: triad,
			Baseline: fmt.Sprintf("entropy %d 47", classes), Prepare: func() func() {
				s, g, class := Values(47*classes), make([]float32, 47*classes), make([]int32, classes)
				for i := range class {
					class[i] = int32(i % 47)
				}
				return func() { kernels.CrossEntropy(classes, 47, s, 47, class, nil, g, 47) }
			}},
		{Name: "Dropout", Unit: "GB/s", Work: 8 * n, Peak: triad,
			Baseline: fmt.Sprintf("dropout %d", n), Prepare: func() func() {
				w := &dropout{x: Values(n), y: make([]float32, n), width: wide}
				return func() { kernels.Parallel(w, pieces) }
			}},
		{Name: "ToBF16", Unit: "GB/s", Work: 6 * n, Peak: triad,
			Baseline: fmt.Sprintf("tobf16 %d", n), Prepare: func() func() {
				x, y := Values(n), make([]uint16, n)
				return func() { kernels.ToBF16(x, y) }
			}},
	}
}

const pieces = 16 // pieces of a loop that is not a kernel

// softmax computes the softmax of rows of 64 values without the division.
type softmax struct{ x, y []float32 }

func (s *softmax) Run(part int) {
	piece := len(s.x) / pieces
	for i := part * piece; i < (part+1)*piece; i += 64 {
		row := s.x[i : i+64]
		kernels.ExpSum(kernels.Max(row), row, s.y[i:i+64])
	}
}

// dropout drops half of x into y, some rows at a time, as nn does.
type dropout struct {
	x, y  []float32
	width int
}

func (d *dropout) Run(part int) {
	rows := len(d.x) / d.width
	var keys [64]uint64
	end := (part + 1) * rows / pieces
	for i := part * rows / pieces; i < end; i += len(keys) {
		n := min(end-i, len(keys))
		for k := range keys[:n] {
			keys[k] = uint64(i + k)
		}
		kernels.Dropout(keys[:n], 0.5, i, d.width, d.x, d.width, d.y, d.width, false)
	}
}

// Values returns the first n values of a fixed sequence in [−1, 1).
func Values(n int) []float32 {
	x := kernels.Room(n)
	for i := range x {
		x[i] = float32(int32(mix(uint64(i))>>32)) * 0x1p-31
	}
	return x
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(z uint64) uint64 {
	z = (z + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
