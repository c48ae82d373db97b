package p2p

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// What travels over the transports that are not the usual ones arrives, is counted, and is refused to strangers.
func TestOtherCarriers(t *testing.T) {
	for _, transport := range []string{"noise", "ws", "auto"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			ss := sessions(t, transport, 3)
			ctx := within(t, 20*time.Second)
			want := bytes.Repeat([]byte("heddle"), 500_000)
			done := make(chan error, 1)
			before, _ := ss[0].WireBytes()
			go func() { done <- ss[0].Send(ctx, 2, want, nil) }()
			got, err := ss[2].Recv(ctx, 0)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("received %d bytes, %v", len(got), err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if after, _ := ss[0].WireBytes(); after-before < int64(len(want)) || float64(after-before) > 1.05*float64(len(want)) {
				t.Errorf("%d bytes on the wire for %d", after-before, len(want))
			}
			for rank, p := range ss[0].Paths() {
				if rank > 0 && (transport == "noise" && p.Via != "tcp" || transport == "ws" && p.Via != "ws" || p.Address == "") {
					t.Errorf("the path to peer %d is %+v", rank, p)
				}
			}

			stranger := listen(t, transport)
			roster := Roster{Members: []Member{{Name: "victim", ID: ss[1].host.ID(), Addrs: ss[1].host.Addrs()}, {Name: "stranger", ID: stranger.ID()}}}
			if _, err := stranger.Join(within(t, 300*time.Millisecond), roster, Hello{}); err == nil {
				t.Error("a stranger joined")
			}
			if c := ss[1].host.net.ConnsToPeer(stranger.net.LocalPeer()); len(c) > 0 {
				t.Errorf("the stranger has a connection: %v", c)
			}
		})
	}
}

// A peer that speaks Noise only and one that prefers TLS meet.
func TestNoiseMeetsTLS(t *testing.T) {
	hs, roster := hosts(t, "tcp", 1)
	other := listen(t, "noise")
	hs = append(hs, other)
	roster.Members = append(roster.Members, Member{Name: "site-1", ID: other.ID(), Addrs: other.Addrs()})
	ss, errs := join(within(t, 10*time.Second), hs, []Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	frames(t, ss[0], ss[1])
}

// Transport auto measures every carrier by which a peer can be dialled, and takes the fastest; where UDP leads nowhere,
// it does without.
func TestAutoMeasures(t *testing.T) {
	for name, blocked := range map[string]bool{"all": false, "no UDP": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hs, roster := hosts(t, "auto", 2)
			if blocked {
				for i, a := range roster.Members[1].Addrs {
					if strings.Contains(a, "/udp/") {
						roster.Members[1].Addrs[i] = "/ip4/127.0.0.1/udp/9/quic-v1"
					}
				}
			}
			ss, errs := join(within(t, 20*time.Second), hs, []Roster{roster}, []Hello{{}})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			frames(t, ss[0], ss[1])
			p := ss[0].Paths()[1]
			if p.RoundTrip <= 0 || p.Rate <= 0 || blocked && p.Via == "quic" {
				t.Errorf("the path is %+v", p)
			}
			t.Logf("%s: %v, %.0f MB/s", p.Via, p.RoundTrip, p.Rate/1e6)
		})
	}
}
