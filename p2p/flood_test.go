package p2p

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"
	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// floodChild is this test binary as many strangers: valid libp2p peers that are in no roster.
const floodChild = "HEDDLE_P2P_FLOOD_CHILD"

// playFlood tries "RATE TRANSPORT ADDRESS FROM" until standard input ends, as 64 strangers at the network address FROM.
// It reports when they have made a few attempts, and at the end how many they made and how many of them gave a
// connection. FROM may be "initials@ADDRESS", or "initials@" alone: see playInitials.
func playFlood(what string) {
	var perSecond int
	var transport, at, from string
	fmt.Sscan(what, &perSecond, &transport, &at, &from)
	to, err := peer.AddrInfoFromString(at)
	if err != nil {
		panic(err)
	}
	if source, only := strings.CutPrefix(from, "initials@"); only {
		udp, _, err := quicreuse.FromQuicMultiaddr(to.Addrs[0])
		if err != nil {
			panic(err)
		}
		playInitials(perSecond, udp, net.ParseIP(source))
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, os.Stdin); stop() }()
	pace := rate.NewLimiter(rate.Limit(perSecond), 10)
	var tried, got atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			dial, end := stranger(transport, net.ParseIP(from))
			defer end()
			for pace.Wait(ctx) == nil {
				attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
				if c, err := dial(attempt, to.Addrs[0], to.ID); err == nil {
					if s, err := c.OpenStream(attempt); err == nil { // in TLS 1.3 a dialler is refused late
						s.SetDeadline(time.Now().Add(time.Second))
						if mss.SelectProtoOrFail(sessionProtocol, s) == nil {
							got.Add(1)
						}
					}
					c.Close()
				}
				cancel()
				if tried.Add(1) == enough {
					fmt.Println("begun")
				}
			}
		})
	}
	all.Wait()
	fmt.Println(tried.Load(), got.Load())
}

// stranger is a libp2p peer with another identity that dials from a network address of its choice.
func stranger(carrier string,
	from net.IP) (dial func(context.Context, ma.Multiaddr, peer.ID) (transport.CapableConn, error), end func()) {
	id, err := identity.New()
	if err != nil {
		panic(err)
	}
	if carrier == "quic" {
		udp, err := quicreuse.NewConnManager(quic.StatelessResetKey{}, quic.TokenGeneratorKey{},
			quicreuse.OverrideListenUDP(
				func(network string, _ *net.UDPAddr) (net.PacketConn, error) {
					return net.ListenUDP(network, &net.UDPAddr{IP: from})
				}))
		if err != nil {
			panic(err)
		}
		t, err := libp2pquic.NewTransport(id.Key(), udp, nil, nil, &network.NullResourceManager{})
		if err != nil {
			panic(err)
		}
		return t.Dial, func() { udp.Close() }
	}
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: yamux.DefaultTransport}}
	secure, err := libp2ptls.New(libp2ptls.ID, id.Key(), muxers)
	if err != nil {
		panic(err)
	}
	up, err := upgrader.New([]sec.SecureTransport{secure}, muxers, nil, &network.NullResourceManager{}, nil)
	if err != nil {
		panic(err)
	}
	t, err := tcp.NewTCPTransport(up, &network.NullResourceManager{}, nil, tcp.DisableReuseport(),
		tcp.WithDialerForAddr(
			func(ma.Multiaddr) (tcp.ContextDialer, error) {
				return &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}, nil
			}))
	if err != nil {
		panic(err)
	}
	return t.Dial, func() {}
}

const enough = 20 // attempts, to show something

// flood lets strangers at the network address from try to connect to h until stop is called, which
// returns how many attempts they made and how many of them were served. begun is closed when they
// have made enough.
func flood(t testing.TB, h *Host, transport, from string,
	perSecond int) (begun chan struct{}, stop func() (tried, got int)) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestStrangersFlood$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s %s", floodChild, perSecond, transport, h.Addrs()[0],
		from))
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
	begun, said := make(chan struct{}), make(chan [2]int, 1)
	go func() {
		var end [2]int
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "begun" {
				close(begun)
			} else if n, _ := fmt.Sscan(lines.Text(), &end[0], &end[1]); n == 2 {
				break
			}
		}
		said <- end
	}()
	return begun, func() (tried, got int) {
		in.Close()
		end := <-said
		child.Wait()
		return end[0], end[1]
	}
}

// heap is the memory of the program, after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// Hundreds of strangers a second neither take memory nor break the session, and none gets a connection.
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
		enoughCame, stop := flood(t, ss[1].host, transport, "127.0.0.1", 300)
		ctx := within(t, patience)
		most := int64(0)
		came := false
		for begun := time.Now(); ctx.Err() == nil && (!came || time.Since(begun) < time.Second); {
			select {
			case <-enoughCame:
				came = true
			default:
			}
			sent := make(chan error, 1)
			go func() { sent <- ss[0].Send(ctx, 1, make([]byte, 1<<20), nil) }()
			f, err := ss[1].Recv(ctx, 0)
			if err := errors.Join(err, <-sent); err != nil {
				t.Fatal(err)
			}
			ss[1].Free(f)
			most = max(most, heap()-before)
			for _, c := range ss[1].host.node.Network().Conns() {
				if c.RemotePeer() != ss[0].host.node.ID() {
					t.Fatalf("a stranger has the connection %v", c)
				}
			}
		}
		if tried, got := stop(); tried < enough || got > 0 {
			t.Errorf("%s: %d attempts, of which %d were served: must be at least %d, and none", transport, tried, got,
				enough)
		} else {
			t.Logf("%s: %d attempts, %.1f MiB more memory at most", transport, tried, float64(most)/(1<<20))
		}
		if most > 64<<20 {
			t.Errorf("%s: strangers cost %d bytes", transport, most)
		}
	}
}
