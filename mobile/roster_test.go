package mobile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/admission"
)

// TestRoster: a device with a roster takes plans of the sites that it lists and no others, in later processes as well;
// the first roster needs its fingerprint, and the next one signatures of the administrators of the first.
func TestRoster(t *testing.T) {
	s := newSites(t, 2, "")
	of := admission.Roster{Federation: "app", Serial: 1, Quorum: 1}
	for r, key := range s.keys {
		of.Members = append(of.Members, admission.Member{Name: fmt.Sprint("site-", r), ID: key.PeerID(),
			Role: admission.Trainer, Administrator: r == 0, Expires: admission.Day(time.Now().AddDate(0, 1, 0))})
	}
	signed := func(by int, of admission.Roster) []byte {
		file := admission.Unsigned(of)
		if err := file.Sign(s.keys[by].PeerID(), s.keys[by].Sign); err != nil {
			t.Fatal(err)
		}
		text, err := file.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	dir, store := t.TempDir(), &memory{}
	start := func(roster []byte, fingerprint string) error {
		c := NewConfig(dir)
		c.SetPlan(s.plan)
		c.SetRoster(roster, fingerprint)
		d, err := NewDevice(c, store)
		if err != nil {
			return err
		}
		if err := d.SetGraph(contacts(t, 7, 20)); err != nil {
			t.Fatal(err)
		}
		defer d.Stop()
		return d.Start(nil)
	}
	refuses := func(what string, err error, word string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: the error is %v, must say %q", what, err, word)
		}
	}
	first := signed(0, of)
	refuses("no fingerprint", start(first, ""), "fingerprint")
	refuses("another fingerprint", start(first, strings.Repeat("0", 64)), "fingerprint")
	if err := start(first, of.Fingerprint()); err != nil {
		t.Errorf("a plan of listed sites: %v", err)
	}
	next := of.Next()
	if err := next.Revoke("site-1", 0); err != nil {
		t.Fatal(err)
	}
	refuses("a roster of somebody else", start(signed(1, next), next.Fingerprint()), "sign")
	if err := start(nil, ""); err != nil {
		t.Errorf("a plan of listed sites, after a roster that was refused: %v", err)
	}
	refuses("a site that left", start(signed(0, next), ""), "site-1")
	refuses("the same in another process", start(nil, ""), "site-1")
}
