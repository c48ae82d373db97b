package p2p

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// A revoked member loses its connection at once and cannot come back; calls that wait for it end with its name, and the
// others go on.
func TestRevoke(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 2)
		for _, way := range [][2]int{{0, 2}, {2, 0}} {
			go func() {
				_, err := ss[way[0]].Recv(within(t, patience), way[1])
				gone <- err
			}()
		}
		for _, h := range hs[:2] {
			if err := h.Revoke(hs[2].ID(), "serial 2 of tumour-registry"); err != nil {
				t.Fatal(err)
			}
		}
		told := 0
		for range 2 {
			err := <-gone
			if _, ok := errors.AsType[*comm.PeerError](err); !ok || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a Recv that waited for a revoked peer, or the revoked peer's own: %v", err)
			}
			if errors.Is(err, ErrRevoked) && strings.Contains(err.Error(), "site-2") && strings.Contains(err.Error(),
				"serial 2") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%d of the two were told of the revocation, must be the one that was not revoked", told)
		}
		if c := hs[0].node.Network().ConnsToPeer(hs[2].node.ID()); len(c) > 0 {
			t.Errorf("a revoked peer has the connection %v", c)
		}
		frames(t, ss[0], ss[1])
		ss[2].Close()
		if _, err := hs[2].Join(within(t, 500*time.Millisecond), roster, Hello{}); err == nil {
			t.Error("a revoked peer joined again")
		}
		if c := hs[0].node.Network().ConnsToPeer(hs[2].node.ID()); len(c) > 0 {
			t.Errorf("a revoked peer came back over %v", c)
		}
		ss[0].Close()
		if _, err := hs[0].Join(within(t, patience), roster, Hello{}); !errors.Is(err, ErrRevoked) ||
			!strings.Contains(err.Error(), "site-2") {
			t.Errorf("a Join that waits for a revoked peer: %v", err)
		}
	})
}

// A revocation ends a Join that waits for the peer.
func TestRevokeEndsJoin(t *testing.T) {
	hs, roster := hosts(t, "tcp", 2)
	time.AfterFunc(50*time.Millisecond, func() { hs[0].Revoke(hs[1].ID(), "expired") })
	if _, err := hs[0].Join(within(t, patience), roster, Hello{}); !errors.Is(err, ErrRevoked) {
		t.Errorf("join: %v", err)
	}
}

// A member's data is taken at MaxRate at most, and a deadline during the wait loses nothing.
func TestMaxRate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		const rate = 4 << 20
		slow := config(t, transport)
		slow.MaxRate = rate
		hs, roster := hosts(t, transport, 1)
		hs = append(hs, open(t, slow))
		roster.Members = append(roster.Members, identity.Member{Name: "site-1", ID: hs[1].ID(), Addrs: hs[1].Addrs()})
		ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		go ss[0].Send(within(t, patience), 1, make([]byte, rate), nil)
		var err error
		for wait := 20 * time.Millisecond; wait < patience; wait *= 2 {
			if _, err = ss[1].Recv(within(t, wait), 0); !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if took := time.Since(begun); err != nil || took < 800*time.Millisecond {
			t.Errorf("a second's worth came after %v, %v", took, err)
		}
		frames(t, ss[0], ss[1])
	})
}

// A stream of a peer that is not listed, or that has this peer's identity, is reset before a hello.
func TestAnswerToNoMember(t *testing.T) {
	for _, from := range []peer.ID{"self", "stranger"} {
		r := newRendezvous(&Host{node: &node.Node{}}, []node.Peer{{ID: "self"}, {ID: "other"}}, 0, Hello{})
		s := &bytesStream{in: bytes.NewReader(r.ours.encode()), conn: bytesConn{from: from}}
		if r.answer(s); !s.reset || s.out.Len() > 0 {
			t.Errorf("%s: reset %t, %d bytes were sent", string(from), s.reset, s.out.Len())
		}
	}
}
