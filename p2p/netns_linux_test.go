package p2p

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// These tests run peers as separate processes in network namespaces. They need root and the program ip; tests behind
// routers that translate addresses also need nft. A skipped test reports what it lacks.

const nsChild = "HEDDLE_P2P_NAMESPACE_CHILD"

// nsPeer is the input of a process in a namespace.
type nsPeer struct {
	Key, Transport string
	Listen, Relays []string
	Roster         identity.Roster
	Relay, LAN     bool
	PeerTimeout    time.Duration
}

// TestMain's process is the child if its environment asks for it.
func init() {
	if text := os.Getenv(nsChild); text != "" {
		var p nsPeer
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic(err)
		}
		p.run()
		os.Exit(0)
	}
}

// run obeys the lines that come on standard input, and answers each with one line.
func (p nsPeer) run() {
	fail := func(err error) {
		if err != nil {
			fmt.Printf("error %v\n", err)
			os.Exit(1)
		}
	}
	id, err := identity.Load(p.Key, nil)
	fail(err)
	cfg := Config{Identity: id, Transport: p.Transport, Listen: p.Listen, Relays: p.Relays, LAN: p.LAN,
		PeerTimeout: p.PeerTimeout}
	if p.Relay {
		r, err := node.ListenRelay(node.Config(cfg), p.Roster, node.RelayLimits{})
		fail(err)
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		r.Close()
		return
	}
	h, err := Listen(cfg)
	fail(err)
	fmt.Println("ready")
	var s *Mesh
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		word, rest, _ := strings.Cut(in.Text(), " ")
		n, _ := strconv.Atoi(rest)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		switch word {
		case "join":
			if s, err = h.Join(ctx, p.Roster, Hello{Generation: uint64(n)}); err == nil {
				fmt.Printf("joined %v %v\n", via(s, 1-s.Rank()), time.Since(begun).Round(time.Millisecond))
			}
		case "swap":
			sent := make(chan error, 1)
			go func() { sent <- s.Send(ctx, n, make([]byte, 4<<20), nil) }()
			_, err = s.Recv(ctx, n)
			if err = errors.Join(err, <-sent); err == nil {
				fmt.Printf("swapped %v\n", time.Since(begun).Round(time.Millisecond))
			}
		case "wait":
			_, lost := s.Recv(ctx, n)
			fmt.Printf("lost %v %v\n", time.Since(begun).Round(10*time.Millisecond), lost)
		case "close":
			err = s.Close()
			fmt.Println("closed")
		}
		cancel()
		if err != nil {
			fmt.Printf("error %v\n", err)
		}
	}
	h.Close()
}

var worlds atomic.Int64 // so far; tests that run side by side have separate namespaces

// world is a set of namespaces that goes when the test ends.
type world struct {
	t      *testing.T
	prefix string
}

// newWorld makes no namespace yet. The test needs ip and the given programs.
func newWorld(t *testing.T, programs ...string) *world {
	t.Helper()
	for _, program := range append(programs, "ip") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED, not shown here: the program %s is not installed", program)
		}
	}
	w := &world{t, fmt.Sprintf("hd%d.%d", os.Getpid()%100000, worlds.Add(1))}
	if out, err := exec.Command("ip", "netns", "add", w.prefix+"probe").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED, not shown here: network namespaces are not allowed: %s", out)
	}
	exec.Command("ip", "netns", "del", w.prefix+"probe").Run()
	return w
}

// do runs a command line in a namespace.
func (w *world) do(ns, line string) {
	w.t.Helper()
	args := append([]string{"netns", "exec", w.prefix + ns}, strings.Fields(line)...)
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %s: %v %s", ns, line, err, out)
	}
}

func (w *world) add(names ...string) {
	for _, ns := range names {
		if out, err := exec.Command("ip", "netns", "add", w.prefix+ns).CombinedOutput(); err != nil {
			w.t.Fatalf("namespace %s: %s", ns, out)
		}
		w.t.Cleanup(func() { exec.Command("ip", "netns", "del", w.prefix+ns).Run() })
		w.do(ns, "ip link set lo up")
	}
}

// wire joins device da of a and db of b, each with an address if one is given.
func (w *world) wire(a, da, ipa, b, db, ipb string) {
	w.do(a, fmt.Sprintf("ip link add %s type veth peer name %s netns %s", da, db, w.prefix+b))
	for _, end := range [][3]string{{a, da, ipa}, {b, db, ipb}} {
		if end[2] != "" {
			w.do(end[0], fmt.Sprintf("ip addr add %s dev %s", end[2], end[1]))
		}
		w.do(end[0], fmt.Sprintf("ip link set %s up", end[1]))
	}
}

// router makes ns translate what leaves by its device wan. If hard, each connection gets another port, so that no hole
// can be punched.
func (w *world) router(ns string, hard bool) {
	how := ""
	if hard {
		how = " random,fully-random"
	}
	w.do(ns, "sysctl -qw net.ipv4.ip_forward=1")
	rules := fmt.Sprintf(`table ip nat {
	chain post {
		type nat hook postrouting priority 100
		oifname "wan" masquerade%s
	}
}
table ip filter {
	chain input {
		type filter hook input priority 0
		iifname "wan" ct state != { established, related } drop
	}
}
`, how)
	file := filepath.Join(w.t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.do(ns, "nft -f "+file)
}

// nsProcess is a peer that runs in a namespace.
type nsProcess struct {
	t   *testing.T
	ns  string
	in  io.WriteCloser
	out *bufio.Scanner
	pid *os.Process
}

func (w *world) start(ns string, p nsPeer) *nsProcess {
	w.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command("ip", "netns", "exec", w.prefix+ns, os.Args[0])
	c.Env = append(os.Environ(), nsChild+"="+string(text))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		in.Close()
		kill := time.AfterFunc(10*time.Second, func() { c.Process.Kill() })
		c.Wait()
		kill.Stop()
	})
	one := &nsProcess{w.t, ns, in, bufio.NewScanner(out), c.Process}
	one.hear("ready")
	return one
}

func (p *nsProcess) signal(s syscall.Signal) {
	if err := p.pid.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *nsProcess) say(line string) { fmt.Fprintln(p.in, line) }

// hear reads one line that begins with want, and returns the rest.
func (p *nsProcess) hear(want string) string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("%s said nothing, must say %s", p.ns, want)
	}
	rest, ok := strings.CutPrefix(p.out.Text(), want)
	if !ok {
		p.t.Fatalf("%s said %q, must say %s", p.ns, p.out.Text(), want)
	}
	return strings.TrimSpace(rest)
}

// keys makes n key files and returns them with the IDs.
func keys(t *testing.T, n int) (files, ids []string) {
	for i := range n {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.key", i))
		id, err := identity.Create(file, "")
		if err != nil {
			t.Fatal(err)
		}
		files, ids = append(files, file), append(ids, id.PeerID())
	}
	return files, ids
}

// Two sites behind routers that translate addresses, neither of which can be dialled, meet through a relay in a third
// network. If the routers keep a port for all destinations, the way becomes a direct one; otherwise the relay carries
// the run.
func TestBehindNAT(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	t.Parallel()
	for _, test := range []struct {
		transport, relay, via string
		hard                  bool
	}{
		{"quic", "/ip4/11.0.0.1/udp/4001/quic-v1", "quic", false},
		{"tcp", "/ip4/11.0.0.1/tcp/4001", "tcp", false},
		{"quic", "/ip4/11.0.0.1/udp/4001/quic-v1", "relay", true},
		{"ws", "/ip4/11.0.0.1/tcp/443/wss", "relay", false},
	} {
		t.Run(fmt.Sprintf("%s, hard %v", test.transport, test.hard), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "nft")
			w.add("r", "na", "nb", "a", "b")
			w.do("r", "ip link add name bridge0 type bridge")
			w.do("r", "ip addr add 11.0.0.1/24 dev bridge0")
			w.do("r", "ip link set bridge0 up")
			for i, side := range []string{"a", "b"} {
				w.wire("n"+side, "wan", fmt.Sprintf("11.0.0.%d/24", i+2), "r", "to"+side, "")
				w.do("r", "ip link set to"+side+" master bridge0")
				w.wire("n"+side, "lan", fmt.Sprintf("192.168.%d.1/24", i+1), side, "eth",
					fmt.Sprintf("192.168.%d.2/24", i+1))
				w.do(side, fmt.Sprintf("ip route add default via 192.168.%d.1", i+1))
				w.router("n"+side, test.hard)
			}
			files, ids := keys(t, 3)
			roster := identity.Roster{Members: []identity.Member{{Name: "site-a", ID: ids[0]},
				{Name: "site-b", ID: ids[1]}}}
			w.start("r", nsPeer{Key: files[2], Transport: test.transport, Listen: []string{test.relay}, Roster: roster,
				Relay: true})
			relays := []string{test.relay + "/p2p/" + ids[2]}
			a := w.start("a", nsPeer{Key: files[0], Transport: test.transport, Roster: roster, Relays: relays})
			b := w.start("b", nsPeer{Key: files[1], Transport: test.transport, Roster: roster, Relays: relays})
			a.say("join 0")
			b.say("join 0")
			for _, p := range []*nsProcess{a, b} {
				how := p.hear("joined")
				if !strings.HasPrefix(how, test.via+" ") {
					t.Errorf("%s: %s, must be a path by %s", p.ns, how, test.via)
				}
				t.Log(p.ns, how)
			}
			a.say("swap 1")
			b.say("swap 0")
			t.Log("4 MiB each way:", a.hear("swapped"), b.hear("swapped"))
		})
	}
}

// A peer that falls silent (its cable is unplugged) is lost after Config.PeerTimeout, not after
// libp2p's half a minute.
func TestPeerTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	t.Parallel()
	for transport, listen := range map[string]string{"quic": "/ip4/10.9.0.2/udp/4001/quic-v1",
		"tcp": "/ip4/10.9.0.2/tcp/4001"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("a", "b")
			w.wire("a", "eth", "10.9.0.1/24", "b", "eth", "10.9.0.2/24")
			files, ids := keys(t, 2)
			roster := identity.Roster{Members: []identity.Member{{Name: "site-a", ID: ids[0]},
				{Name: "site-b", ID: ids[1], Addrs: []string{listen}}}}
			const timeout = 2 * time.Second
			a := w.start("a", nsPeer{Key: files[0], Transport: transport, Roster: roster, PeerTimeout: timeout})
			b := w.start("b", nsPeer{Key: files[1], Transport: transport, Roster: roster, Listen: []string{listen},
				PeerTimeout: timeout})
			a.say("join 0")
			b.say("join 0")
			a.hear("joined")
			b.hear("joined")
			a.say("wait 1")
			b.say("wait 0")
			time.Sleep(100 * time.Millisecond)
			w.do("a", "ip link set eth down")
			for _, p := range []*nsProcess{a, b} {
				took, why, _ := strings.Cut(p.hear("lost"), " ")
				d, err := time.ParseDuration(took)
				if err != nil || d > 20*time.Second || !strings.Contains(why, "site-") ||
					strings.Contains(why, "deadline exceeded") {
					t.Errorf("%s: noticed after %s: %s", p.ns, took, why)
				}
				t.Log(p.ns, took, why)
			}
		})
	}
}

// A peer that is stopped (SIGSTOP), or a network that is split, for less than Config.PeerTimeout
// leaves the session whole. After longer both sides know that the other is lost; when it goes on,
// or the network has healed, they meet again in the next generation.
func TestPauseAndSplit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	t.Parallel()
	every := testenv.LongForm(t) // TCP takes 14 s to miss a stopped process, whose system still answers
	for transport, listen := range map[string]string{"quic": "/ip4/10.9.0.2/udp/4001/quic-v1",
		"tcp": "/ip4/10.9.0.2/tcp/4001"} {
		for _, paused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, paused %v", transport, paused), func(t *testing.T) {
				if paused && transport == "tcp" && !every {
					t.Skip("SKIPPED: in the long form")
				}
				t.Parallel()
				pauseOrSplit(t, transport, listen, paused)
			})
		}
	}
}

func pauseOrSplit(t *testing.T, transport, listen string, paused bool) {
	w := newWorld(t)
	w.add("a", "b")
	w.wire("a", "eth", "10.9.0.1/24", "b", "eth", "10.9.0.2/24")
	files, ids := keys(t, 2)
	roster := identity.Roster{Members: []identity.Member{{Name: "site-a", ID: ids[0]},
		{Name: "site-b", ID: ids[1], Addrs: []string{listen}}}}
	const timeout = 4 * time.Second // a busy machine takes its time to pause for less
	a := w.start("a", nsPeer{Key: files[0], Transport: transport, Roster: roster, PeerTimeout: timeout})
	b := w.start("b", nsPeer{Key: files[1], Transport: transport, Roster: roster, Listen: []string{listen},
		PeerTimeout: timeout})
	both := func(line, want string) {
		t.Helper()
		for i, p := range []*nsProcess{a, b} {
			p.say(strings.ReplaceAll(line, "OTHER", fmt.Sprint(1-i)))
		}
		t.Log(want, a.hear(want), "/", b.hear(want))
	}
	fault := func(begins bool) {
		switch {
		case paused && begins:
			b.signal(syscall.SIGSTOP)
		case paused:
			b.signal(syscall.SIGCONT)
		case begins:
			w.do("a", "ip link set eth down")
		default:
			w.do("a", "ip link set eth up")
		}
	}
	both("join 0", "joined")
	fault(true)
	time.Sleep(300 * time.Millisecond)
	fault(false)
	both("swap OTHER", "swapped")

	a.say("wait 1")
	fault(true)
	lost := a.hear("lost")
	t.Log(lost)
	if !strings.Contains(lost, "site-b") || strings.Contains(lost, "deadline exceeded") {
		t.Errorf("the other side noticed: %s", lost)
	}
	fault(false)
	b.say("wait 0")
	if lost := b.hear("lost"); !strings.Contains(lost, "site-a") || strings.Contains(lost, "deadline exceeded") {
		t.Errorf("the peer itself noticed: %s", lost)
	}
	both("close", "closed")
	both("join 1", "joined")
	both("swap OTHER", "swapped")
}

// A peer that only dials out moves to another network: over QUIC its session goes on from the new
// address, over TCP it is lost and comes back in the next generation.
func TestAddressChange(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	t.Parallel()
	for transport, at := range map[string]string{"quic": "/udp/4001/quic-v1", "tcp": "/tcp/4001"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("a", "b")
			w.wire("a", "eth", "10.9.0.1/24", "b", "eth", "10.9.0.2/24")
			w.do("b", "ip addr add 10.8.0.2/24 dev eth")
			w.do("a", "ip route add default via 10.9.0.2")
			files, ids := keys(t, 2)
			roster := identity.Roster{Members: []identity.Member{{Name: "laptop", ID: ids[0]},
				{Name: "site-b", ID: ids[1], Addrs: []string{"/ip4/10.9.0.2" + at}}}}
			a := w.start("a", nsPeer{Key: files[0], Transport: transport, Roster: roster, PeerTimeout: time.Second})
			b := w.start("b", nsPeer{Key: files[1], Transport: transport, Roster: roster,
				Listen: []string{"/ip4/0.0.0.0" + at}, PeerTimeout: time.Second})
			both := func(line func(rank int) string, want string) {
				a.say(line(0))
				b.say(line(1))
				t.Log(want, a.hear(want), "/", b.hear(want))
			}
			other := func(word string) func(int) string {
				return func(rank int) string { return fmt.Sprint(word, " ", 1-rank) }
			}
			both(func(int) string { return "join 0" }, "joined")
			both(other("swap"), "swapped")
			w.do("a", "ip addr del 10.9.0.1/24 dev eth")
			w.do("a", "ip addr add 10.8.0.1/24 dev eth")
			w.do("a", "ip route add default via 10.8.0.2")
			if transport == "tcp" {
				both(other("wait"), "lost")
				both(func(int) string { return "close" }, "closed")
				both(func(int) string { return "join 1" }, "joined")
			}
			both(other("swap"), "swapped")
		})
	}
}

// On a local network peers that know nothing but each other's IDs find each other by mDNS, if that is configured.
func TestLAN(t *testing.T) {
	w := newWorld(t)
	w.add("a", "b")
	w.wire("a", "eth", "10.9.0.1/24", "b", "eth", "10.9.0.2/24")
	for _, ns := range []string{"a", "b"} {
		w.do(ns, "ip link set lo multicast on")
		w.do(ns, "ip route add 224.0.0.0/4 dev eth")
	}
	files, ids := keys(t, 2)
	roster := identity.Roster{Members: []identity.Member{{Name: "site-a", ID: ids[0]}, {Name: "site-b", ID: ids[1]}}}
	var both []*nsProcess
	for i, ns := range []string{"a", "b"} {
		both = append(both,
			w.start(ns, nsPeer{Key: files[i], Roster: roster, Listen: []string{"/ip4/0.0.0.0/udp/4001/quic-v1"},
				LAN: true}))
		both[i].say("join 0")
	}
	for _, p := range both {
		t.Log(p.hear("joined"))
	}
}
