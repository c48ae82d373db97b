package admission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// found checks the first version of a roster: a quorum of the administrators that it lists has signed it.
func found(first *Signed[Roster], now time.Time) error {
	if first.Body.Serial != 1 {
		return refuse("roster.serial", "serial %d is not the first of %s", first.Body.Serial, first.Body.Federation)
	}
	return quorum(first.Body, first, now)
}

// Accept checks that next may take the place of trusted: it is the same federation's, has a higher
// serial, takes no revocation back, and is signed by a quorum of trusted's administrators whose
// membership has not ended. Versions in between may be left out as long as enough of the
// administrators that this site knows have signed. The same version again is accepted; another
// content under the same serial is not. What is wrong is a *Refusal.
func Accept(trusted, next *Signed[Roster], now time.Time) error {
	t, n := trusted.Body, next.Body
	switch {
	case n.Federation != t.Federation:
		return refuse("roster.federation", "the roster must be of federation %s (got %s)", t.Federation, n.Federation)
	case n.Serial < t.Serial:
		return refuse("roster.serial", "serial %d of %s is older than serial %d, which is in force here", n.Serial,
			t.Federation, t.Serial)
	case n.Serial == t.Serial && n.Fingerprint() != t.Fingerprint():
		return refuse("roster.fork", "serial %d of %s has two contents, %.16s… here and %.16s…; both are signed by: "+
			"%s. Ask the administrators which one is right", n.Serial, t.Federation, t.Fingerprint(), n.Fingerprint(),
			list(slices.DeleteFunc(trusted.Signers(),
				func(id string) bool { return !slices.Contains(next.Signers(), id) })))
	case n.Serial == t.Serial:
		return nil
	case n.Serial == t.Serial+1 && n.Previous != t.Fingerprint():
		return refuse("roster.fork", "serial %d of %s follows another serial %d than the one in force here", n.Serial,
			t.Federation, t.Serial)
	}
	for _, v := range t.Revoked {
		if !slices.ContainsFunc(n.Revoked, func(w Revoked) bool { return w.ID == v.ID }) {
			return refuse("roster.revoked", "serial %d takes back the revocation of %s (%s)", n.Serial, v.Name, v.ID)
		}
	}
	return quorum(t, next, now)
}

// quorum checks that enough of r's administrators have signed next.
func quorum(r Roster, next *Signed[Roster], now time.Time) error {
	signed := next.Signers()
	var good, missing, ended []string
	for _, m := range r.Administrators() {
		switch {
		case m.Expires.Past(now):
			ended = append(ended, fmt.Sprintf("%s (on %s)", m.Name, m.Expires))
		case slices.Contains(signed, m.ID):
			good = append(good, m.Name)
		default:
			missing = append(missing, fmt.Sprintf("%s (%s)", m.Name, m.ID))
		}
	}
	if len(good) >= r.Quorum {
		return nil
	}
	reason := fmt.Sprintf("serial %d of %s has %d of the %d signatures that serial %d asks of its administrators: "+
		"signed by %s; missing %s", next.Body.Serial, r.Federation, len(good), r.Quorum, r.Serial, list(good),
		list(missing))
	if len(ended) > 0 {
		reason += "; of no account, as their membership ended: " + list(ended)
	}
	for _, id := range signed {
		if m, ok := r.Find(id); !ok || !m.Administrator {
			reason += "; signed, too, by " + id + ", no administrator there"
		}
	}
	return &Refusal{Rule: "roster.quorum", Reason: reason}
}

func list(s []string) string {
	if len(s) == 0 {
		return "nobody"
	}
	return strings.Join(s, ", ")
}

// ErrUnknownFederation is returned at a site that has no roster of a federation yet.
var ErrUnknownFederation = errors.New("no roster of this federation is in force here")

// Trusted is the file in which a site keeps the roster in force.
type Trusted string

// Read returns the roster in force, or ErrUnknownFederation.
func (t Trusted) Read() (*Signed[Roster], error) {
	s, err := ReadFile[Roster](string(t))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknownFederation
	}
	return s, err
}

// Update puts next in force if Accept allows it. A person has to vouch for the first roster of a federation:
// fingerprint is what the administrators sent by another channel, at least its first 32 digits, without regard to white
// space and case. If given, it is always compared.
func (t Trusted) Update(next *Signed[Roster], fingerprint string, now time.Time) error {
	if err := vouched(next.Body, fingerprint); err != nil {
		return err
	}
	// Two programs that update at once must not put the older one in force again.
	if err := os.MkdirAll(filepath.Dir(string(t)), 0o700); err != nil {
		return fmt.Errorf("trusted roster: %w", err)
	}
	unlock, err := disk.Lock(string(t)+".lock", true)
	if err != nil {
		return fmt.Errorf("trusted roster: %w", err)
	}
	defer unlock()
	held, err := t.Read()
	switch {
	case errors.Is(err, ErrUnknownFederation):
		if fingerprint == "" {
			return fmt.Errorf("%s: %w: ask an administrator for its fingerprint and give it along; this file's is %s",
				next.Body.Federation, err, Grouped(next.Body.Fingerprint()))
		}
		if next.Body.Serial == 1 {
			err = found(next, now)
		} else {
			err = nil // signed by a quorum of a version that is not known here: only the fingerprint vouches for it
		}
	case err == nil:
		err = Accept(held, next, now)
		if err == nil && held.Body.Serial == next.Body.Serial {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return WriteFile(string(t), next)
}

// leastDigits of a fingerprint are as hard to match as an Ed25519 key is to guess: 128 bits.
const leastDigits = 32

func vouched(r Roster, told string) error {
	if told == "" {
		return nil
	}
	plain := strings.ToLower(strings.Join(strings.Fields(told), ""))
	if len(plain) < leastDigits || len(plain) > 64 || !only(plain, digits+"abcdef") {
		return fmt.Errorf("fingerprint must be its first %d hexadecimal digits or all 64 (got %q)", leastDigits, told)
	}
	if !strings.HasPrefix(r.Fingerprint(), plain) {
		return refuse("roster.fingerprint", "the file's fingerprint is %s, not %s: it is not the roster that was meant",
			Grouped(r.Fingerprint()), Grouped(plain))
	}
	return nil
}

// Grouped writes a fingerprint as people read it out: in groups of four, the first half of it.
func Grouped(fingerprint string) string {
	var b strings.Builder
	for i, c := range fingerprint[:min(len(fingerprint), leastDigits)] {
		if i > 0 && i%4 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// ReadFile reads a signed file, at most maxFile bytes of it.
func ReadFile[T document](path string) (*Signed[T], error) {
	text, err := disk.ReadStart(path, maxFile)
	if err != nil {
		return nil, err
	}
	s, err := parseDocument[T](text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// WriteFile replaces the file at path, completely or not at all; when it returns nil the file
// survives a power cut.
func WriteFile[T document](path string, s *Signed[T]) error {
	text, err := s.Encode()
	if r, ok := any(s).(*Signed[Roster]); ok && err == nil {
		if file, _ := os.ReadFile(path); isYAML(file) {
			text, err = withRoster(path, file, r)
		}
	}
	if err != nil {
		return err
	}
	// Nothing in it is secret, and others pass it on.
	return disk.WriteFile(disk.OS{}, path, 0o644, text)
}
