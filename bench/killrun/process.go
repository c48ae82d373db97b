package killrun

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/rng"
)

// process is one peer.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and all of its log is read
	err  error         // of its end, when done

	mu    sync.Mutex
	lines []string
	seen  []marker
	met   time.Time     // when its session began
	took  time.Duration // from then to its end, when done
	news  chan struct{} // closed with each new line
}

func (x *experiment) fixture(ctx context.Context, chosen []method) error {
	if x.peer == "" {
		x.peer = x.path("heddle")
		build := exec.CommandContext(ctx, "go", "build", "-o", x.peer, "./cmd/heddle")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build ./cmd/heddle: %w: %s", err, out)
		}
	}
	g := dataset.Sites(dataset.SitesConfig{Nodes: 600, Sites: peers, Classes: 4, Columns: 80, Train: 0.1, Val: 0.1},
		rng.New(3))
	if err := dataset.Write(x.path("data"), g); err != nil {
		return err
	}
	_, err := x.call(ctx, "partition", "--data", x.path("data"), "--parts", fmt.Sprint(peers), "-o", x.path("parts"))
	if err != nil {
		return err
	}
	members := make([]string, peers)
	for r := range members {
		id, err := x.call(ctx, "init", "--identity", x.path(fmt.Sprintf("key-%d", r)))
		if err != nil {
			return err
		}
		members[r] = fmt.Sprintf("site-%d=%s@127.0.0.1", r, strings.TrimSpace(id))
	}
	for _, m := range chosen {
		config := x.path(m.name + "-settings.yaml")
		if err := os.WriteFile(config, []byte(m.config), 0o644); err != nil {
			return err
		}
		for _, carrier := range carriers {
			port, err := freePorts(peers)
			if err != nil {
				return err
			}
			args := slices.Concat([]string{"plan", "--config", config, "-o", x.plan(m, carrier), "--carrier", carrier,
				"--port", fmt.Sprint(port), "--peer-timeout", "1s", "--method", m.name}, m.settings, members)
			if _, err := x.call(ctx, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *experiment) call(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, x.peer, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("peer %s: %w: %s", args[0], err, exit.Stderr)
	}
	return string(out), err
}

// freePorts returns the first of n ports in a row that nobody listens at, over UDP or TCP.
func freePorts(n int) (int, error) {
	for port := 21000 + os.Getpid()%4000*8; port+n < 65000; port += n {
		free := true
		for k := range n {
			at := fmt.Sprintf("127.0.0.1:%d", port+k)
			udp, err := net.ListenPacket("udp4", at)
			if err != nil {
				free = false
				break
			}
			udp.Close()
			tcp, err := net.Listen("tcp4", at)
			if err != nil {
				free = false
				break
			}
			tcp.Close()
		}
		if free {
			return port, nil
		}
	}
	return 0, errors.New("no free ports")
}

// crew is the processes of one run.
type crew struct {
	x         *experiment
	dir, plan string
	join      []string // flags of its members
	processes [peers]*process
}

// plan is the file of the plan by a method over a carrier.
func (x *experiment) plan(m method, carrier string) string {
	return x.path(m.name + "-" + carrier + ".yaml")
}

func (x *experiment) crew(name string, m method, carrier string) *crew {
	return &crew{x: x, dir: x.path(name), plan: x.plan(m, carrier), join: m.join}
}

func (c *crew) path(name string, rank int) string { return fmt.Sprintf("%s/%s-%d", c.dir, name, rank) }

// start starts the process of a peer, also again.
func (c *crew) start(rank int) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	p := &process{done: make(chan struct{}), news: make(chan struct{})}
	p.cmd = exec.Command(c.x.peer, append([]string{"join", "--plan", c.plan,
		"--shard", fmt.Sprintf("%s/part-%d", c.x.path("parts"), rank),
		"--identity", c.x.path(fmt.Sprintf("key-%d", rank)),
		"--state", c.path("state", rank), "-o", c.path("out", rank),
		"--link", "latency=3ms", "--wait", "1m", "--rejoin", "1m"}, c.join...)...)
	p.cmd.Env = append(os.Environ(), "HEDDLE_LOG=debug", "GOMAXPROCS=1")
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go p.read(log)
	c.processes[rank] = p
	return nil
}

func (p *process) read(log io.Reader) {
	for in := bufio.NewScanner(log); in.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, in.Text())
		if m, ok := parseMarker(in.Text()); ok {
			p.seen = append(p.seen, m)
			if m.kind == begun {
				p.met = time.Now()
			}
		}
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
	p.took = time.Since(p.met)
	close(p.done)
}

// await returns when the process has logged a marker; ok is false if it has ended or taken too long.
func (p *process) await(ctx context.Context, want marker, limit time.Duration) (ok bool) {
	if want.kind == "" {
		return true
	}
	late := time.After(limit)
	for {
		p.mu.Lock()
		seen, news := slices.Contains(p.seen, want), p.news
		p.mu.Unlock()
		if seen {
			return true
		}
		select {
		case <-news:
		case <-p.done:
			return false
		case <-late:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// kill ends the process as kill -9 does, and reports whether that is what ended it.
func (p *process) kill() bool {
	p.cmd.Process.Kill()
	<-p.done
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (p *process) last() marker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) == 0 {
		return marker{}
	}
	return p.seen[len(p.seen)-1]
}

// tail is the end of the log.
func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-12):], "\n")
}

// wait waits for all processes to end well.
func (c *crew) wait(ctx context.Context, limit time.Duration) (outcome, detail string) {
	late := time.After(limit)
	outcome = same
	for _, p := range c.processes {
		select {
		case <-p.done:
			if p.err != nil {
				outcome = failed
			}
			continue
		case <-late:
		case <-ctx.Done():
		}
		outcome = hung
		break
	}
	if outcome == same {
		return same, ""
	}
	for r, p := range c.processes {
		detail += fmt.Sprintf("peer %d:\n%s\n", r, p.tail())
	}
	c.stop()
	return outcome, detail
}

// stop ends what still runs.
func (c *crew) stop() {
	for _, p := range c.processes {
		if p != nil {
			p.kill()
		}
	}
}

func (c *crew) remove() { os.RemoveAll(c.dir) }

var errDiffer = errors.New("two peers hold different models")

// digest is the digest of the tensors of all peers' models, which must be the same.
func (c *crew) digest() (string, error) {
	first := ""
	for r := range peers {
		b, err := os.ReadFile(c.path("out", r) + "/model.safetensors")
		if err != nil {
			return "", err
		}
		if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
			return "", fmt.Errorf("the model of peer %d must be a safetensors file", r)
		}
		// The header has the names, shapes and places of the tensors, and notes about the run.
		digest := fmt.Sprintf("%x", sha256.Sum256(b[8+binary.LittleEndian.Uint64(b):]))
		if first == "" {
			first = digest
		}
		if digest != first {
			return "", fmt.Errorf("%w: peers 0 and %d", errDiffer, r)
		}
	}
	return first, nil
}
