// Package baselines runs the baselines of the benchmarks, the Python scripts in its folder, in processes that do one
// piece of work at a time, on request.
package baselines

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// Rest is how long a baseline's threads may go on spinning after its work (OpenBLAS: 2^26 cycles),
// which would slow down what runs next.
const Rest = 40 * time.Millisecond

// Process answers each line it receives with one line.
type Process struct {
	About string // the first line: versions and threads

	command *exec.Cmd
	in      *bufio.Writer
	out     *bufio.Scanner
	close   func() error
}

// Start runs script on the given number of threads.
func Start(python, script string, threads int, env ...string) (*Process, error) {
	c := exec.Command(python, script)
	n := strconv.Itoa(threads)
	c.Env = append(os.Environ(), "OMP_NUM_THREADS="+n, "MKL_NUM_THREADS="+n, "OPENBLAS_NUM_THREADS="+n)
	c.Env = append(c.Env, env...)
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
	p := &Process{command: c, in: bufio.NewWriter(in), out: bufio.NewScanner(out), close: in.Close}
	p.About, err = p.answer()
	return p, err
}

// Stop ends the process.
func (p *Process) Stop() {
	p.close()
	p.command.Wait()
}

// Ask returns the answer to line.
func (p *Process) Ask(line string) (string, error) {
	fmt.Fprintln(p.in, line)
	if err := p.in.Flush(); err != nil {
		return "", err
	}
	return p.answer()
}

func (p *Process) answer() (string, error) {
	if !p.out.Scan() {
		return "", fmt.Errorf("process of the baselines ended: %v", p.out.Err())
	}
	return p.out.Text(), nil
}
