package federation

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

const (
	lookupTime = 3 * time.Second
	askTime    = time.Second
	askEvery   = 250 * time.Millisecond
)

// payloads are the bytes of the datagrams that are tried: the fewest of QUIC, then of common tunnels, the most of QUIC.
var payloads = []int{1200, 1252, 1372, 1452}

// names resolves the host names in the addresses of the others: each fault of DNS stops all connections there.
func (d *doctor) names(ctx context.Context, dns *net.Resolver, all []identity.Member, relays []string) {
	for _, m := range append(slices.Clone(all), identity.Member{Name: "relay", Addrs: relays}) {
		for _, text := range m.Addrs {
			a, err := ma.NewMultiaddr(text)
			if err != nil {
				continue // the plan is checked elsewhere
			}
			first, _ := ma.SplitFirst(a)
			if !strings.HasPrefix(first.Protocol().Name, "dns") {
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, lookupTime)
			if _, err := dns.LookupIPAddr(ctx, first.Value()); err != nil {
				d.fault("dns", "check the name, and the DNS server of this machine (resolvectl query "+first.Value()+
					"), or write the host's IP address into the plan", "%s: %v", m.Name, err)
			} else {
				d.fine("dns", "%s resolves", first.Value())
			}
			cancel()
		}
	}
}

// announced notes addresses that the others dial and no interface of this machine has.
func (d *doctor) announced(addrs []string) {
	for _, text := range addrs {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			continue
		}
		ip, err := manet.ToIP(a)
		if err == nil && !onInterface(ip) {
			d.advise("address", "let the router or cloud forward that port to this machine, or correct the address in "+
				"the plan", "the others dial %s, and no interface of this machine has %s", text, ip)
		}
	}
}

// onInterface reports whether this machine has the address.
func onInterface(ip net.IP) bool {
	all, err := net.InterfaceAddrs()
	return err != nil || ip.IsUnspecified() || slices.ContainsFunc(all, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && (n.IP.Equal(ip) || ip.IsLoopback())
	})
}

// asked is what datagrams to the UDP port of another member have found.
type asked struct {
	name       string
	at         *net.UDPAddr
	whole, cut int // bytes of the largest that was answered, if no router may cut it into pieces, and if it may
	err        error
}

// askAll asks the UDP ports of the others until each has answered, or ctx ends. It runs next to the survey over libp2p,
// since both wait for the same members, and repeats: a member's program may start later.
func askAll(ctx context.Context, all []identity.Member, self string) []*asked {
	var out []*asked
	var asking sync.WaitGroup
	for _, m := range all {
		for _, text := range m.Addrs {
			a, err := ma.NewMultiaddr(text)
			if err != nil || m.ID == self {
				continue
			}
			host, rest := ma.SplitFirst(a)
			port, err := rest.ValueForProtocol(ma.P_UDP)
			if err != nil {
				continue
			}
			at, err := net.ResolveUDPAddr("udp", net.JoinHostPort(host.Value(), port))
			if err != nil {
				continue // it is named by DNS
			}
			one := &asked{name: m.Name, at: at}
			out = append(out, one)
			asking.Go(func() {
				for one.whole+one.cut == 0 && ctx.Err() == nil && !errors.Is(one.err, errors.ErrUnsupported) {
					// Pieces are tried only if nothing whole is answered: a path with a small MTU then differs from a
					// firewall or a program that does not run.
					if one.whole, one.err = askQUIC(ctx, at, true); one.whole == 0 && one.err == nil {
						one.cut, one.err = askQUIC(ctx, at, false)
					}
					if one.cut > 0 { // or the program there began between the two
						one.whole, one.err = askQUIC(ctx, at, true)
					}
				}
			})
		}
	}
	asking.Wait()
	return out
}

// packets reports what askAll has found.
func (d *doctor) packets(all []*asked) {
	for _, one := range all {
		switch {
		case errors.Is(one.err, errors.ErrUnsupported):
		case one.whole == payloads[len(payloads)-1]:
			d.fine("packets", "up to %d bytes reach %s", one.whole, one.name)
		case one.whole > 0:
			d.advise("packets", "no action needed: QUIC finds the size itself",
				"datagrams of more than %d bytes do not reach %s whole", one.whole, one.name)
		case one.cut > 0:
			d.fault("packets", "raise the MTU of the tunnel or VPN to 1280 or more (ip link set dev wg0 mtu 1280), or "+
				"write the plan with --carrier tcp",
				"datagrams of %d bytes reach %s only in pieces, which QUIC does not send", payloads[0], one.name)
		case errors.Is(one.err, syscall.ECONNREFUSED):
			d.advise("packets", "start join or doctor there", "%s: UDP reaches %s, but no program listens there",
				one.name, one.at)
		default:
			d.advise("packets", "start join or doctor there; if it runs, a firewall drops UDP to "+one.at.String()+
				": allow it, or write the plan with --carrier auto or tcp", "no datagram to %s is answered", one.name)
		}
	}
}

// askQUIC sends datagrams in a version of QUIC that there is not. Each endpoint, also of another program, answers which
// versions it speaks (RFC 9000, 6.1). It returns the bytes of the largest one answered (0 = none). No router may cut
// whole ones into pieces.
func askQUIC(ctx context.Context, at *net.UDPAddr, whole bool) (largest int, err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", at.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := cli.WholeDatagrams(conn.(*net.UDPConn), whole); err != nil {
		return 0, err
	}
	ask := func() {
		for k, size := range payloads {
			b := make([]byte, size)
			// A new ID each time, so that an endpoint does not take the datagrams for one connection that fails.
			rand.Read(b[6:14])
			b[0] = 0xc0 // a long header,
			binary.BigEndian.PutUint32(b[1:], 0x1a2a3a4a)
			b[5], b[14] = 8, 8 // and two IDs; the answer has ours
			// The first byte of our ID names the size, and an answer returns the ID: so one socket can send all sizes
			// at once and still know which one came through.
			b[15] = byte(k)
			if _, fault := conn.Write(b); errors.Is(fault, syscall.ECONNREFUSED) { // one too large here is not sent
				err = fault
			}
		}
	}
	answer := make([]byte, 1500)
	// Sent again within a second, since UDP loses datagrams and a lost one would look like a small MTU.
	for begun := time.Now(); time.Since(begun) < askTime && largest < payloads[len(payloads)-1] && ctx.Err() == nil; {
		ask()
		conn.SetReadDeadline(time.Now().Add(askEvery))
		for {
			n, fault := conn.Read(answer)
			if errors.Is(fault, syscall.ECONNREFUSED) {
				err = fault
			}
			if fault != nil {
				break
			}
			if n > 15 && answer[0]&0x80 != 0 && binary.BigEndian.Uint32(answer[1:]) == 0 && answer[5] == 8 &&
				int(answer[6]) < len(payloads) {
				largest, err = max(largest, payloads[answer[6]]), nil
			}
		}
	}
	return largest, err
}

// nat concludes from how the others see this machine which kind of router is between.
func (d *doctor) nat(found []node.Sighting) {
	seen := map[string]bool{} // over QUIC, which dials from the port that it listens on
	var inside string
	others := map[string]bool{}
	for _, s := range found {
		a, err := ma.NewMultiaddr(s.Seen)
		if err != nil || s.Via != "quic" {
			continue
		}
		ip, err := manet.ToIP(a)
		port, fault := a.ValueForProtocol(ma.P_UDP)
		if err != nil || fault != nil {
			continue
		}
		// One destination shows an address only. Whether a router gives each destination another port takes two.
		others[s.Address] = true
		if onInterface(ip) {
			inside = ip.String()
			continue
		}
		seen[net.JoinHostPort(ip.String(), port)] = true
	}
	switch at := strings.Join(slices.Sorted(maps.Keys(seen)), " and "); {
	case len(seen) > 1:
		d.advise("nat", "no hole can be punched: forward the UDP port to this machine at the router, or let a heddle "+
			"relay carry the session", "a router that takes another port to each destination: the others see %s", at)
	case len(seen) == 1 && len(others) > 1 && inside == "":
		d.fine("nat", "a router that keeps one port: all see %s, and holes can be punched", at)
	case len(seen) == 1:
		d.fine("nat", "a router, seen as %s; its kind shows once two members or relays beyond it answer", at)
	case inside != "":
		d.fine("nat", "none: the others see %s, which this machine has", inside)
	}
}
