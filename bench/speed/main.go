// Speed times 4-peer layer-wise training (two graph convolutions, raw features) against the same work in PyTorch, in
// one interleaved run: each way in a process of its own, one after another, several times over. Seconds are those of
// training alone: reading, cutting the graph and making connections are left out, as are PyTorch's imports and a first
// short training that warms it up. Processor seconds count all threads, and for Heddle reading too. Want a quiet machine: PyTorch's threads spin, and suffer most from a busy one.
//
//	go run ./bench/speed -python python3
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// way is one way to train, run as a process that prints a measure.
type way struct {
	name    string
	command []string
	runs    []measure
}

// measure is what one run prints.
type measure struct {
	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpu_seconds,omitempty"` // of all threads; 0: take the whole process's
	TestAccuracy float64 `json:"test_accuracy"`
	Torch        string  `json:"torch,omitempty"`
}

func main() {
	root := flag.String("root", "../shared/data", "folder of the data sets; $HEDDLE_DATA goes before it")
	python := flag.String("python", "python3", "interpreter that has torch and numpy; empty: none")
	script := flag.String("script", "bench/rivals/retexo_torch.py", "the rival")
	repeat := flag.Int("repeat", 7, "runs of each way")
	rounds := flag.Int("rounds", 200, "rounds of a layer")
	only := flag.String("only", "", "ways to run, parts of their names with semicolons between; empty: all")
	one := flag.String("one", "", "train once over the given transport (memory, quic, tcp) and print a measure")
	profile := flag.String("profile", "", "with -one: file for a CPU profile")
	flag.Parse()
	if env := os.Getenv("HEDDLE_DATA"); env != "" {
		*root = env
	}
	data := filepath.Join(*root, "cora")
	var err error
	if *one != "" {
		err = single(context.Background(), data, *one, *rounds, *profile)
	} else {
		err = compare(data, *root, *python, *script, *only, *repeat, *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func single(ctx context.Context, data, transport string, rounds int, profile string) error {
	m, err := train(ctx, data, transport, rounds, profile)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

func compare(data, root, python, script, only string, repeat, rounds int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	n := strconv.Itoa(rounds)
	var ways []*way
	add := func(name string, command ...string) {
		if only == "" || slices.ContainsFunc(strings.Split(only, ";"), func(part string) bool { return strings.Contains(name, part) }) {
			ways = append(ways, &way{name: name, command: command})
		}
	}
	for _, transport := range []string{"memory", "quic", "tcp"} {
		add("heddle, 4 peers, "+transport, self, "-one", transport, "-root", root, "-rounds", n)
	}
	if python != "" {
		rival := func(name string, args ...string) {
			add(name, append([]string{python, script, filepath.Join(data, "graph.npz"), "--rounds", n}, args...)...)
		}
		for _, first := range []string{"own", "bag", "coo"} {
			rival("torch, pooled, "+first+", 2 threads", "--first", first)
			rival("torch, pooled, "+first+", 1 thread", "--first", first, "--threads", "1")
		}
		rival("torch, 4 replicas, own, 2 threads", "--peers", "4")
		rival("torch, 4 replicas, own, 1 thread", "--peers", "4", "--threads", "1")
	}
	for i := range repeat {
		for _, w := range ways {
			m, err := w.run()
			if err != nil {
				return fmt.Errorf("%s, run %d: %w", w.name, i+1, err)
			}
			w.runs = append(w.runs, m)
			fmt.Fprintf(os.Stderr, "%d/%d %s: %.3f s, %.3f processor s\n", i+1, repeat, w.name, m.Seconds, m.CPUSeconds)
		}
	}
	table(ways)
	return nil
}

func (w *way) run() (m measure, err error) {
	cmd := exec.Command(w.command[0], w.command[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return m, errors.Join(err, errors.New(strings.TrimSpace(stderr.String())))
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, err
	}
	if m.CPUSeconds == 0 {
		m.CPUSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	return m, nil
}

// table prints medians, and how they compare with the fastest rival that trains one pooled model.
func table(ways []*way) {
	fmt.Printf("%s, %s/%s, %d cores", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	rival := 0.0
	for _, w := range ways {
		if v := w.runs[0].Torch; v != "" && rival == 0 {
			fmt.Printf(", torch %s", v)
		}
		if v := w.median(wall); strings.HasPrefix(w.name, "torch, pooled") && (rival == 0 || v < rival) {
			rival = v
		}
	}
	fmt.Printf("\n\n| way | runs | median s | least s | most s | processor s | test accuracy | fastest pooled torch ÷ this |\n|---|---|---|---|---|---|---|---|\n")
	for _, w := range ways {
		s := w.sorted(wall)
		fmt.Printf("| %s | %d | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f |\n",
			w.name, len(s), w.median(wall), s[0], s[len(s)-1], w.median(processor), w.runs[0].TestAccuracy, rival/w.median(wall))
	}
}

func wall(m measure) float64      { return m.Seconds }
func processor(m measure) float64 { return m.CPUSeconds }

func (w *way) sorted(of func(measure) float64) []float64 {
	var s []float64
	for _, m := range w.runs {
		s = append(s, of(m))
	}
	slices.Sort(s)
	return s
}

func (w *way) median(of func(measure) float64) float64 {
	s := w.sorted(of)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
