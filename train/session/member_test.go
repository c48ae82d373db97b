package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/session"
)

// waits is a trainer that has one step, for which it needs all others.
type waits struct{}

func (waits) Resume() (bool, error)                                        { return false, nil }
func (waits) Run(ctx context.Context, g *comm.Group, _ comm.Reducer) error { return g.Barrier(ctx) }
func (waits) Done() bool                                                   { return false }

// TestSilentMember: a member that stays connected and sends nothing ends the session, and is named at once.
func TestSilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := netsim.New(2, netsim.Config{})
		silent := comm.NewGroup(mem.Transport(1), 1, 2)
		defer silent.Close()
		var waited []string
		meetings := 0
		m := &session.Member{Names: []string{"a", "b"}, Wait: time.Minute, Progress: 5 * time.Minute, Rejoin: time.Hour,
			Checkpoints: &checkpoint.Store{Dir: t.TempDir()},
			New:         func(*session.Member) (session.Trainer, error) { return waits{}, nil },
			Event: func(e train.Event) {
				if e.Kind == train.Connection && e.Peer == 1 && e.Members == nil {
					waited = append(waited, e.Text)
				}
			}}
		m.Meet = func(context.Context) (*session.Connection, error) {
			if meetings++; meetings == 1 {
				return &session.Connection{Transport: mem.Transport(0), Wire: func() int64 { return 0 }}, nil
			}
			return nil, errors.New("nobody is there")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		begun := time.Now()
		_, _, err := m.Run(ctx)
		if took := time.Since(begun); meetings != 2 || took > 10*time.Minute {
			t.Errorf("%d meetings, after %v: %v", meetings, took, err)
		}
		if len(waited) != 1 || waited[0] != "waiting for b, which failed" {
			t.Errorf("events: %q", waited)
		}
	})
}
