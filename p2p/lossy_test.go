package p2p

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/rng"
)

// badLine is a UDP proxy in front of one host: packets are late, limited in rate and in part lost, both ways.
type badLine struct {
	delay time.Duration
	rate  float64 // bytes a second each way
	loss  float64
}

const lineQueue = 256 << 10 // bytes that wait for their turn; what comes then is lost, too

// open puts the line in front of the host at to and returns the address to dial.
func (l badLine) open(t *testing.T, to *net.UDPAddr) *net.UDPAddr {
	t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	backs := map[string]*net.UDPConn{}
	t.Cleanup(func() {
		front.Close()
		mu.Lock()
		for _, b := range backs {
			b.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	all.Go(func() {
		in := l.way(1)
		b := make([]byte, 1<<16)
		for {
			n, from, err := front.ReadFromUDP(b)
			if err != nil {
				return
			}
			mu.Lock()
			back := backs[from.String()]
			if back == nil {
				if back, err = net.DialUDP("udp4", nil, to); err != nil {
					mu.Unlock()
					return
				}
				backs[from.String()] = back
				all.Go(func() {
					out := l.way(2)
					b := make([]byte, 1<<16)
					for {
						n, err := back.Read(b)
						if errors.Is(err, net.ErrClosed) {
							return
						}
						if err == nil {
							out(b[:n], func(p []byte) { front.WriteToUDP(p, from) })
						}
					}
				})
			}
			mu.Unlock()
			in(b[:n], func(p []byte) { back.Write(p) })
		}
	})
	return front.LocalAddr().(*net.UDPAddr)
}

// way is one direction of the line.
func (l badLine) way(seed uint64) func(packet []byte, send func([]byte)) {
	key, count, idle := rng.New(seed).FoldString("line"), uint64(0), time.Now()
	return func(packet []byte, send func([]byte)) {
		now := time.Now()
		if idle.Before(now) {
			idle = now
		}
		count++
		if key.Float64(count) < l.loss || idle.Sub(now).Seconds()*l.rate > lineQueue {
			return
		}
		idle = idle.Add(time.Duration(float64(len(packet)) / l.rate * float64(time.Second)))
		p := append([]byte{}, packet...)
		time.AfterFunc(idle.Sub(now)+l.delay, func() { send(p) })
	}
}

// Two peers meet and add up vectors over a line of 150 ms there and back, 5 Mbit/s, that loses 2 %
// of its packets.
func TestBadLine(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a slow line")
	}
	t.Parallel()
	hs, roster := hosts(t, "quic", 2)
	var port int
	if _, err := fmt.Sscanf(hs[1].Addrs()[0], "/ip4/127.0.0.1/udp/%d/", &port); err != nil {
		t.Fatal(err)
	}
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	front := badLine{75 * time.Millisecond, 5e6 / 8, 0.02}.open(t, to)
	roster.Members[1].Addrs = []string{fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", front.Port)}
	roster.Members[0].Addrs = nil // it is the one that dials
	ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	for r, s := range ss {
		all.Go(func() {
			g := comm.NewGroup(s, r, 2)
			defer g.Close()
			for round := range 4 {
				x := make([]float32, 10_000)
				for i := range x {
					x[i] = float32(i * (r + 1) * (round + 1))
				}
				if err := g.AllReduce(ctx, comm.Reduce, x); err != nil {
					t.Error(err)
					return
				}
				for i := range x {
					if x[i] != float32(3*i*(round+1)) {
						t.Errorf("round %d: x[%d] is %v", round, i, x[i])
						return
					}
				}
			}
			if err := g.Barrier(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
