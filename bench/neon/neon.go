// Package neon counts the instructions a flop of the kernels for 64-bit Arm.
package neon

import (
	"bufio"
	"context"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "neon",
	Title: "Instructions of the kernels for 64-bit Arm",
	Text: `Instructions a flop, as qemu-user steps through them one by one: those of package kernels, Go's
and assembly's, and those that copy and clear memory for it. Beside them the instructions if
there were only arithmetic on full vectors, and their fraction.`,
}

// work is a call of a kernel. ideal is the number of vector instructions that do its arithmetic.
type work struct {
	name, set    string
	flops, ideal float64
	prepare      func() (run func())
}

const values = 4096 // of a loop over elements

func cases() []work {
	all := []work{
		gemm("NN", 512, 64, 256), gemm("TN", 256, 64, 512), gemm("NT", 512, 256, 64), gemm("NN", 512, 47, 256),
	}
	for _, n := range []int{16, 64, 128} {
		all = append(all, spmm(n))
	}
	x, y := measure.Values(values), measure.Values(values)
	loop := func(name string, flops float64, run func()) {
		all = append(all, work{name, "neon", flops * values, flops * values / 4, func() func() { return run }})
	}
	loop("Axpy, not fused", 2, func() { kernels.Axpy(0.5, x, y) })
	loop("Dot", 2, func() { kernels.Dot(x, y) })
	all[len(all)-1].ideal /= 2 // fused
	m, v := make([]float32, values), make([]float32, values)
	loop("AdamStep", 17, func() { kernels.AdamStep(x, y, m, v, 1, 1e-3, 0.9, 0.999, 1e-8, 0.1, 0.001, 0, 0) })
	gain, stats := measure.Values(256), make([]float32, 2*values/256)
	loop("LayerNorm, rows of 256", 8, func() { kernels.LayerNorm(values/256, 1e-5, x, 256, gain, gain, y, 256, stats) })
	return all
}

func gemm(form string, m, n, k int) work {
	flops := 2 * float64(m*n*k)
	return work{fmt.Sprintf("Gemm%s %d×%d×%d", form, m, n, k), "neon", flops, flops / 8, func() func() {
		a, b, c := measure.Values(m*k), measure.Values(k*n), make([]float32, m*n)
		switch form {
		case "TN":
			return func() { kernels.GemmTN(m, n, k, a, m, b, n, c, n, false) }
		case "NT":
			return func() { kernels.GemmNT(m, n, k, a, k, b, k, c, n, false) }
		}
		return func() { kernels.GemmNN(m, n, k, a, k, b, n, c, n, false) }
	}}
}

func spmm(n int) work {
	const nodes = 256
	g := measure.Uniform(nodes, 20)
	flops := 2 * float64(n*len(g.Col))
	return work{fmt.Sprintf("SpMM, %d wide, 20 edges a row", n), "neon", flops, flops / 8, func() func() {
		x, y, val := measure.Values(nodes*n), make([]float32, nodes*n), measure.Values(len(g.Col))
		return func() { kernels.SpMM(g.RowPtr, g.Col, val, n, x, n, y, n, false) }
	}}
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	name := f.String("work", "", "internal: work to do, on arm64")
	times := f.Int("times", 1, "internal: how often")
	return func(ctx context.Context, p *page.Page) error {
		if *name != "" {
			return do(*name, *times)
		}
		return compare(ctx, p)
	}
}

// do does one piece of work.
func do(name string, times int) error {
	if err := kernels.Choice(); err != nil {
		return err
	}
	for _, w := range cases() {
		if w.name == name {
			run := w.prepare()
			for range times {
				run()
			}
			return nil
		}
	}
	return fmt.Errorf("work must be one of the kernels (got %q)", name)
}

// compare counts the instructions of all work.
func compare(ctx context.Context, p *page.Page) error {
	dir, err := os.MkdirTemp("", "neon")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	at, err := places(program)
	if err != nil {
		return err
	}
	p.Table("kernel %s", "instructions a flop %.4f", "arithmetic %.4f", "fraction %.2f")
	for _, w := range cases() {
		once, err := count(ctx, program, at, w, 1)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		twice, err := count(ctx, program, at, w, 2)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		each := float64(twice - once) // without what comes before
		p.Row(w.name, each/w.flops, w.ideal/w.flops, w.ideal/each)
	}
	return nil
}

// places returns the addresses of what is counted, as qemu takes them.
func places(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return "", err
	}
	var ranges []string
	for _, s := range symbols {
		if s.Size > 0 && elf.ST_TYPE(s.Info) == elf.STT_FUNC && counted(s.Name) {
			ranges = append(ranges, fmt.Sprintf("%#x+%#x", s.Value, s.Size))
		}
	}
	if len(ranges) == 0 {
		return "", errors.New("the program has no symbols of package kernels")
	}
	return strings.Join(ranges, ","), nil
}

func counted(symbol string) bool {
	return strings.Contains(symbol, "heddle/kernels.") && !strings.HasSuffix(symbol, "kernels.init") ||
		symbol == "runtime.memmove" || symbol == "runtime.memclrNoHeapPointers"
}

// count runs the program and returns how many instructions it took at those places.
func count(ctx context.Context, program, at string, w work, times int) (instructions int, err error) {
	cmd := exec.CommandContext(ctx, "qemu-aarch64-static", "-cpu", "max", "-singlestep", "-d", "exec,nochain",
		"-dfilter", at, program, About.Name, "-work", w.name, "-times", fmt.Sprint(times))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1", "HEDDLE_KERNELS="+w.set)
	trace, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(trace)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "Trace "):
			instructions++
		case strings.HasPrefix(line, "Stopped "): // a signal came before it
			instructions--
		default:
			fmt.Fprintln(os.Stderr, line)
		}
	}
	return instructions, errors.Join(lines.Err(), cmd.Wait())
}
