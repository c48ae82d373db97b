package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-gnn/heddle/rng"
)

// badLine connects two network namespaces by two TUN devices and this process, which delays, limits
// and loses packets of any protocol in both directions.
type badLine struct {
	delay time.Duration
	rate  float64 // bytes a second each way
	loss  float64
	lost  atomic.Int64 // packets
}

const lineQueue = 256 << 10 // bytes that wait for their turn; what comes then is lost, too

// open makes the namespaces and returns their names; their addresses are 10.9.0.1 and 10.9.0.2.
func (l *badLine) open(t *testing.T) (spaces [2]string) {
	t.Helper()
	var ends [2]*os.File
	for i := range spaces {
		spaces[i] = fmt.Sprintf("hd%d.%s.%d", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "."), i)
		if out, err := exec.Command("ip", "netns", "add", spaces[i]).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED, not shown here: network namespaces are not allowed: %v %s", err, out)
		}
		t.Cleanup(func() { exec.Command("ip", "netns", "del", spaces[i]).Run() })
		var err error
		if ends[i], err = tunnel(spaces[i]); err != nil {
			t.Skipf("SKIPPED, not shown here: no TUN device: %v", err)
		}
		for _, line := range []string{"link set lo up", fmt.Sprintf("addr add 10.9.0.%d/24 dev line", i+1),
			"link set line up"} {
			if out, err := exec.Command("ip",
				append([]string{"-n", spaces[i]}, strings.Fields(line)...)...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v %s", line, err, out)
			}
		}
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		ends[0].Close()
		ends[1].Close()
		all.Wait()
	})
	for i := range ends {
		all.Go(func() { l.carry(ends[i], ends[1-i], uint64(i)) })
	}
	return spaces
}

// tunnel opens a TUN device named line in a namespace.
func tunnel(space string) (*os.File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine, and the namespace it is in with it
		f, err := func() (*os.File, error) {
			ns, err := os.Open("/var/run/netns/" + space)
			if err != nil {
				return nil, err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return nil, err
			}
			fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, err
			}
			req, err := unix.NewIfreq("line")
			if err == nil {
				req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
				err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
			}
			if err != nil {
				unix.Close(fd)
				return nil, err
			}
			return os.NewFile(uintptr(fd), "line"), nil
		}()
		done <- opened{f, err}
	}()
	o := <-done
	return o.f, o.err
}

// carry forwards packets in one direction.
func (l *badLine) carry(from, to *os.File, seed uint64) {
	key, idle := rng.New(seed).FoldString("line"), time.Now()
	for count := uint64(0); ; count++ {
		packet := make([]byte, 2048)
		n, err := from.Read(packet)
		if err != nil {
			return
		}
		now := time.Now()
		if idle.Before(now) {
			idle = now
		}
		if key.Float64(count) < l.loss || idle.Sub(now).Seconds()*l.rate > lineQueue {
			l.lost.Add(1)
			continue
		}
		idle = idle.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
		time.AfterFunc(idle.Sub(now)+l.delay, func() { to.Write(packet[:n]) })
	}
}

// TestTrainOverABadLine trains over QUIC and TCP on a line with a round trip of 150 ms, 5 Mbit/s
// and a loss of 2 % in each direction. The runs end with the same bits as one in memory.
func TestTrainOverABadLine(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	t.Parallel()
	c := newCrew(t, 2)
	settings := []string{"--method", "layer-wise", "--rounds", "16", "--encoder", "raw", "--hidden", "8"}
	whole := filepath.Join(c.dir, "whole")
	must(t, slices.Concat([]string{"train", "--shards", c.parts, "--transport", "memory", "-q", "-o", whole},
		settings)...)
	for _, carrier := range []string{"quic", "tcp"} {
		t.Run(carrier, func(t *testing.T) {
			t.Parallel()
			line := &badLine{delay: 75 * time.Millisecond, rate: 5e6 / 8, loss: 0.02}
			outs, took := line.join(t, c, carrier, settings)
			for r, out := range outs {
				if !bytes.Equal(contents(t, filepath.Join(out, "model.safetensors")),
					contents(t, filepath.Join(whole, "model.safetensors"))) {
					t.Errorf("peer %d made another model than a run in memory", r)
				}
			}
			t.Logf("%v in all; %d packets were lost", took.Round(time.Millisecond), line.lost.Load())
			if line.lost.Load() == 0 {
				t.Error("the line lost nothing")
			}
		})
	}
}

// join runs the two peers of c, one at each end of the line, and returns what they wrote and how
// long both took together.
func (l *badLine) join(t *testing.T, c *crew, carrier string, settings []string) (outs []string, took time.Duration) {
	t.Helper()
	spaces := l.open(t)
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	must(t, slices.Concat([]string{"plan", "-o", plan, "--carrier", carrier}, settings,
		[]string{c.members[0] + "@10.9.0.1", c.members[1] + "@10.9.0.2"})...)
	var all sync.WaitGroup
	begun := time.Now()
	for r := range 2 {
		outs = append(outs, filepath.Join(t.TempDir(), "out"))
		p := process(t, c.join(r, plan, "-o", outs[r], "--wait", "1m")...)
		in := exec.CommandContext(t.Context(), "ip", slices.Concat([]string{"netns", "exec", spaces[r]}, p.Args)...)
		in.Env = p.Env
		all.Go(func() {
			if text, err := in.CombinedOutput(); err != nil {
				t.Errorf("peer %d: %v\n%s", r, err, text)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return outs, time.Since(begun)
}

// TestTripsOverALine: over a line of packets a run waits for its trips times the latency. The carriers add less than as
// much again, for example to widen their windows; a machine under load may take longer.
func TestTripsOverALine(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	t.Parallel()
	c := newCrew(t, 2)
	const delay = 100 * time.Millisecond
	for _, carrier := range []string{"quic", "tcp"} {
		t.Run(carrier, func(t *testing.T) {
			t.Parallel()
			line := &badLine{delay: delay, rate: 20e6 / 8}
			outs, took := line.join(t, c, carrier, nil)
			for r, out := range outs {
				f := figures(t, filepath.Join(out, "result.json"))
				// A peer may start one message late, end one early, and send one that only the other waits for.
				least := time.Duration(f.Trips-3) * delay
				if waited := time.Duration(f.Waited * float64(time.Second)); f.Trips < 10 || waited < least ||
					waited > 3*least {
					t.Errorf("peer %d: %d messages one after another took %v, must be %v to %v", r, f.Trips, waited,
						least, 3*least)
				}
				t.Logf("peer %d: %d messages one after another, %.2f s waiting for them, %.2f s in the "+
					"session, %v in all", r, f.Trips, f.Waited, f.Seconds, took.Round(time.Millisecond))
			}
		})
	}
}
