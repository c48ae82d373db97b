package admission

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Feed follows the roster in force while a program runs: the file that was given, and the one that
// Trusted.Update writes.
type Feed struct {
	Path    string       // of the roster that was given
	InForce Trusted      // where the roster in force is kept
	Warn    func(string) // receives the reason if a roster is not put in force

	last   [2]fs.FileInfo // of Path and InForce
	serial uint64
}

const (
	feedEvery  = time.Second // files are looked at,
	feedExpiry = time.Minute // and the calendar
)

// changed reports whether a file is another one than at the last call.
func (f *Feed) changed() (yes bool) {
	for i, path := range []string{f.Path, string(f.InForce)} {
		now, err := os.Stat(path)
		if err != nil {
			continue // it is being replaced, or was taken away: what is in force stays
		}
		if was := f.last[i]; was == nil || !os.SameFile(was, now) || was.Size() != now.Size() ||
			!was.ModTime().Equal(now.ModTime()) {
			f.last[i], yes = now, true
		}
	}
	return yes
}

// Follow calls use with the roster in force whenever it may mean something else than held, which
// the caller knows, until ctx ends.
func (f *Feed) Follow(ctx context.Context, held Roster, use func(Roster, time.Time)) {
	f.serial = held.Serial
	f.changed()
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	looked := time.Now()
	for first := true; ; first = false { // the roster may have changed since the caller read held
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-tick.C:
		}
		if !f.changed() && !first && now.Sub(looked) < feedExpiry {
			continue
		}
		looked = now
		if s, err := ReadFile[Roster](f.Path); err == nil {
			// The other file has the newer roster, so an older one here is fine.
			if err := f.InForce.Update(s, "", now); err != nil && s.Body.Serial > f.serial {
				f.Warn(fmt.Sprintf("roster %s is not put in force: %v", f.Path, err))
			}
		}
		held, err := f.InForce.Read()
		if err != nil {
			f.Warn(fmt.Sprintf("roster: the one before stays in force: %v", err))
			continue
		}
		if first && held.Body.Serial == f.serial {
			continue
		}
		f.serial = held.Body.Serial
		use(held.Body, now)
	}
}
