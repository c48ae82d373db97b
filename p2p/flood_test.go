package p2p

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	"golang.org/x/time/rate"
)

// floodChild is this test binary as many strangers: valid libp2p peers that are in no roster.
const floodChild = "HEDDLE_P2P_FLOOD_CHILD"

// playFlood tries "RATE TRANSPORT ADDRESS" until standard input ends, with an identity that is new each time, and says
// how many attempts it made.
func playFlood(what string) {
	var perSecond int
	var transport, at string
	fmt.Sscan(what, &perSecond, &transport, &at)
	_, victim, _ := strings.Cut(at, "/p2p/")
	ctx, stop := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, os.Stdin); stop() }()
	pace := rate.NewLimiter(rate.Limit(perSecond), 10)
	var tried atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			id, _ := NewIdentity()
			h, err := Listen(Config{Identity: id, Transport: transport})
			if err != nil {
				panic(err)
			}
			defer h.Close()
			to, _ := Roster{Members: []Member{{Name: "victim", ID: victim, Addrs: []string{strings.Split(at, "/p2p/")[0]}}}}.parse(1)
			h.gate.admit(to)
			for pace.Wait(ctx) == nil {
				attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
				if c, err := h.dialAny(attempt, to[0].id, []ma.Multiaddr{to[0].addrs[0]}); err == nil {
					c.Close()
				}
				cancel()
				tried.Add(1)
			}
		})
	}
	all.Wait()
	fmt.Println(tried.Load())
}

// flood lets strangers try to connect to h until stop is called, which returns how many attempts they made.
func flood(t testing.TB, h *Host, transport string, perSecond int) (stop func() int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestStrangersFlood$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", floodChild, perSecond, transport, h.Addrs()[0]))
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	return func() (tried int) {
		in.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, _ := fmt.Sscan(lines.Text(), &tried); n == 1 {
				break
			}
		}
		child.Wait()
		return tried
	}
}

// heap is what the program holds, after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// Hundreds of strangers a second take neither memory nor the session, and none gets a connection.
func TestStrangersFlood(t *testing.T) {
	if what := os.Getenv(floodChild); what != "" {
		playFlood(what)
		return
	}
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	for _, transport := range transports { // one after the other: memory is the whole process's
		ss := sessions(t, transport, 2)
		before := heap()
		stop := flood(t, ss[1].host, transport, 300)
		ctx := within(t, 60*time.Second)
		most := int64(0)
		for begun := time.Now(); time.Since(begun) < time.Second; {
			sent := make(chan error, 1)
			go func() { sent <- ss[0].Send(ctx, 1, make([]byte, 1<<20), nil) }()
			f, err := ss[1].Recv(ctx, 0)
			if err := errors.Join(err, <-sent); err != nil {
				t.Fatal(err)
			}
			ss[1].Free(f)
			most = max(most, heap()-before)
			for _, c := range ss[1].host.net.Conns() {
				if c.RemotePeer() != ss[0].host.net.LocalPeer() {
					t.Fatalf("a stranger has the connection %v", c)
				}
			}
		}
		if tried := stop(); tried < 20 {
			t.Errorf("%s: only %d attempts: nothing was shown", transport, tried)
		} else {
			t.Logf("%s: %d attempts, %.1f MiB more memory at most", transport, tried, float64(most)/(1<<20))
		}
		if most > 64<<20 {
			t.Errorf("%s: strangers cost %d bytes", transport, most)
		}
	}
}

// BenchmarkUnderFlood sends through a session while strangers try to connect a thousand times a second, in turn with the
// same without them. cpu-s is the processor time that a second of strangers costs the program, its receiver and sender.
//
//	go test ./p2p -run - -bench UnderFlood -benchtime 3x
func BenchmarkUnderFlood(b *testing.B) {
	for _, transport := range transports {
		b.Run(transport, func(b *testing.B) {
			ss := sessions(b, transport, 2)
			ctx := context.Background()
			frame := make([]byte, 1<<20)
			second := func() float64 {
				n, begun := 0, time.Now()
				for ; time.Since(begun) < 2*time.Second; n++ {
					go ss[0].Send(ctx, 1, frame, nil)
					f, err := ss[1].Recv(ctx, 0)
					if err != nil {
						b.Fatal(err)
					}
					ss[1].Free(f)
				}
				return float64(n) * float64(len(frame)) / time.Since(begun).Seconds() / 1e6
			}
			second()
			var quiet, busy, tried, idle float64
			before := heap()
			var most int64
			for range b.N {
				quiet += second()
				stop := flood(b, ss[1].host, transport, 1000)
				begun := time.Now()
				busy += second()
				cpu := processTime()
				time.Sleep(time.Second) // strangers alone
				idle += (processTime() - cpu).Seconds()
				most = max(most, heap()-before)
				tried += float64(stop()) / time.Since(begun).Seconds()
			}
			n := float64(b.N)
			b.ReportMetric(quiet/n, "quiet-MB/s")
			b.ReportMetric(busy/n, "flooded-MB/s")
			b.ReportMetric(tried/n, "attempts/s")
			b.ReportMetric(idle/n, "cpu-s")
			b.ReportMetric(float64(most)/(1<<20), "MiB")
		})
	}
}
