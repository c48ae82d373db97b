package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

func wantPeerError(t *testing.T, err error, rank int, text string) {
	t.Helper()
	e, ok := errors.AsType[*comm.PeerError](err)
	if !ok || e.Rank != rank || e.Name == "" || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, must be a *comm.PeerError of peer %d with its name and %q", err, rank, text)
	}
}

// A frame too large to send is refused before a byte of it is sent; one announced by a peer, before memory is allocated
// for it.
func TestOversizedFrame(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 2)
		ctx := within(t, patience)
		if err := ss[0].Send(ctx, 1, nil, make([]byte, maxFrame+1)); err == nil ||
			!strings.Contains(err.Error(), "(got 67108865)") {
			t.Errorf("oversized Send: %v", err)
		}
		frames(t, ss[0], ss[1]) // the link goes on

		head := binary.LittleEndian.AppendUint32(nil, maxFrame+1)
		if _, err := ss[0].links[1].stream.Write(head); err != nil {
			t.Fatal(err)
		}
		_, err := ss[1].Recv(ctx, 0)
		wantPeerError(t, err, 0, "at most 67108864 bytes (got 67108865)")
		if err := ss[1].Send(ctx, 0, nil, nil); err != nil {
			t.Errorf("the link must still take why the run ends (got %v)", err)
		}
		_, err = ss[1].Recv(ctx, 0)
		wantPeerError(t, err, 0, "got 67108865")
	})
}

// A length costs its receiver no memory until bytes come.
func TestLyingLength(t *testing.T) {
	for _, transport := range transports { // one after the other: allocation is counted for the whole process
		ss := sessions(t, transport, 2)
		lie := append(binary.LittleEndian.AppendUint32(nil, maxFrame), "ten bytes."...)
		if _, err := ss[0].links[1].stream.Write(lie); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ss[1].Recv(within(t, 200*time.Millisecond), 0)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Recv of a part of a frame: %v", err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 3<<20 {
			t.Errorf("a lie about 64 MiB made the receiver allocate %d bytes", got)
		}
	}
}

// A Recv that is cancelled inside a frame loses nothing.
func TestCancelledInsideFrame(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 2)
		want := bytes.Repeat([]byte("heddle"), 1000)
		wire := append(binary.LittleEndian.AppendUint32(nil, uint32(len(want))), want...)
		for _, cut := range []int{2, 4, 100} {
			rest := wire
			for _, part := range [][]byte{rest[:cut], rest[cut:]} {
				if _, err := ss[0].links[1].stream.Write(part); err != nil {
					t.Fatal(err)
				}
				if len(part) == cut {
					_, err := ss[1].Recv(within(t, 50*time.Millisecond), 0)
					wantPeerError(t, err, 0, "deadline")
				}
			}
			if got, err := ss[1].Recv(within(t, patience), 0); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("cut after %d bytes: %d bytes, %v; must be the whole frame", cut, len(got), err)
			}
		}
		frames(t, ss[0], ss[1])
	})
}

// A frame that was sent in part and then cancelled ends the link: what would follow it would be
// read as its rest.
func TestCancelledInsideSend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 2)
		err := ss[0].Send(within(t, 2*time.Second), 1, nil, make([]byte, 32<<20))
		wantPeerError(t, err, 1, "deadline")
		wantPeerError(t, ss[0].Send(within(t, patience), 1, nil, nil), 1, "deadline")
		_, err = ss[1].Recv(within(t, patience), 0)
		wantPeerError(t, err, 0, "recv")
	})
}

// killedChild is this test binary as a peer that sends half a frame and waits to be killed.
const killedChild = "HEDDLE_P2P_KILLED_CHILD"

// A peer killed in the middle of a frame (kill -9) fails the waiting Recv with its name: at once over TCP, by the
// caller's deadline or the idle time-out over QUIC, since a dead process sends nothing there.
func TestKilledMidFrame(t *testing.T) {
	if transport := os.Getenv(killedChild); transport != "" {
		playKilled(transport)
		return
	}
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		h := listen(t, transport)
		child := exec.Command(os.Args[0], "-test.run=^TestKilledMidFrame$")
		child.Env = append(os.Environ(), killedChild+"="+transport)
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
		defer func() { child.Process.Kill(); child.Wait() }()
		id := make([]byte, 52)
		if _, err := io.ReadFull(out, id); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, h.Addrs()[0]+"\n"); err != nil {
			t.Fatal(err)
		}
		roster := identity.Roster{Members: []identity.Member{{Name: "here", ID: h.ID(), Addrs: h.Addrs()},
			{Name: "there", ID: string(id)}}}
		s, err := h.Join(within(t, patience), roster, Hello{})
		if err != nil {
			t.Fatal(err)
		}
		wait := patience
		if transport == "quic" {
			wait = 2 * time.Second
		}
		ctx := within(t, wait)
		go func() {
			io.ReadFull(out, id[:1]) // half a frame is on its way
			child.Process.Kill()
		}()
		_, err = s.Recv(ctx, 1)
		wantPeerError(t, err, 1, "there")
		s.links[1].stream.Reset() // no goodbye to the dead
		if transport == "tcp" && ctx.Err() != nil {
			t.Errorf("over TCP the loss was noticed by the deadline only: %v", err)
		}
	})
}

func playKilled(transport string) {
	id, _ := identity.New()
	os.Stdout.WriteString(id.PeerID())
	var addr [256]byte
	n, _ := os.Stdin.Read(addr[:])
	at := strings.TrimSpace(string(addr[:n]))
	h, err := Listen(Config{Identity: id, Transport: transport})
	if err != nil {
		panic(err)
	}
	_, there, _ := strings.Cut(at, "/p2p/")
	roster := identity.Roster{Members: []identity.Member{{Name: "here", ID: there, Addrs: []string{at}},
		{Name: "there", ID: id.PeerID()}}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := h.Join(ctx, roster, Hello{})
	if err != nil {
		panic(err)
	}
	s.links[0].stream.Write(append(binary.LittleEndian.AppendUint32(nil, 1<<20), make([]byte, 1<<19)...))
	os.Stdout.WriteString("!")
	<-ctx.Done()
}

// A member that gives up because it lost a peer reports that, and the others blame the lost one.
func TestLossIsBlamedOnTheLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 3)
		got := make(chan error, 1)
		go func() {
			_, err := ss[1].Recv(within(t, patience), 0)
			got <- err
		}()
		ss[2].host.node.Network().ClosePeer(ss[0].host.node.ID())
		_, err := ss[0].Recv(within(t, patience), 2)
		wantPeerError(t, err, 2, "site-2")
		ss[0].Close()
		wantPeerError(t, <-got, 2, "as peer 0 (site-0) reports")
	})
}

// What libp2p's connections carry is counted below its encryption, and exceeds payloads of a
// megabyte by 3 % at most.
func TestWireBytes(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 2)
		const payload, count = 1 << 20, 16
		ctx := within(t, patience)
		for _, way := range [][2]int{{0, 1}, {1, 0}} {
			a, b := ss[way[0]], ss[way[1]]
			sent0, _ := a.WireBytes()
			_, recv0 := b.WireBytes()
			go func() {
				for range count {
					a.Send(ctx, b.Rank(), nil, make([]byte, payload))
				}
			}()
			for range count {
				if _, err := b.Recv(ctx, a.Rank()); err != nil {
					t.Fatal(err)
				}
			}
			sent, _ := a.WireBytes()
			_, recv := b.WireBytes()
			t.Logf("%d → %d: sent %+.2f %%, received %+.2f %% above the payload", way[0], way[1],
				100*(float64(sent-sent0)/(payload*count)-1), 100*(float64(recv-recv0)/(payload*count)-1))
			for door, n := range map[string]int64{"sent": sent - sent0, "received": recv - recv0} {
				if n < payload*count || float64(n) > 1.03*payload*count {
					t.Errorf("%s %d bytes for a payload of %d", door, n, payload*count)
				}
			}
		}
	})
}

// What a peer sent before its goodbye is received when its connection, and with it the stream's
// scope, is gone.
func TestFrameAfterTheConnection(t *testing.T) {
	s := &bytesStream{in: bytes.NewReader([]byte{4, 0, 0, 0, 'w', 'a', 'r', 'p'})}
	l := newLink(1, "site-1", s, new(comm.SpareFrames))
	l.drain()
	s.scope.closed = true
	if got, _, err := l.read(t.Context(), 100); err != nil || string(got) != "warp" {
		t.Errorf("%q, %v", got, err)
	}
	if _, _, err := l.read(t.Context(), 100); !errors.Is(err, errLeft) {
		t.Errorf("%v, must say that it has left", err)
	}
}

// Memory for a frame is reserved in the host's limits before it is allocated. A peer that announces more than there is
// space for is named, and the frame is not allocated.
func TestFrameIsReserved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 2)
		l := ss[1].links[0]
		held := func() int64 { return l.stream.Scope().Stat().Memory }
		frames(t, ss[0], ss[1])
		if n := held(); n != 0 {
			t.Errorf("%d bytes are reserved when no frame comes", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go ss[0].Send(ctx, 1, make([]byte, 8<<20), nil)
		// until there is no space for more
		for l.stream.Scope().ReserveMemory(1<<20, network.ReservationPriorityAlways) == nil {
		}
		l.stream.Scope().ReleaseMemory(2 << 20)
		_, err := ss[1].Recv(within(t, patience), 0)
		fault, ok := errors.AsType[*comm.PeerError](err)
		if !ok || fault.Rank != 0 || !errors.Is(err, network.ErrResourceLimitExceeded) || cap(l.body) > 2<<20 {
			t.Errorf("%v with %d bytes taken, must say that there is no room for the frame of peer 0", err, cap(l.body))
		}
	})
}
