package partition

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph/partition"
)

// What wall trains: GraphSAGE of three layers of 256 columns with the whole graph, by two processes of one thread, for
// these numbers of epochs and turns.
const (
	wallEpochs = 8
	wallTurns  = 3
	clockTicks = 100 // of the kernel's accounting, a second
)

// wall compares the modelled time of an epoch, processor seconds of the slowest worker and its bytes over the link,
// with the time that passes. Parts are those of as many nodes and of as much work, turn by turn.
func (o options) wall(ctx context.Context, p *page.Page) error {
	p.Table("graph %s", "even in %s", "link %s", "work balance %.2f", "processor s, each %s", "MB sent, each %s",
		"modelled s %.3f", "measured s %.3f", "measured / modelled %.2f")
	dir, err := os.MkdirTemp("", "bench-wall")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	secret := make([]byte, 32)
	rand.Read(secret)
	if err := os.WriteFile(filepath.Join(dir, "secret"), secret, 0o600); err != nil {
		return err
	}
	plan := []string{"plan", "--method", "full-batch", "--model", "sage", "--layers", "3", "--hidden", "256",
		"--encoder", "raw", "--order", "fixed", "--rounds", strconv.Itoa(wallEpochs), "--eval-every", "1000", "--out",
		filepath.Join(dir, "plan.yaml")}
	if err := o.peer(ctx, plan...); err != nil {
		return err
	}
	for name := range strings.SplitSeq(o.graphs, ",") {
		goals := []string{"vertices=1.03", "work=1.03"}
		balance := make([]float64, len(goals))
		for k, goal := range goals {
			parts := filepath.Join(dir, name, goal)
			if err := o.peer(ctx, "partition", "--data", filepath.Join(o.root, name), "--parts", "2", "--policy",
				"multilevel", "--cap", goal, "--out", parts, "--quiet"); err != nil {
				return err
			}
			if balance[k], err = workBalance(parts); err != nil {
				return err
			}
		}
		for _, link := range []string{"rate=1Gbit", "rate=100Mbit"} {
			best := make([]epoch, len(goals))
			for range wallTurns {
				for k, goal := range goals {
					one, err := o.trained(ctx, dir, filepath.Join(dir, name, goal), link)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", name, goal, err)
					}
					if best[k].wall == 0 || one.wall < best[k].wall {
						best[k] = one
					}
				}
			}
			for k, e := range best {
				even := [2]string{"nodes", "work"}[k]
				model := e.modelled(link)
				p.Row(name, even, link, balance[k], pair("%.3f", e.processor), pair("%.2f", e.megabytes), model, e.wall,
					e.wall/model)
			}
		}
	}
	return nil
}

// pair prints the figures of both workers.
func pair(format string, x [2]float64) string {
	return fmt.Sprintf(format+", "+format, x[0], x[1])
}

// epoch is what an epoch took of two workers.
type epoch struct {
	wall                 float64 // seconds
	processor, megabytes [2]float64
}

// modelled returns the seconds of an epoch whose slowest worker computes, and sends over the link.
func (e epoch) modelled(link string) (slowest float64) {
	rate := map[string]float64{"rate=1Gbit": 125, "rate=100Mbit": 12.5}[link] // MB a second
	for q := range e.processor {
		slowest = max(slowest, e.processor[q]+e.megabytes[q]/rate)
	}
	return slowest
}

// peer runs the program to its end.
func (o options) peer(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, o.program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", o.program, args[0], err, out)
	}
	return nil
}

// workBalance returns the work of the part that has the most over the mean, by the manifest of a partition.
func workBalance(parts string) (float64, error) {
	b, err := os.ReadFile(filepath.Join(parts, "manifest.json"))
	if err != nil {
		return 0, err
	}
	var m struct {
		Parts []struct{ Owned, Edges int64 } `json:"parts"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return 0, err
	}
	work := make([]int64, len(m.Parts))
	for q, part := range m.Parts {
		work[q] = part.Edges + partition.NodeWork*part.Owned
	}
	return partition.Balance(work), nil
}

// trained runs both workers and returns the seconds of their fastest epoch after the first, and what a mean one takes.
func (o options) trained(ctx context.Context, dir, parts, link string) (best epoch, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run, err := os.MkdirTemp(dir, "run")
	if err != nil {
		return best, err
	}
	type worker struct {
		process *exec.Cmd
		events  *bufio.Scanner
		errs    bytes.Buffer
	}
	both := make([]worker, 2)
	for q := range both {
		w := &both[q]
		rank := strconv.Itoa(q)
		w.process = exec.CommandContext(ctx, o.program, "join", "--plan", filepath.Join(dir, "plan.yaml"), "--shard",
			parts, "--secret", filepath.Join(dir, "secret"), "--rank", rank, "--ranks", "2", "--hosts",
			"127.0.0.1,127.0.0.1", "--port", "4731", "--link", link, "--events", "-", "--quiet", "--state",
			filepath.Join(run, "state"), "--out", filepath.Join(run, "out"))
		w.process.Env = append(os.Environ(), "GOMAXPROCS=1")
		w.process.Stderr = &w.errs
		pipe, err := w.process.StdoutPipe()
		if err != nil {
			return best, err
		}
		w.events = bufio.NewScanner(pipe)
		w.events.Buffer(nil, 1<<20)
		if err := w.process.Start(); err != nil {
			return best, err
		}
	}
	var before, first [2]mark
	for n := range wallEpochs {
		var took float64
		for q := range both {
			now, err := next(both[q].events, both[q].process.Process.Pid)
			if err != nil {
				return best, fmt.Errorf("worker %d: %w\n%s", q, err, both[q].errs.Bytes())
			}
			took = max(took, now.at.Sub(before[q].at).Seconds())
			if before[q] = now; n == 0 {
				first[q] = now
			}
		}
		if n > 0 && (best.wall == 0 || took < best.wall) {
			best.wall = took
		}
	}
	for q := range both { // the kernel counts hundredths of a second: a mean has finer ones
		best.processor[q] = (before[q].processor - first[q].processor) / (wallEpochs - 1)
		best.megabytes[q] = (before[q].sent - first[q].sent) / (wallEpochs - 1) / 1e6
	}
	for q := range both {
		for both[q].events.Scan() { // a full pipe would hold it up
		}
		err = cmp.Or(err, both[q].process.Wait())
	}
	return best, err
}

// mark is how far a worker was at the end of an epoch.
type mark struct {
	at              time.Time
	processor, sent float64 // seconds, bytes
}

// next waits for the end of a worker's next epoch.
func next(events *bufio.Scanner, pid int) (m mark, err error) {
	for events.Scan() {
		var e struct {
			Kind string           `json:"kind"`
			Sent map[string]int64 `json:"sent"`
		}
		if json.Unmarshal(events.Bytes(), &e) != nil || e.Kind != "round" {
			continue
		}
		for _, n := range e.Sent {
			m.sent += float64(n)
		}
		m.at = time.Now()
		m.processor, err = processorSeconds(pid)
		return m, err
	}
	return m, fmt.Errorf("no more epochs: %w", cmp.Or(events.Err(), os.ErrClosed))
}

// processorSeconds returns the processor seconds of a process so far (proc(5)).
func processorSeconds(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	sum := math.NaN()
	if len(fields) > 12 {
		user, bad1 := strconv.ParseFloat(fields[11], 64)
		system, bad2 := strconv.ParseFloat(fields[12], 64)
		if bad1 == nil && bad2 == nil {
			sum = (user + system) / clockTicks
		}
	}
	return sum, nil
}
