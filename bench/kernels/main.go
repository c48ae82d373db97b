// Kernels prints what this machine's kernels reach: rates, the fraction of a peak measured beside them, and, with
// -python, how many times faster they are than PyTorch and OpenBLAS (through NumPy) at the same work. Everything takes
// turns, and what is printed are medians of ratios between neighbours in time: a busy machine slows all alike.
//
//	go run ./bench/kernels -threads 1 -python python3
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/kernels"
)

func main() {
	threads := flag.Int("threads", 1, "threads, of ours and of the rivals")
	python := flag.String("python", "", "interpreter that has torch and numpy; empty: no rivals")
	script := flag.String("script", "bench/rivals/kernels_torch.py", "the rivals")
	turns := flag.Int("turns", 7, "runs of each")
	only := flag.String("only", "", "cases to run, by a part of their names; empty: all")
	large := flag.Bool("large", false, "also the cases that take seconds or gigabytes")
	flag.Parse()
	if err := run(*threads, *turns, *python, *script, *only, *large); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func run(threads, turns int, python, script, only string, large bool) error {
	if err := kernels.Choice(); err != nil {
		return err
	}
	runtime.GOMAXPROCS(threads)
	var rival *rivals
	if python != "" {
		var err error
		if rival, err = start(python, script, threads); err != nil {
			return err
		}
		defer rival.stop()
		fmt.Println(rival.about)
	}
	fmt.Printf("kernels %s, %d threads, medians of %d turns\n\n", kernels.Name(), threads, turns)
	fmt.Printf("%-34s %10s %-8s %9s %9s %9s\n", "kernel", "rate", "", "of peak", "×torch", "×openblas")
	for _, c := range cases(large) {
		if !strings.Contains(c.name, only) {
			continue
		}
		if err := c.measure(rival, turns); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// measure prints one line: ours, the peak and the rivals in turn.
func (c kernel) measure(rival *rivals, turns int) error {
	ours := c.prepare()
	engines := []string{}
	if rival != nil {
		var err error
		if engines, err = rival.setup(c.rival); err != nil {
			return err
		}
	}
	ours() // once for the caches, pages and clock
	var rates, peaks []float64
	ratios := map[string][]float64{}
	for range turns {
		begin := time.Now()
		ours()
		seconds := time.Since(begin).Seconds()
		rates = append(rates, c.work/seconds/1e9)
		if peak := c.peak(); peak > 0 {
			peaks = append(peaks, c.work/seconds/1e9/peak)
		}
		for _, e := range engines {
			theirs, err := rival.run(e)
			if err != nil {
				return err
			}
			ratios[e] = append(ratios[e], theirs/seconds)
		}
	}
	show := func(x []float64) string {
		if len(x) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", median(x))
	}
	fmt.Printf("%-34s %10.1f %-8s %9s %9s %9s\n", c.name, median(rates), c.unit, show(peaks), show(ratios["torch"]), show(ratios["openblas"]))
	return nil
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return x[len(x)/2]
}

// rivals is a Python process that does one piece of work at a time, when told.
type rivals struct {
	command *exec.Cmd
	in      *bufio.Writer
	out     *bufio.Scanner
	close   func() error
	about   string
}

func start(python, script string, threads int) (*rivals, error) {
	c := exec.Command(python, script)
	n := strconv.Itoa(threads)
	c.Env = append(os.Environ(), "OMP_NUM_THREADS="+n, "MKL_NUM_THREADS="+n, "OPENBLAS_NUM_THREADS="+n)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	r := &rivals{command: c, in: bufio.NewWriter(in), out: bufio.NewScanner(out), close: in.Close}
	r.about, err = r.answer()
	return r, err
}

func (r *rivals) stop() {
	r.close()
	r.command.Wait()
}

func (r *rivals) answer() (string, error) {
	if !r.out.Scan() {
		return "", fmt.Errorf("the rivals' process ended: %v", r.out.Err())
	}
	return r.out.Text(), nil
}

func (r *rivals) ask(line string) (string, error) {
	fmt.Fprintln(r.in, line)
	if err := r.in.Flush(); err != nil {
		return "", err
	}
	return r.answer()
}

// setup prepares the work that line describes and returns who can do it.
func (r *rivals) setup(line string) ([]string, error) {
	if line == "" {
		return nil, nil
	}
	answer, err := r.ask("setup " + line)
	return strings.Fields(answer), err
}

// run returns the seconds that engine takes for the work once. Its threads go on spinning for a moment: wait for that.
func (r *rivals) run(engine string) (float64, error) {
	answer, err := r.ask("run " + engine)
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.ParseFloat(answer, 64)
	if err != nil || !(seconds > 0) || math.IsInf(seconds, 0) {
		return 0, fmt.Errorf("%s answered %q", engine, answer)
	}
	time.Sleep(10 * time.Millisecond)
	return seconds, nil
}
