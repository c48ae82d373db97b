package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/plan"
)

// liar is the part of a member in sums and frames, as a false program has it.
type liar struct {
	comm.Transport
	comm.Reducer
	frame func(body []byte) []byte
	part  func(c *comm.Contribution)
	sent  int // frames
}

func (l *liar) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if c.ID.Kind == "class means" {
		l.part(c)
	}
	return l.Reducer.Reduce(ctx, c)
}

func (l *liar) Send(ctx context.Context, to int, head, body []byte) error {
	return l.Transport.Send(ctx, to, head, l.frame(body))
}

// lie takes part in class means as member r of a plan, in this process and over the network.
func (f *flock) lie(ctx context.Context, r int, l *liar) error {
	p, _, err := cli.ReadPlan(f.plan)
	if err != nil {
		return err
	}
	own, closer, err := cli.ReadParts(filepath.Join(f.parts, fmt.Sprintf("part-%d", r)), len(p.Members))
	if err != nil {
		return err
	}
	defer closer.Close()
	key, err := cli.LoadKey(f.key(r))
	if err != nil {
		return err
	}
	id, err := p.Identify(own)
	if err != nil {
		return err
	}
	roster, text := disclosure.Roster(*p), p.Agreed()
	listen := p2p.Config{Identity: key, Listen: roster.Members[r].Addrs, Transport: p.Carrier,
		MaxPeers: len(p.Members)}
	h, err := p2p.Listen(listen)
	if err != nil {
		return err
	}
	defer h.Close()
	hello := p2p.Hello{Plan: sha256.Sum256(append(id[:], text...)), Partition: own.Fingerprint, PlanText: text}
	s, err := h.Join(ctx, roster, hello)
	if err != nil {
		return err
	}
	l.Transport = s
	g := comm.NewGroup(l, r, len(p.Members))
	defer g.Close()
	verify := func(rank int, message, signature []byte) error {
		return identity.Verify(p.Members[rank].ID, message, signature)
	}
	terms := secagg.KeyTerms{Run: hello.Plan, Least: plan.LeastSecure, Sign: key.Sign, Verify: verify}
	if l.Reducer, err = secagg.New(ctx, terms, g); err != nil {
		return err
	}
	c, err := p.ClosedForm(own)
	if err != nil {
		return err
	}
	t, err := classmeans.New(c, p.InOrder(own))
	if err != nil {
		return err
	}
	return g.Refuse(ctx, t.Run(ctx, g, l))
}

// TestOneRefusalEndsAll: what one of three members sends that no data explain ends the run of all within seconds, by
// the same last line, which names the sender, or nobody if masks hide it; no process waits for a member to come back.
func TestOneRefusalEndsAll(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	t.Parallel()
	const at = 1
	honest := liar{frame: func(b []byte) []byte { return b }, part: func(*comm.Contribution) {}}
	for name, test := range map[string]struct {
		change func(l *liar)
		want   []string
	}{
		"wrong length": {func(l *liar) {
			l.frame = func(b []byte) []byte {
				if l.sent++; l.sent == 40 {
					return append(b[:len(b):len(b)], 1)
				}
				return b
			}
		}, []string{"peer 1 (site-1): ended the run: ", "bytes (got "}},
		"NaN": {func(l *liar) {
			l.part = func(c *comm.Contribution) { c.Update[3] = float32(math.NaN()) }
		}, []string{"peer 1 (site-1): ended the run: ", "class means", "update[3] must be between", "(got NaN)"}},
		"means times -4": {func(l *liar) {
			l.part = func(c *comm.Contribution) {
				for i := range c.Update {
					c.Update[i] *= -4
				}
			}
		}, []string{"must be", "a member sent a false one, and the sum does not show which"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &flock{crew: newCrew(t, 3), lines: make([]bytes.Buffer, 3), procs: make([]*exec.Cmd, 3)}
			f.plan = filepath.Join(f.dir, "plan.yaml")
			args := []string{"plan", "-o", f.plan, "--port", fmt.Sprint(testenv.FreePorts(t, 3))}
			for _, m := range f.members {
				args = append(args, m+"@127.0.0.1")
			}
			must(t, args...)
			for _, r := range []int{0, 2} {
				f.start(t, r, "--state", filepath.Join(f.dir, fmt.Sprintf("state-%d", r)))
			}
			l := honest
			test.change(&l)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			lied := f.lie(ctx, at, &l)
			f.same(t, 0, 2)
			last := f.last(0)
			for _, want := range test.want {
				if !strings.Contains(last, want) {
					t.Errorf("the last line must contain %q (got %q)", want, last)
				}
			}
			if strings.Contains(last, "site-0") || strings.Contains(last, "site-2") {
				t.Errorf("the last line must name no honest member (got %q)", last)
			}
			heard := strings.TrimPrefix(strings.ReplaceAll(last, "heddle: peer 1 (site-1): ", "peer 1: "), "heddle: ")
			if lied == nil || heard != lied.Error() {
				t.Errorf("the sender ends with %v, the others with %q", lied, last)
			}
		})
	}
}

// same fails unless these peers end with exit code 1 and the same last line within 20 seconds.
func (f *flock) same(t *testing.T, ranks ...int) {
	t.Helper()
	begun := time.Now()
	for _, r := range ranks {
		f.procs[r].Wait()
		if code, took := f.procs[r].ProcessState.ExitCode(), time.Since(begun); code != 1 || took > 20*time.Second {
			t.Errorf("peer %d ends with %d after %v, must end with 1 soon:\n%s", r, code, took, f.lines[r].String())
		}
	}
	for _, r := range ranks[1:] {
		if f.last(r) != f.last(ranks[0]) {
			t.Errorf("peer %d must end with %q (got %q)", r, f.last(ranks[0]), f.last(r))
		}
	}
}

// last returns the last line that a peer has printed.
func (f *flock) last(r int) string {
	lines := strings.Split(strings.TrimSpace(f.lines[r].String()), "\n")
	return lines[len(lines)-1]
}
