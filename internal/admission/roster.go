package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Roster is one version of the list of a federation's members. It is in force until a later one is accepted (Accept).
type Roster struct {
	Federation string `json:"federation"`         // name: small letters, digits and dashes
	Serial     uint64 `json:"serial"`             // 1, 2, 3, …
	Previous   string `json:"previous,omitempty"` // fingerprint of the version before; none for serial 1
	// administrators who must sign the next version: more than half of them
	Quorum  int       `json:"quorum"`
	Members []Member  `json:"members"`           // at least one; at most 4096
	Revoked []Revoked `json:"revoked,omitempty"` // former members that never come back with the same key
}

// Member is one peer.
type Member struct {
	Name          string `json:"name"` // for people and commands: letters, digits and . _ -
	ID            string `json:"id"`   // peer ID
	Role          Role   `json:"role"`
	Administrator bool   `json:"administrator,omitempty"` // signs rosters
	Expires       Date   `json:"expires"`                 // the last day
	// multiaddresses that other members can dial (empty = none; the member only dials out)
	Addresses []string `json:"addresses,omitempty"`
}

// Revoked is a peer that is a member no more.
type Revoked struct {
	Name   string `json:"name"`
	ID     string `json:"id"`
	Serial uint64 `json:"serial"` // of the first roster without the peer
}

// Role is what a member does.
type Role string

// The roles. Trainers and coordinators hold data and train; observers take part in no run; relays
// carry encrypted traffic for others.
const (
	Trainer     Role = "trainer"
	Coordinator Role = "coordinator"
	Observer    Role = "observer"
	Relay       Role = "relay"
)

var roles = []Role{Trainer, Coordinator, Observer, Relay}

// Date is a day of the calendar in UTC, as 2006-01-02. What expires on it is good until it ends.
type Date string

// Day returns the day of t in UTC.
func Day(t time.Time) Date { return Date(t.UTC().Format(time.DateOnly)) }

// Past reports whether the day is over at the time now.
func (d Date) Past(now time.Time) bool { return Day(now) > d }

func (d Date) validate() error {
	if t, err := time.Parse(time.DateOnly, string(d)); err != nil || Day(t) != d {
		return fmt.Errorf("must be a day such as 2027-03-31 (got %q)", string(d))
	}
	return nil
}

const (
	maxMembers   = 4096
	maxRevoked   = 4096
	maxName      = 63  // bytes
	maxAddresses = 16  // of a member
	maxAddress   = 256 // bytes
)

func (Roster) kind() string { return "roster 1" }

// Fingerprint is 64 hexadecimal digits that stand for the roster's content, signatures left out.
func (r Roster) Fingerprint() string { return fingerprint(r) }

// Validate reports all faults at once.
func (r Roster) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("roster: "+format, args...)) }
	if !named(r.Federation, lower+digits+"-") {
		fault("federation must be 1 to %d small letters, digits and dashes (got %q)", maxName, r.Federation)
	}
	switch {
	case r.Serial == 0:
		fault("serial must be 1 or more (got 0)")
	case r.Serial == 1 && r.Previous != "":
		fault("previous: serial 1 has none")
	case r.Serial > 1 && !isFingerprint(r.Previous):
		fault("previous must be 64 hexadecimal digits (got %q)", r.Previous)
	}
	if len(r.Members) == 0 || len(r.Members) > maxMembers || len(r.Revoked) > maxRevoked {
		fault("there must be 1 to %d members and at most %d revoked (got %d and %d)", maxMembers, maxRevoked,
			len(r.Members), len(r.Revoked))
		return errors.Join(errs...)
	}
	names, ids := map[string]bool{}, map[string]bool{}
	for _, m := range r.Members {
		if err := m.validate(); err != nil {
			fault("member %q: %w", m.Name, err)
		}
		if names[m.Name] || ids[m.ID] {
			fault("member %q: the name or the peer ID %s is another member's, too", m.Name, m.ID)
		}
		names[m.Name], ids[m.ID] = true, true
	}
	for _, v := range r.Revoked {
		if _, err := publicKey(v.ID); err != nil || !named(v.Name, nameLetters) || v.Serial < 2 || v.Serial > r.Serial {
			fault("revoked %q must have a name, a peer ID and a serial of 2 to %d", v.Name, r.Serial)
		}
		if ids[v.ID] {
			fault("revoked %q: peer ID %s is a member's, or revoked twice", v.Name, v.ID)
		}
		ids[v.ID] = true
	}
	if n := len(r.Administrators()); r.Quorum > n || 2*r.Quorum <= n {
		fault("quorum must be more than half of the administrators, so that two versions of one serial need one who "+
			"signed both (got %d of %d)", r.Quorum, n)
	}
	return errors.Join(errs...)
}

// CheckTexts returns all faults of m's name and addresses. A name has letters that no terminal obeys, and could not be
// taken for a peer ID; an address is plain text that has one spelling. Package p2p decides whether it can be dialled.
func (m Member) CheckTexts() error {
	var errs []error
	if !named(m.Name, nameLetters) {
		errs = append(errs, fmt.Errorf("name must be 1 to %d letters, digits and . _ - (got %q)", maxName, m.Name))
	}
	if _, err := publicKey(m.Name); err == nil {
		errs = append(errs, errors.New("name: it is a peer ID, and could be taken for that peer"))
	}
	for _, a := range m.Addresses {
		if len(a) > maxAddress || !strings.HasPrefix(a, "/") || !only(a, nameLetters+"/:%") {
			errs = append(errs,
				fmt.Errorf("address must be a multiaddress such as /ip4/10.0.0.1/udp/4001/quic-v1 (got %q)", a))
		}
	}
	return errors.Join(errs...)
}

func (m Member) validate() error {
	errs := []error{m.CheckTexts()}
	if _, err := publicKey(m.ID); err != nil {
		errs = append(errs, err)
	}
	if !slices.Contains(roles, m.Role) {
		errs = append(errs, fmt.Errorf("role must be one of %v (got %q)", roles, m.Role))
	}
	if err := m.Expires.validate(); err != nil {
		errs = append(errs, fmt.Errorf("expires: %w", err))
	}
	if len(m.Addresses) > maxAddresses {
		errs = append(errs, fmt.Errorf("there must be at most %d addresses (got %d)", maxAddresses, len(m.Addresses)))
	}
	return errors.Join(errs...)
}

const (
	digits      = "0123456789"
	lower       = "abcdefghijklmnopqrstuvwxyz"
	nameLetters = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits + "._-"
)

func named(s, letters string) bool { return s != "" && len(s) <= maxName && only(s, letters) }

// only reports whether s is made of letters.
func only(s, letters string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(letters, r) })
}

func isFingerprint(s string) bool { return len(s) == 64 && only(s, digits+"abcdef") }

// Administrators lists the members who sign rosters.
func (r Roster) Administrators() (all []Member) {
	for _, m := range r.Members {
		if m.Administrator {
			all = append(all, m)
		}
	}
	return all
}

// Find returns the member with this name or peer ID.
func (r Roster) Find(nameOrID string) (Member, bool) {
	i := r.index(nameOrID)
	if i < 0 {
		return Member{}, false
	}
	return r.Members[i], true
}

func (r Roster) index(nameOrID string) int {
	return slices.IndexFunc(r.Members, func(m Member) bool { return m.ID == nameOrID || m.Name == nameOrID })
}

// Admit returns the member with this peer ID, or a *Refusal: it is unknown, was revoked, its time
// is over, or it has none of the roles wanted (none given: any will do).
func (r Roster) Admit(id string, now time.Time, wanted ...Role) (Member, error) {
	i := slices.IndexFunc(r.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		if v := slices.IndexFunc(r.Revoked, func(v Revoked) bool { return v.ID == id }); v >= 0 {
			return Member{}, refuse("roster.revoked", "%s (%s) was revoked in serial %d of %s", r.Revoked[v].Name, id,
				r.Revoked[v].Serial, r.Federation)
		}
		return Member{}, refuse("roster.unknown", "%s is not in serial %d of %s", id, r.Serial, r.Federation)
	}
	m := r.Members[i]
	if m.Expires.Past(now) {
		return Member{}, refuse("roster.expired", "the membership of %s (%s) ended on %s: its administrators can add "+
			"it again with a later day", m.Name, id, m.Expires)
	}
	if len(wanted) > 0 && !slices.Contains(wanted, m.Role) {
		return Member{}, refuse("roster.role", "role of %s (%s) must be one of %v (got %s)", m.Name, id, wanted, m.Role)
	}
	return m, nil
}

// Next returns the roster's next version, so far without a change.
func (r Roster) Next() Roster {
	n := r
	n.Serial, n.Previous = r.Serial+1, r.Fingerprint()
	return n
}

// Add appends m, or replaces the member with its peer ID, as for a later day or another address. quorum is the quorum
// of the result; 0 keeps the present one if that is allowed, and otherwise sets the majority.
func (r *Roster) Add(m Member, quorum int) error {
	if v := slices.IndexFunc(r.Revoked, func(v Revoked) bool { return v.ID == m.ID }); v >= 0 {
		return refuse("roster.revoked", "%s was revoked in serial %d: a peer that comes back makes a new identity",
			r.Revoked[v].Name, r.Revoked[v].Serial)
	}
	if i := slices.IndexFunc(r.Members, func(o Member) bool { return o.ID == m.ID }); i >= 0 {
		r.Members = slices.Clone(r.Members) // another version may share them
		r.Members[i] = m
	} else {
		r.Members = append(slices.Clip(r.Members), m)
	}
	return r.settle(quorum)
}

// Revoke removes the member with this name or peer ID for good; quorum as for Add. From a first
// version, which was never in force, it only takes the member off.
func (r *Roster) Revoke(nameOrID string, quorum int) error {
	i := r.index(nameOrID)
	if i < 0 {
		return fmt.Errorf("roster: %q must be a member of %s", nameOrID, r.Federation)
	}
	if r.Serial > 1 {
		r.Revoked = append(slices.Clip(r.Revoked),
			Revoked{Name: r.Members[i].Name, ID: r.Members[i].ID, Serial: r.Serial})
	}
	r.Members = slices.Delete(slices.Clone(r.Members), i, i+1)
	return r.settle(quorum)
}

func (r *Roster) settle(quorum int) error {
	n := len(r.Administrators())
	switch {
	case quorum != 0:
		r.Quorum = quorum
	case r.Quorum > n || 2*r.Quorum <= n:
		r.Quorum = n/2 + 1
	}
	return r.Validate()
}

// Changes lists in words how next differs from r, for an administrator to read before signing.
func (r Roster) Changes(next Roster) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, m := range r.Members {
		n, kept := next.Find(m.ID)
		switch {
		case !kept:
			say("- %s", m)
		case m.String() != n.String():
			say("- %s", m)
			say("+ %s", n)
		}
	}
	for _, m := range next.Members {
		if _, had := r.Find(m.ID); !had {
			say("+ %s", m)
		}
	}
	if r.Quorum != next.Quorum {
		say("quorum %d, was %d", next.Quorum, r.Quorum)
	}
	return lines
}

func (m Member) String() string {
	s := fmt.Sprintf("%s  %s  %s", m.Name, m.ID, m.Role)
	if m.Administrator {
		s += ", administrator"
	}
	s += ", until " + string(m.Expires)
	if len(m.Addresses) > 0 {
		s += "  " + strings.Join(m.Addresses, " ")
	}
	return s
}

// AllowsRelays returns a *Refusal for each of the addresses, relays' or members', that leads over a
// relay which the roster does not list.
func (r Roster) AllowsRelays(now time.Time, relays, addresses []string) error {
	listed := r.RelayAddresses(now)
	for _, a := range addresses {
		if relay, _, over := strings.Cut(a, "/p2p-circuit"); over {
			relays = append(slices.Clip(relays), relay)
		}
	}
	var errs []error
	for _, a := range relays {
		if !slices.Contains(listed, a) {
			errs = append(errs, refuse("roster.relays", "relay %s is not in serial %d of %s: its administrators can "+
				"add it with role relay", a, r.Serial, r.Federation))
		}
	}
	return errors.Join(errs...)
}

// RelayAddresses returns the multiaddresses of the federation's relays, which end in /p2p/ID.
func (r Roster) RelayAddresses(now time.Time) (out []string) {
	for _, m := range r.Members {
		if m.Role != Relay || m.Expires.Past(now) {
			continue
		}
		for _, a := range m.Addresses {
			out = append(out, a+"/p2p/"+m.ID)
		}
	}
	return out
}
