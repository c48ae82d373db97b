package main

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/p2p"
)

// rosterFeed follows the roster in force while a program runs: the file that was given, and the one that peer roster
// verify writes.
type rosterFeed struct {
	path, trusted string
	inForce       admission.Trusted
	last          [2]fs.FileInfo // of path and inForce
	serial        uint64
}

const (
	feedEvery  = time.Second // files are looked at,
	feedExpiry = time.Minute // and the calendar
)

// first reads the roster and puts it in force.
func (f *rosterFeed) first(now time.Time) (admission.Roster, error) {
	s, err := readRoster(f.path)
	if err != nil {
		return admission.Roster{}, err
	}
	f.inForce = inForce(f.trusted, s.Body.Federation)
	if err := f.inForce.Update(s, "", now); err != nil {
		return admission.Roster{}, err
	}
	f.changed()
	return s.Body, nil
}

// changed reports whether a file is another one than at the last call.
func (f *rosterFeed) changed() (yes bool) {
	for i, path := range []string{f.path, string(f.inForce)} {
		now, err := os.Stat(path)
		if err != nil {
			continue // it is being replaced, or was taken away: what is in force stays
		}
		if was := f.last[i]; was == nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()) {
			f.last[i], yes = now, true
		}
	}
	return yes
}

// follow calls use with the roster in force whenever it may mean something else, until ctx ends.
func (f *rosterFeed) follow(ctx context.Context, log *slog.Logger, use func(admission.Roster, time.Time)) {
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	looked := time.Now()
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-tick.C:
		}
		if !f.changed() && now.Sub(looked) < feedExpiry {
			continue
		}
		looked = now
		if s, err := readRoster(f.path); err == nil {
			// An older one than that in force is no fault here: the other file has the newer.
			if err := f.inForce.Update(s, "", now); err != nil && s.Body.Serial > f.serial {
				log.Warn("roster: not put in force", "file", f.path, "error", err)
			}
		}
		held, err := f.inForce.Read()
		if err != nil {
			log.Warn("roster: the one before stays in force", "error", err)
			continue
		}
		f.serial = held.Body.Serial
		use(held.Body, now)
	}
}

// revoke drops, while a run lasts, the peers of the plan that the roster does not list any more.
func (s *site) revoke(ctx context.Context, g gate, p *agreement, self string, h *p2p.Host, log *slog.Logger) {
	if s == nil || s.policy == nil {
		return
	}
	feed := rosterFeed{path: g.roster, trusted: g.trusted, inForce: inForce(g.trusted, s.roster.Federation), serial: s.roster.Serial}
	feed.changed()
	gone := map[string]bool{}
	feed.follow(ctx, log, func(r admission.Roster, now time.Time) {
		for _, m := range p.Peers {
			_, err := r.Admit(m.ID, now, admission.Trainer, admission.Coordinator)
			if err == nil || gone[m.ID] {
				continue
			}
			gone[m.ID] = true
			log.Warn("member no more", "peer", m.Name, "serial", r.Serial, "reason", err)
			if m.ID == self {
				s.stop()
			} else if err := h.Revoke(m.ID, err.Error()); err != nil {
				log.Warn("revoke", "peer", m.Name, "error", err)
			}
		}
	})
}
