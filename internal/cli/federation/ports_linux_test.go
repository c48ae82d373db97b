package federation

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"golang.org/x/sys/unix"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// listener is a node at an address.
func listener(t *testing.T, at string) *node.Node {
	t.Helper()
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.Listen(node.Config{Identity: id, Listen: []string{at}, Transport: "quic", MaxPeers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// told returns what a doctor prints in do.
func told(do func(d *doctor)) string {
	var out strings.Builder
	do(&doctor{w: &out})
	return out.String()
}

// printed fails the test unless text has all of want.
func printed(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the doctor has not printed %q:\n%s", w, text)
		}
	}
}

// namespaces joins two network namespaces, 10.77.0.1 and 10.77.0.2, and returns what runs a command in one, and what
// calls a function there.
func namespaces(t *testing.T, pair int) (run func(side int, line string), in func(side int, do func())) {
	t.Helper()
	name := func(side int) string { return fmt.Sprintf("hddoc%d.%d.%d", os.Getpid(), pair, side) }
	if out, err := exec.Command("ip", "netns", "add", name(1)).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED, not shown here: network namespaces are not allowed: %v %s", err, out)
	}
	run = func(side int, line string) {
		t.Helper()
		args := append([]string{"netns", "exec", name(side)}, strings.Fields(line)...)
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
	}
	exec.Command("ip", "netns", "add", name(2)).Run()
	t.Cleanup(func() {
		exec.Command("ip", "netns", "del", name(1)).Run()
		exec.Command("ip", "netns", "del", name(2)).Run()
	})
	run(1, "ip link add v1 type veth peer name v2 netns "+name(2))
	for side := 1; side <= 2; side++ {
		run(side, fmt.Sprintf("ip addr add 10.77.0.%d/24 dev v%d", side, side))
		run(side, fmt.Sprintf("ip link set v%d up", side))
	}
	in = func(side int, do func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // the thread ends with the goroutine
			f, err := os.Open("/run/netns/" + name(side))
			if err == nil {
				err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
				f.Close()
			}
			if err != nil {
				t.Error(err)
				return
			}
			do()
		}()
		<-done
	}
	return run, in
}

// TestPackets: blocked UDP and small packets on the way, made on purpose, are named, and what to do.
func TestPackets(t *testing.T) {
	t.Parallel()
	for pair, c := range []struct {
		name string
		port int
		side int // where the lines run
		way  []string
		want []string
	}{
		{"whole", 4001, 1, nil, []string{"packets  up to 1452 bytes reach south"}},
		{"no program", 4002, 1, nil, []string{"UDP reaches 10.77.0.2:4002, but no program listens there",
			"start join or doctor there"}},
		// silently drops what is longer
		{"short there", 4001, 2, []string{"ip link set v2 mtu 1400"},
			[]string{"NOTE  datagrams of more than 1372 bytes do not reach south whole"}},
		{"short here", 4001, 1, []string{"ip link set v1 mtu 1220"},
			[]string{"FAULT datagrams of 1200 bytes reach south only in pieces", "raise the MTU", "--carrier tcp"}},
		{"blocked", 4001, 2, []string{"nft add table inet f",
			"nft add chain inet f in { type filter hook input priority 0; }",
			"nft add rule inet f in meta l4proto udp drop"},
			[]string{"NOTE  no datagram to south is answered", "a firewall drops UDP to 10.77.0.2:4001"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most wait for answers that do not come
			if _, err := exec.LookPath("nft"); err != nil && c.name == "blocked" {
				t.Skip("SKIPPED, not shown here: blocked UDP, without nft")
			}
			run, in := namespaces(t, pair)
			in(2, func() { listener(t, "/ip4/10.77.0.2/udp/4001/quic-v1") })
			at := func(port int) *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(10, 77, 0, 2), Port: port} }
			in(1, func() { // a new link carries nothing at first
				for begun, reached := time.Now(), 0; reached == 0 && time.Since(begun) < 10*time.Second; {
					reached, _ = askQUIC(t.Context(), at(4001), true)
				}
			})
			for _, line := range c.way {
				run(c.side, line)
			}
			one := asked{name: "south", at: at(c.port)}
			in(1, func() {
				if one.whole, one.err = askQUIC(t.Context(), one.at, true); one.whole == 0 && one.err == nil {
					one.cut, one.err = askQUIC(t.Context(), one.at, false)
				}
				if one.cut > 0 { // as askAll does: on a slow machine the first answers may come too late
					one.whole, one.err = askQUIC(t.Context(), one.at, true)
				}
			})
			printed(t, told(func(d *doctor) { d.packets([]*asked{&one}) }), c.want...)
		})
	}
}

// TestDNSFault: a server that knows no name, and one that does not answer.
func TestDNSFault(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for b := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			b[2], b[3] = b[2]|0x80, 3 // an answer: no such name
			server.WriteTo(b[:n], from)
		}
	}()
	dns := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	text := told(func(d *doctor) {
		d.names(t.Context(), dns, []identity.Member{{Name: "south",
			Addrs: []string{"/dns4/south.example/udp/4001/quic-v1",
				"/ip4/127.0.0.1/udp/4001/quic-v1"}}}, []string{"/dns/post.example/udp/4001/quic-v1"})
	})
	printed(t, text, "dns      FAULT south: lookup south.example", "no such host", "resolvectl query south.example",
		"FAULT relay: lookup post.example")
	if n := strings.Count(text, "FAULT"); n != 2 {
		t.Errorf("%d faults, must be 2:\n%s", n, text)
	}
}

// TestAnnounced: an address that no interface has.
func TestAnnounced(t *testing.T) {
	text := told(func(d *doctor) {
		d.announced([]string{"/ip4/203.0.113.7/udp/4001/quic-v1", "/ip4/127.0.0.1/tcp/4001", "/dns4/a.example/tcp/1"})
	})
	printed(t, text, "NOTE  the others dial /ip4/203.0.113.7/udp/4001/quic-v1, and no interface", "router")
	if n := strings.Count(text, "NOTE"); n != 1 {
		t.Errorf("%d notes, must be 1:\n%s", n, text)
	}
}

// TestOpenFiles: a process with few open files is warned of it.
func TestOpenFiles(t *testing.T) {
	const child = "HEDDLE_TEST_FILES"
	if os.Getenv(child) != "" {
		fmt.Print(told(func(d *doctor) { d.files(3) }))
		return
	}
	c := exec.Command("sh", "-c", "ulimit -n 100; exec "+os.Args[0]+" -test.run '^TestOpenFiles$'")
	c.Env = append(os.Environ(), child+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	printed(t, string(out), "files    FAULT 100 open files are allowed, and a run of 3 members needs up to 304",
		"LimitNOFILE")
	printed(t, told(func(d *doctor) { d.files(3) }), "open files are allowed")
}

// TestSmallDisk: a disk with less space than two checkpoints may need.
func TestSmallDisk(t *testing.T) {
	at := t.TempDir()
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED, not shown here: a file system cannot be mounted: %v", err)
	}
	defer syscall.Unmount(at, 0)
	text := told(func(d *doctor) { d.state = at; d.disk() })
	printed(t, text, "disk     FAULT ", "free some space")
}

// TestSkewedClock: a member whose clock is two minutes ahead, over a real connection, which also reports how it sees
// this node.
func TestSkewedClock(t *testing.T) {
	t.Parallel()
	here, there := listener(t, "/ip4/127.0.0.1/udp/0/quic-v1"), listener(t, "/ip4/127.0.0.1/udp/0/quic-v1")
	there.SetStreamHandler("/heddle/probe/1", func(s network.Stream) {
		defer s.Close()
		io.ReadFull(s, make([]byte, 8))
		ahead := time.Now().Add(2 * time.Minute).UnixNano()
		s.Write(binary.LittleEndian.AppendUint64(nil, uint64(ahead)))
		n, _ := io.Copy(io.Discard, s)
		s.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	})
	roster := identity.Roster{Members: []identity.Member{
		{Name: "here", ID: here.ID().String(), Addrs: here.FullAddrs()},
		{Name: "there", ID: there.ID().String(), Addrs: there.FullAddrs()}}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	var other sync.WaitGroup
	other.Go(func() { there.Survey(ctx, roster) }) // or the survey waits until the other has looked, too
	defer other.Wait()
	defer cancel()
	found, err := here.Survey(ctx, roster)
	if err != nil {
		t.Fatal(err)
	}
	text := told(func(d *doctor) { d.sightings(found) })
	printed(t, text, "clock    FAULT 2m0s behind the others", "timedatectl", "nat      none: the others see 127.0.0.1")
}

// TestNAT: the kind of router, by how the others see this machine.
func TestNAT(t *testing.T) {
	seen := func(at ...string) string {
		var found []node.Sighting
		for k, a := range at {
			found = append(found, node.Sighting{Via: "quic", Address: fmt.Sprint(k), Seen: "/ip4/" + a + "/quic-v1"})
		}
		return told(func(d *doctor) { d.nat(found) })
	}
	printed(t, seen("203.0.113.7/udp/4001", "203.0.113.7/udp/4001"),
		"a router that keeps one port: all see 203.0.113.7:4001")
	printed(t, seen("203.0.113.7/udp/4001", "203.0.113.7/udp/4099"), "NOTE  a router that takes another port to each",
		"203.0.113.7:4001 and 203.0.113.7:4099", "heddle relay")
	printed(t, seen("203.0.113.7/udp/4001"), "a router, seen as 203.0.113.7:4001; its kind shows once")
	if text := seen(); text != "" {
		t.Errorf("of nobody: %q", text)
	}
}
