package main

import (
	"fmt"

	heddle "github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// kernel is a piece of work and the peak it is held against.
type kernel struct {
	name, unit string
	work       float64        // flops or bytes
	peak       func() float64 // measures the machine's rate, in 10⁹ a second; 0: unknown here
	rival      string         // the same work, as kernels_torch.py reads it
	prepare    func() (run func())
}

func cases(large bool) (all []kernel) {
	squares := []int{512, 1024, 2048}
	if large {
		squares = append(squares, 4096)
	}
	for _, n := range squares {
		all = append(all, gemm("NN", n, n, n))
	}
	for _, d := range [][3]int{{140, 256, 1433}, {100_000, 256, 100}, {100_000, 47, 256}, {2708, 7, 256}} {
		m, n, k := d[0], d[1], d[2]
		all = append(all, gemm("NN", m, n, k), gemm("TN", k, n, m))
	}
	for _, n := range squares[1:] {
		all = append(all, gemmBF16(n, n, n))
	}
	all = append(all, gemmBF16(100_000, 256, 100))
	graphs := []*graph{uniform(100_000, 20), skewed(50_000, 20)}
	if large {
		graphs = append(graphs, skewed(1_000_000, 20))
	}
	for _, g := range graphs {
		for _, n := range []int{16, 64, 128, 256} {
			all = append(all, spmm(g, n), spmmBF16(g, n))
		}
	}
	for _, g := range []*graph{uniform(18_333, 9), uniform(13_752, 36), skewed(50_000, 20)} {
		for _, d := range [][2]int{{4, 16}, {8, 8}, {8, 32}} {
			all = append(all, gat(g, d[0], d[1]))
		}
	}
	return append(all, rows()...)
}

func gemm(form string, m, n, k int) kernel {
	run, lda := kernels.GemmNN, k
	if form == "TN" {
		run, lda = kernels.GemmTN, m
	}
	return kernel{
		name: fmt.Sprintf("Gemm%s %d×%d×%d", form, m, n, k), unit: "GFLOP/s", work: 2 * float64(m) * float64(n) * float64(k), peak: fma,
		rival: fmt.Sprintf("gemm %s %d %d %d", form, m, n, k),
		prepare: func() func() {
			a, b, c := values(m*k), values(k*n), make([]float32, m*n)
			return func() { run(m, n, k, a, lda, b, n, c, n, false) }
		},
	}
}

func gemmBF16(m, n, k int) kernel {
	return kernel{
		name: fmt.Sprintf("GemmNNBF16 %d×%d×%d", m, n, k), unit: "GFLOP/s", work: 2 * float64(m) * float64(n) * float64(k), peak: fma,
		rival: fmt.Sprintf("gemm16 NN %d %d %d", m, n, k),
		prepare: func() func() {
			a, b, c := halves(m*k), halves(k*n), make([]float32, m*n)
			return func() { kernels.GemmNNBF16(m, n, k, a, k, b, n, c, n, false) }
		},
	}
}

// graph has as many sources as destinations.
type graph struct {
	name   string
	nodes  int
	degree int
	rowPtr []int64
	col    []int32
	seed   string // how the rival makes a graph of the same kind
}

// uniform has neighbours drawn from all nodes: the worst case for caches.
func uniform(nodes, degree int) *graph {
	return draw(fmt.Sprintf("random %d×%d", nodes, degree), nodes, degree, 1)
}

// skewed has neighbours as in a power law: node i with a density of i^(−2/3).
func skewed(nodes, degree int) *graph {
	return draw(fmt.Sprintf("skewed %d×%d", nodes, degree), nodes, degree, 3)
}

func draw(name string, nodes, degree, power int) *graph {
	g := &graph{name: name, nodes: nodes, degree: degree, rowPtr: make([]int64, nodes+1), col: make([]int32, nodes*degree)}
	for i := range g.rowPtr {
		g.rowPtr[i] = int64(i * degree)
	}
	for e := range g.col {
		u := float64(mix(uint64(e))>>11) * 0x1p-53
		x := u
		for range power - 1 {
			x *= u
		}
		g.col[e] = int32(x * float64(nodes))
	}
	g.seed = fmt.Sprintf("%d %d %d", nodes, degree, power)
	return g
}

func spmm(g *graph, n int) kernel {
	return kernel{
		name: fmt.Sprintf("SpMM %s, %d wide", g.name, n), unit: "GB/s", work: float64(4 * n * len(g.col)), peak: gather(4 * n),
		rival: fmt.Sprintf("spmm %s %d", g.seed, n),
		prepare: func() func() {
			x, y, val := values(g.nodes*n), make([]float32, g.nodes*n), values(len(g.col))
			return func() { kernels.SpMM(g.rowPtr, g.col, val, n, x, n, y, n, false) }
		},
	}
}

func spmmBF16(g *graph, n int) kernel {
	return kernel{
		name: fmt.Sprintf("SpMMBF16 %s, %d wide", g.name, n), unit: "GB/s", work: float64(2 * n * len(g.col)), peak: gather(2 * n),
		prepare: func() func() {
			x, y, val := halves(g.nodes*n), make([]float32, g.nodes*n), values(len(g.col))
			return func() { kernels.SpMMBF16(g.rowPtr, g.col, val, n, x, n, y, n, false) }
		},
	}
}

// gat is both passes of a layer of graph attention on rows of 64, with dropout of the attention.
func gat(g *graph, heads, dim int) kernel {
	const in = 64
	return kernel{
		name: fmt.Sprintf("GAT %s, %d×%d", g.name, heads, dim), unit: "Medge/s", work: 1e3 * float64(len(g.col)), peak: func() float64 { return 0 },
		rival: fmt.Sprintf("gat %s %d %d", g.seed, heads, dim),
		prepare: func() func() {
			key := rng.New(1)
			conv := nn.NewGAT("gat", in, heads*dim, heads, false, 0.6, key)
			csr := &heddle.CSR{NumDst: g.nodes, NumSrc: g.nodes, RowPtr: g.rowPtr, Col: g.col}
			x := mat.View(g.nodes, in, values(g.nodes*in))
			y, dx, dy := mat.New(g.nodes, heads*dim), mat.New(g.nodes, in), mat.New(g.nodes, heads*dim)
			for i := range dy.Data {
				dy.Data[i] = 1
			}
			t := nn.NewTape()
			return func() {
				t.Reset()
				conv.Forward(y, nn.Input{G: csr, X: heddle.Features{Dense: x}}, t)
				conv.Backward(dx, dy, t)
			}
		},
	}
}

// rows are the loops that memory bounds, on slabs beyond the caches.
func rows() []kernel {
	const tall, wide = 100_000, 256
	const n = tall * wide
	return []kernel{
		{name: "Axpy", unit: "GB/s", work: 12 * n, peak: triad, rival: fmt.Sprintf("axpy %d", n), prepare: func() func() {
			x, y := values(n), values(n)
			return func() { kernels.Axpy(1e-3, x, y) }
		}},
		{name: "AdamStep", unit: "GB/s", work: 28 * n, peak: triad, rival: fmt.Sprintf("adam %d", n), prepare: func() func() {
			p, g, m, v := values(n), values(n), make([]float32, n), make([]float32, n)
			return func() { kernels.AdamStep(p, g, m, v, 1, 1e-3, 0.9, 0.999, 1e-8, 0.1, 0.001, 0, 0) }
		}},
		{name: "LayerNorm", unit: "GB/s", work: 8 * n, peak: triad, rival: fmt.Sprintf("layernorm %d %d", tall, wide), prepare: func() func() {
			x, y, gain, stats := values(n), make([]float32, n), values(wide), make([]float32, 2*tall)
			return func() { kernels.LayerNorm(tall, 1e-5, x, wide, gain, gain, y, wide, stats) }
		}},
		{name: "LayerNormGrad", unit: "GB/s", work: 24 * n, peak: triad, rival: fmt.Sprintf("layernormgrad %d %d", tall, wide), prepare: func() func() {
			x, y, gain, stats := values(n), make([]float32, n), values(wide), make([]float32, 2*tall)
			dgain, dbias := make([]float32, wide), make([]float32, wide)
			kernels.LayerNorm(tall, 1e-5, x, wide, gain, gain, y, wide, stats)
			dy := values(n)
			return func() { kernels.LayerNormGrad(tall, x, wide, stats, gain, dy, wide, y, wide, dgain, dbias) }
		}},
		{name: "ExpSum of rows of 64", unit: "GB/s", work: 8 * n, peak: triad, rival: fmt.Sprintf("softmax %d 64", n/64), prepare: func() func() {
			w := &softmax{x: values(n), y: make([]float32, n)}
			return func() { kernels.Parallel(w, softmaxParts) }
		}},
		{name: "ToBF16", unit: "GB/s", work: 6 * n, peak: triad, rival: fmt.Sprintf("tobf16 %d", n), prepare: func() func() {
			x, y := values(n), make([]uint16, n)
			return func() { kernels.ToBF16(x, y) }
		}},
	}
}

// softmax is that of rows of 64 without the division.
type softmax struct{ x, y []float32 }

const softmaxParts = 16

func (s *softmax) Run(part int) {
	piece := len(s.x) / softmaxParts
	for i := part * piece; i < (part+1)*piece; i += 64 {
		row := s.x[i : i+64]
		kernels.ExpSum(kernels.Max(row), row, s.y[i:i+64])
	}
}

// values returns n of a fixed sequence in [−1, 1).
func values(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(int32(mix(uint64(i))>>32)) * 0x1p-31
	}
	return x
}

func halves(n int) []uint16 {
	y := make([]uint16, n)
	kernels.ToBF16(values(n), y)
	return y
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(z uint64) uint64 {
	z = (z + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
