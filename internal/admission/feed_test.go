package admission

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestFollowSeesAnEarlierChange: a roster that was put in force after the caller read the one before,
// and before it followed the files, is used; the one that the caller read is not used again.
func TestFollowSeesAnEarlierChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := three().Next()
		if err := next.Revoke("west", 0); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		in := Trusted(filepath.Join(dir, "trusted.json"))
		for _, s := range []*Signed[Roster]{signed(t, three(), north, south), signed(t, next, north, south)} {
			if err := in.Update(s, s.Body.Fingerprint(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			held Roster
			want int
		}{{three(), 1}, {next, 0}} {
			ctx, stop := context.WithTimeout(t.Context(), feedExpiry/2)
			used := 0
			f := Feed{Path: filepath.Join(dir, "absent.json"), InForce: in, Warn: func(text string) { t.Error(text) }}
			f.Follow(ctx, c.held, func(r Roster, _ time.Time) {
				if used++; r.Serial != 2 {
					t.Errorf("serial %d is used", r.Serial)
				}
			})
			stop()
			if used != c.want {
				t.Errorf("held serial %d: used %d times, must be %d", c.held.Serial, used, c.want)
			}
		}
	})
}
