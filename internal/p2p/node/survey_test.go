package node

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	mss "github.com/multiformats/go-multistream"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// A survey finds which peers answer, by which way and how fast, and reports why the others do not.
func TestSurvey(t *testing.T) {
	t.Parallel()
	r, nodes, roster := behind(t, "tcp", 2)
	here := listen(t, "tcp")
	roster.Members = append(roster.Members, identity.Member{Name: "here", ID: here.ID().String(),
		Addrs: here.FullAddrs()})
	if err := r.Admit(roster); err != nil {
		t.Fatal(err)
	}
	members, err := nodes[1].Members(roster)
	if err != nil {
		t.Fatal(err)
	}
	nodes[1].Admit(members) // as one does that joins
	var seen map[string]Sighting
	for span := 1500 * time.Millisecond; span < patience; span *= 2 { // until site-1 has its reservation at the relay
		found, err := nodes[0].Survey(within(t, span), roster)
		if err != nil {
			t.Fatal(err)
		}
		seen = map[string]Sighting{}
		for _, s := range found {
			seen[s.Name+" "+s.Via] = s
			t.Logf("%+v", s)
		}
		if seen["relay tcp"].Err == nil && seen["site-1 relay"].Err == nil {
			break
		}
	}
	for _, want := range []string{"relay tcp", "site-1 relay"} {
		s, ok := seen[want]
		// of the same clock
		if !ok || s.Err != nil || s.RoundTrip <= 0 || s.Rate <= 0 || s.Ahead.Abs() > s.RoundTrip/2+10*time.Millisecond {
			t.Errorf("%s: %+v", want, s)
		}
	}
	for _, want := range []string{"here tcp", "here relay"} { // it does not join, and has no reservation
		if s, ok := seen[want]; !ok || s.Err == nil {
			t.Errorf("%s: %+v, must be an error", want, s)
		}
	}
}

// TestSurveyAtBoth: two nodes that survey at the same time, and close as soon as they are done, find each other.
func TestSurveyAtBoth(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		var roster identity.Roster
		nodes := make([]*Node, 3)
		for i := range nodes {
			nodes[i] = listen(t, transport)
			roster.Members = append(roster.Members, identity.Member{Name: string(rune('a' + i)),
				ID:    nodes[i].ID().String(),
				Addrs: nodes[i].FullAddrs()})
		}
		var all sync.WaitGroup
		for i, n := range nodes {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				found, err := n.Survey(within(t, patience), roster)
				n.net.Close()
				for _, s := range found {
					err = errors.Join(err, s.Err)
				}
				if err != nil || len(found) != len(nodes)-1 {
					t.Errorf("%d: %v, %v", i, found, err)
				}
			})
		}
		all.Wait()
	})
}

// TestProbeToItsEnd: a probe that has sent all the bytes that it announced can end its stream a little later.
func TestProbeToItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		here, there := listen(t, transport), listen(t, transport)
		roster := identity.Roster{Members: []identity.Member{
			{Name: "here", ID: here.ID().String(), Addrs: here.FullAddrs()},
			{Name: "there", ID: there.ID().String(), Addrs: there.FullAddrs()}}}
		for _, n := range []*Node{here, there} {
			members, err := n.Members(roster)
			if err != nil {
				t.Fatal(err)
			}
			n.Admit(members)
		}
		c, err := here.dialAny(within(t, patience), there.ID(), there.Addrs())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := c.OpenStream(within(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		clock, came := make([]byte, probeAnswer), make([]byte, probeAnswer)
		err = errors.Join(mss.SelectProtoOrFail(probeProtocol, s), s.SetDeadline(time.Now().Add(patience)))
		_, asked := s.Write(encodeProbe(1))
		_, answered := io.ReadFull(s, clock)
		_, sent := s.Write([]byte{0})
		time.Sleep(50 * time.Millisecond) // the other node has the byte, and must wait for the end
		ended := s.CloseWrite()
		_, counted := io.ReadFull(s, came)
		if err := errors.Join(err, asked, answered, sent, ended, counted); err != nil || came[0] != 1 {
			t.Errorf("%v, %v bytes came", err, came)
		}
	})
}
