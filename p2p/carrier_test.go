package p2p

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// Frames over the transports that are not the usual ones arrive and are counted; strangers are refused.
func TestOtherCarriers(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"noise", "ws", "auto"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			ss := sessions(t, transport, 3)
			ctx := within(t, patience)
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
			if after, _ := ss[0].WireBytes(); after-before < int64(len(want)) ||
				float64(after-before) > 1.05*float64(len(want)) {
				t.Errorf("%d bytes on the wire for %d", after-before, len(want))
			}
			for rank := 1; rank < 3; rank++ {
				if by := via(ss[0], rank); transport == "noise" && by != "tcp" || transport == "ws" && by != "ws" {
					t.Errorf("the path to peer %d is by %s", rank, by)
				}
			}

			stranger := listen(t, transport)
			roster := identity.Roster{Members: []identity.Member{{Name: "victim", ID: ss[1].host.ID(),
				Addrs: ss[1].host.Addrs()}, {Name: "stranger", ID: stranger.ID()}}}
			if _, err := stranger.Join(within(t, 300*time.Millisecond), roster, Hello{}); err == nil {
				t.Error("a stranger joined")
			}
			if c := ss[1].host.node.Network().ConnsToPeer(stranger.node.ID()); len(c) > 0 {
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
	roster.Members = append(roster.Members, identity.Member{Name: "site-1", ID: other.ID(), Addrs: other.Addrs()})
	ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	frames(t, ss[0], ss[1])
}
