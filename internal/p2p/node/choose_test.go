package node

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// Transport auto measures every carrier by which a peer can be dialled, and takes the fastest; if UDP does not get
// through, it uses another.
func TestAutoMeasures(t *testing.T) {
	for name, blocked := range map[string]bool{"all": false, "no UDP": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := listen(t, "auto"), listen(t, "auto")
			b.Admit([]Peer{peerOf(a)})
			to := peerOf(b)
			if blocked {
				for i, at := range to.Addrs {
					if strings.Contains(at.String(), "/udp/") {
						to.Addrs[i] = ma.StringCast("/ip4/127.0.0.1/udp/9/quic-v1")
					}
				}
			}
			a.Admit([]Peer{to})
			// the search is bounded in time, and may then find none
			await(t, "a carrier is measured", func() bool {
				a.choose(t.Context(), b.ID())
				return a.chosen[b.ID()]
			})
			at := a.store.Addrs(b.ID())
			if len(at) != 1 || blocked && kindOf(at[0]) == "quic" {
				t.Errorf("it is dialled at %v", at)
			}
			if err := a.Dial(within(t, patience), to); err != nil {
				t.Error(err)
			}
		})
	}
}

// No packet goes to a peer that is not listed.
func TestDialAnyAsksTheGate(t *testing.T) {
	t.Parallel()
	a := listen(t, "tcp")
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	at := []ma.Multiaddr{ma.StringCast("/ip4/" + host + "/tcp/" + port)}
	dialled := func(p peer.ID) bool {
		if _, err := a.dialAny(within(t, time.Second), p, at); err == nil {
			t.Error("there is a connection to nobody")
		}
		l.SetDeadline(time.Now().Add(10 * time.Millisecond)) // what has been dialled waits already
		_, err := l.Accept()
		return err == nil
	}
	member, stranger := newIdentity(t).ID(), newIdentity(t).ID()
	a.Admit([]Peer{{ID: member}})
	if dialled(stranger) {
		t.Error("a peer that is not listed was dialled")
	}
	if !dialled(member) {
		t.Error("a member was not dialled")
	}
}
