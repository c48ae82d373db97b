package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/train"
)

// TestPhoneComesBack: a phone tries again after 1 s, 2 s and so on up to half a minute, and from 1 s on once a sum has
// come; it gives up after as long without one as it waits for the sites, and at once if a site does not admit it.
func TestPhoneComesBack(t *testing.T) {
	lost := func(err error) error { return &comm.PeerError{Rank: 1, Op: "dial", Err: err} }
	away, barred := lost(errors.New("no route")), lost(leaf.ErrNotAdmitted)
	for name, test := range map[string]struct {
		meets  func(attempt int) error // (nil = the sites are there)
		loses  int                     // sums after which the site is lost
		pauses []int                   // seconds
		ends   string
	}{
		"sites that are away": {func(int) error { return away }, 0, []int{1, 2, 4, 8, 16, 30, 30},
			"peer 1 (b): dial: no route"},
		"a site that fails": {func(attempt int) error {
			if attempt%4 != 3 {
				return away
			}
			return nil
		}, 2, []int{1, 2, 4, 1, 2, 4, 8, 1, 2, 4, 8}, ""},
		"a phone that is not admitted": {func(int) error { return barred }, 0, nil, "not admitted"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, attempts, sums := &phone{}, 0, 0
			var pauses []int
			last := time.Now()
			s := &Session{Names: []string{"a", "b"}, Wait: 2 * time.Minute, Rejoin: 2 * time.Minute, phone: p,
				Event: func(e train.Event) {
					again := e.Peer == 1 && strings.HasPrefix(e.Text, "no site to send to, trying again in ")
					if e.Kind == train.Connection && !again {
						t.Errorf("%s: %+v", name, e)
					}
				}}
			// A sum comes over each connection, and then the site is lost, or the model is final.
			training := func(_ context.Context, s *Session) (*train.Trained, error) {
				if s.Group == nil {
					return nil, nil
				}
				p.summed = true
				if sums++; sums <= test.loses {
					return nil, away
				}
				return &train.Trained{}, nil
			}
			s.Meet = func(context.Context) (comm.Transport, error) {
				if attempts > 0 {
					pauses = append(pauses, int(time.Since(last).Seconds()))
				}
				last = time.Now()
				attempts++
				return netsim.New(1, netsim.Config{}).Transport(0), test.meets(attempts - 1)
			}
			_, _, err := s.Run(t.Context(), training)
			if text := fmt.Sprint(err); (err == nil) != (test.ends == "") ||
				err != nil && !strings.Contains(text, test.ends) {
				t.Errorf("%s: %v, must be %s", name, err, test.ends)
			}
			if !slices.Equal(pauses, test.pauses) {
				t.Errorf("%s: pauses %v s, must be %v", name, pauses, test.pauses)
			}
		})
	}
}
