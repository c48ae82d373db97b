package p2p

import (
	"testing"
	"time"
)

// A survey finds who answers, by which way and how fast, and says why the others do not.
func TestSurvey(t *testing.T) {
	t.Parallel()
	r, hs, roster := behind(t, "tcp", 2, RelayLimits{})
	here := listen(t, "tcp")
	roster.Members = append(roster.Members, Member{Name: "here", ID: here.ID(), Addrs: here.Addrs()})
	if err := r.Admit(roster); err != nil {
		t.Fatal(err)
	}
	done, answering := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answering)
		for { // who surveys is seen by others
			select {
			case <-done:
				return
			default:
				hs[1].Survey(within(t, 1500*time.Millisecond), roster)
			}
		}
	}()
	var seen map[string]Sighting
	for range 20 { // until site-1 has its reservation at the relay
		found, err := hs[0].Survey(within(t, 1500*time.Millisecond), roster)
		if err != nil {
			t.Fatal(err)
		}
		seen = map[string]Sighting{}
		for _, s := range found {
			seen[s.Name+" "+s.Via] = s
			t.Logf("%+v", s)
		}
		if seen["site-1 relay"].Err == nil {
			break
		}
	}
	close(done)
	<-answering
	for _, want := range []string{"relay tcp", "site-1 relay"} {
		if s, ok := seen[want]; !ok || s.Err != nil || s.RoundTrip <= 0 || s.Rate <= 0 || s.Ahead.Abs() > time.Second {
			t.Errorf("%s: %+v", want, s)
		}
	}
	for _, want := range []string{"here tcp", "here relay"} { // it does not join, and holds no reservation
		if s, ok := seen[want]; !ok || s.Err == nil {
			t.Errorf("%s: %+v, want an error", want, s)
		}
	}
}
