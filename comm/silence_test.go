package comm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
)

// A member that stays connected and sends nothing is named, by every operation and without a deadline.
func TestSilentMemberIsNamed(t *testing.T) {
	for name, run := range operations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, gs := groups(4, netsim.Config{})
				var named [4]error
				begun := time.Now()
				each(gs, func(g *comm.Group) error {
					g.LimitSilence(time.Minute)
					if g.Rank() == 2 { // it keeps its connections until long after
						time.Sleep(time.Hour)
						return nil
					}
					named[g.Rank()] = run(context.Background(), g)
					if took := time.Since(begun); took > 90*time.Second {
						t.Errorf("member %d noticed after %v", g.Rank(), took)
					}
					g.Close()
					return nil
				})
				fault, ok := errors.AsType[*comm.PeerError](named[0])
				if !ok || fault.Rank != 2 || !errors.Is(named[0], comm.ErrSilent) ||
					!strings.Contains(named[0].Error(), "still waiting for 2: no progress for 1m0s") {
					t.Errorf("member 0: %v, must be a PeerError of peer 2", named[0])
				}
			})
		})
	}
}

// A member that sends little is not silent, nor is one that takes long between two of its operations.
func TestSlowMemberIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := netsim.Config{Links: netsim.Table{All: netsim.Model{Rate: 40_000}}} // a frame takes seven seconds
		_, gs := groups(3, slow)
		must(t, each(gs, func(g *comm.Group) error {
			g.LimitSilence(time.Minute)
			begun := time.Now()
			if err := g.AllReduce(context.Background(), comm.Reduce, make([]float32, 1_000_000)); err != nil {
				return err
			}
			if took := time.Since(begun); took < 2*time.Minute {
				return fmt.Errorf("it took %v, which says nothing", took)
			}
			time.Sleep(50 * time.Second * time.Duration(g.Rank()))
			return g.Barrier(context.Background())
		}))
	})
}
