package admission

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// someone is a peer of the tests: its key follows from its name.
type someone struct {
	name string
	id   string
	key  ed25519.PrivateKey
}

func person(name string) someone {
	key := ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32s", name)))
	of, err := crypto.UnmarshalEd25519PublicKey(key.Public().(ed25519.PublicKey))
	if err != nil {
		panic(err)
	}
	id, err := peer.IDFromPublicKey(of)
	if err != nil {
		panic(err)
	}
	return someone{name, id.String(), key}
}

func (p someone) sign(message []byte) ([]byte, error) { return ed25519.Sign(p.key, message), nil }

func (p someone) member() Member {
	return Member{Name: p.name, ID: p.id, Role: Trainer, Expires: "2027-03-31",
		Addresses: []string{"/dns/" + p.name + ".example/udp/4001/quic-v1"}}
}

func (p someone) admin() Member {
	m := p.member()
	m.Administrator = true
	return m
}

var (
	north, south, west, east = person("north"), person("south"), person("west"), person("east")
	stranger                 = person("stranger")
	now                      = time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
)

// three is the first roster of the tests: three hospitals, all of them administrators, two of whom
// must sign.
func three() Roster {
	return Roster{Federation: "tumour-registry", Serial: 1, Quorum: 2,
		Members: []Member{north.admin(), south.admin(), west.admin()}}
}

func signed[T document](t *testing.T, body T, by ...someone) *Signed[T] {
	t.Helper()
	s := Unsigned(body)
	for _, p := range by {
		if err := s.Sign(p.id, p.sign); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func encoded[T document](t *testing.T, s *Signed[T]) []byte {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rule fails unless err is a refusal by that rule which contains all of words; an empty rule wants no error.
func rule(t *testing.T, what string, err error, want string, words ...string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v, want no error", what, err)
		}
		return
	}
	var r *Refusal
	if !errors.As(err, &r) || r.Rule != want {
		t.Errorf("%s: %v, want rule %s", what, err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q, must contain %q", what, err, w)
		}
	}
}

func TestPeerID(t *testing.T) {
	for _, p := range []someone{north, south, west, stranger} {
		key, err := publicKey(p.id)
		if err != nil || !key.Equal(p.key.Public()) || !strings.HasPrefix(p.id, "12D3KooW") || len(p.id) != 52 {
			t.Errorf("%s: key %x (%v), want %x", p.id, key, err, p.key.Public())
		}
	}
	for _, bad := range []string{"", "12D3KooW", north.id + "1", "1" + north.id, north.id[:51],
		strings.Replace(north.id, "K", "0", 1), "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N",
		strings.Repeat("1", 65)} {
		if _, err := publicKey(bad); err == nil {
			t.Errorf("%q is taken for a peer ID", bad)
		}
	}
}

func TestQuorum(t *testing.T) {
	admins := []Member{north.admin(), south.admin(), west.admin(), east.admin()}
	for n := range 5 {
		for q := -1; q <= 5; q++ {
			r := three()
			r.Members = append([]Member{stranger.member()}, admins[:n]...)
			r.Quorum = q
			ok := r.Validate() == nil
			if want := q <= n && 2*q > n; ok != want {
				t.Errorf("quorum %d of %d administrators: valid is %v, want %v", q, n, ok, want)
			}
			want := n/2 + 1
			if ok {
				want = q
			}
			if r.settle(0); r.Quorum != want {
				t.Errorf("quorum %d of %d administrators becomes %d, must be %d", q, n, r.Quorum, want)
			}
		}
	}
}

// TestSignatures: who must sign, for the first version and for the ones after it.
func TestSignatures(t *testing.T) {
	next := three().Next()
	if err := next.Add(east.admin(), 0); err != nil || next.Quorum != 3 {
		t.Fatalf("quorum %d (%v), want 3, as 2 is not more than half of 4", next.Quorum, err)
	}
	late := time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		what string
		by   []someone
		at   time.Time
		want string
		says []string
	}{
		{"two of three", []someone{north, west}, now, "", nil},
		{"all", []someone{north, south, west}, now, "", nil},
		{"one", []someone{south}, now, "roster.quorum",
			[]string{"1 of the 2", "signed by south", "north (" + north.id, "west ("}},
		{"nobody", nil, now, "roster.quorum", []string{"0 of the 2", "signed by nobody"}},
		{"one and a stranger", []someone{north, stranger}, now, "roster.quorum",
			[]string{stranger.id + ", no administrator"}},
		{"one and a new administrator", []someone{north, east}, now, "roster.quorum",
			[]string{east.id + ", no administrator"}},
		{"two and a stranger", []someone{north, south, stranger}, now, "", nil},
		{"on the last day", []someone{north, west}, late.Add(-time.Nanosecond), "", nil},
		{"after it", []someone{north, west}, late, "roster.quorum",
			[]string{"0 of the 2", "membership ended: north (on 2027-03-31)"}},
	} {
		rule(t, "first version, "+c.what, found(signed(t, three(), c.by...), c.at), c.want, c.says...)
		rule(t, "next version, "+c.what, Accept(signed(t, three(), north, south), signed(t, next, c.by...), c.at),
			c.want, c.says...)
	}
	rule(t, "a later version as the first", found(signed(t, next, north, south), now), "roster.serial")
}

func TestAccept(t *testing.T) {
	first := signed(t, three(), north, south)
	change := func(r Roster, f func(*Roster) error) Roster {
		t.Helper()
		n := r.Next()
		if err := f(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	two := change(three(), func(r *Roster) error { return r.Add(east.member(), 0) })
	other := change(three(), func(r *Roster) error { return r.Add(stranger.member(), 0) })
	without := change(two, func(r *Roster) error { return r.Revoke("east", 0) })
	later := change(without, func(r *Roster) error { return r.Revoke("west", 0) })
	back := without
	back.Serial, back.Revoked, back.Previous = 4, nil, without.Fingerprint()
	foreign := two
	foreign.Federation = "bone-registry"
	for _, c := range []struct {
		what          string
		trusted, next *Signed[Roster]
		want          string
		says          []string
	}{
		{"the next one", first, signed(t, two, north, west), "", nil},
		{"the same", first, signed(t, three(), south, west), "", nil},
		{"two versions on", first, signed(t, without, north, west), "", nil},
		{"three versions on", first, signed(t, later, north, south), "", nil},
		{"an old one, played again", signed(t, two, north, south), first, "roster.serial",
			[]string{"serial 1", "older than serial 2"}},
		{"another of the same serial", signed(t, two, north, south), signed(t, other, south, west), "roster.fork",
			[]string{"serial 2", south.id}},
		{"one that follows another", signed(t, other, north, south), signed(t, without, north, south), "roster.fork",
			[]string{"serial 3 of tumour-registry follows another serial 2"}},
		{"a revocation taken back", signed(t, without, north, south), signed(t, back, north, south), "roster.revoked",
			[]string{"east", east.id}},
		{"another federation's", first, signed(t, foreign, north, south), "roster.federation",
			[]string{"bone-registry"}},
		{"signed by one revoked since", signed(t, later, north, south),
			signed(t, change(later, func(r *Roster) error { return r.Add(stranger.member(), 0) }), north, west),
			"roster.quorum", []string{"1 of the 2", west.id + ", no administrator"}},
	} {
		rule(t, c.what, Accept(c.trusted, c.next, now), c.want, c.says...)
	}
}

func TestAdmit(t *testing.T) {
	r := three().Next()
	if err := errors.Join(r.Add(Member{Name: "eye", ID: east.id, Role: Observer, Expires: "2026-11-20"}, 0),
		r.Revoke("west", 0)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, want string
		roles    []Role
		at       time.Time
		says     []string
	}{
		{north.id, "", nil, now, nil},
		{north.id, "", []Role{Trainer, Coordinator}, now, nil},
		{north.id, "roster.role", []Role{Relay}, now, []string{"north", "trainer"}},
		{north.id, "roster.expired", nil, now.AddDate(1, 0, 0), []string{"2027-03-31", "north"}},
		{east.id, "roster.expired", nil, now, []string{"eye", "2026-11-20"}},
		{east.id, "", []Role{Observer}, now.AddDate(0, 0, -1), nil},
		{west.id, "roster.revoked", nil, now, []string{"west", "serial 2"}},
		{stranger.id, "roster.unknown", nil, now, []string{stranger.id}},
		{"north", "roster.unknown", nil, now, nil}, // names are for people, and admit nobody
	} {
		m, err := r.Admit(c.id, c.at, c.roles...)
		rule(t, c.id, err, c.want, c.says...)
		if err == nil && m.ID != c.id {
			t.Errorf("%s: admitted %s", c.id, m.ID)
		}
	}
	rule(t, "a revoked key comes back", r.Add(west.member(), 0), "roster.revoked", "west", "new identity")
}

func TestRosterFaults(t *testing.T) {
	for want, spoil := range map[string]func(*Roster){
		"federation":                          func(r *Roster) { r.Federation = "Tumour Registry" },
		"serial must be 1 or more (got 0)":    func(r *Roster) { r.Serial = 0 },
		"serial 1 has none":                   func(r *Roster) { r.Previous = strings.Repeat("a", 64) },
		"64 hexadecimal":                      func(r *Roster) { r.Serial = 2; r.Previous = "abc" },
		"(got 0 and 0)":                       func(r *Roster) { r.Members = nil },
		"(got 4097 and 0)":                    func(r *Roster) { r.Members = make([]Member, maxMembers+1) },
		"another member's":                    func(r *Roster) { r.Members[1].Name = "north" },
		"peer ID " + north.id + " is another": func(r *Roster) { r.Members[1].ID = north.id },
		"it is a peer ID":                     func(r *Roster) { r.Members[1].Name = north.id },
		"letters, digits and":                 func(r *Roster) { r.Members[1].Name = "süd" },
		`(got "boss")`:                        func(r *Roster) { r.Members[1].Role = "boss" },
		`"2027-02-30"`:                        func(r *Roster) { r.Members[1].Expires = "2027-02-30" },
		`expires: must be a day such as 2027-03-31 (got "")`: func(r *Roster) { r.Members[1].Expires = "" },
		`(got "10.0.0.1")`:              func(r *Roster) { r.Members[1].Addresses = []string{"10.0.0.1"} },
		"at most 16 addresses (got 17)": func(r *Roster) { r.Members[1].Addresses = make([]string, 17) },
		"is a member's, or revoked twice": func(r *Roster) {
			*r = r.Next()
			r.Revoked = []Revoked{{"north", north.id, 2}}
		},
		"serial of 2 to 2": func(r *Roster) { *r = r.Next(); r.Revoked = []Revoked{{"east", east.id, 3}} },
	} {
		r := three()
		spoil(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, must contain %q", err, want)
		}
	}
	r := three()
	r.Quorum, r.Members[0].Role, r.Federation = 9, "", ""
	if err := r.Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v, want all three faults", err)
	}
}

// TestAnyByteChanged: no byte of a signed file can be changed, added or taken away unnoticed.
func TestAnyByteChanged(t *testing.T) {
	next := three().Next()
	if err := next.Revoke("west", 0); err != nil {
		t.Fatal(err)
	}
	flip(t, encoded(t, signed(t, next, north, south)),
		func(b []byte) error { _, err := parseDocument[Roster](b); return err })
	flip(t, encoded(t, signed(t, consent(), north)),
		func(b []byte) error { _, err := parseDocument[Approval](b); return err })
}

func flip(t *testing.T, file []byte, parse func([]byte) error) {
	t.Helper()
	if err := parse(file); err != nil {
		t.Fatal(err)
	}
	for i := range file {
		for _, mask := range []byte{0x01, 0x20, 0x80} { // another digit, another case, no ASCII
			b := bytes.Clone(file)
			b[i] ^= mask
			if parse(b) == nil {
				t.Errorf("byte %d: %q instead of %q is not noticed", i, b[i], file[i])
			}
		}
		if parse(file[:i]) == nil {
			t.Errorf("cut off after %d bytes, and not noticed", i)
		}
		if parse(append(append(bytes.Clone(file[:i]), ' '), file[i:]...)) == nil {
			t.Errorf("a space before byte %d is not noticed", i)
		}
	}
	if parse(append(bytes.Clone(file), file...)) == nil {
		t.Error("a second copy behind the first is not noticed")
	}
}

func TestParseSays(t *testing.T) {
	good := string(encoded(t, signed(t, three(), north, south)))
	swapped := func() string {
		s := signed(t, three(), north, south)
		s.Signatures[0], s.Signatures[1] = s.Signatures[1], s.Signatures[0]
		return string(encoded(t, s))
	}()
	doubled := func() string {
		s := signed(t, three(), north)
		s.Signatures = append(s.Signatures, s.Signatures[0])
		return string(encoded(t, s))
	}()
	for what, c := range map[string]struct{ file, want string }{
		"empty":          {"", "another: EOF"},
		"too long":       {strings.Repeat(" ", maxFile+1), "more than 1048576 bytes"},
		"deep":           {strings.Repeat("[", maxFile), "must be a roster"},
		"an approval":    {string(encoded(t, signed(t, consent(), north))), `must be a roster (got "approval 1")`},
		"a later layout": {strings.Replace(good, "roster 1", "roster 2", 1), `must be a roster (got "roster 2")`},
		"DOS lines":      {strings.ReplaceAll(good, "\n", "\r\n"), "line 1 is not as this program writes it"},
		"another name":   {strings.Replace(good, `"north"`, `"nerth"`, 1), "is not of this content"},
		"another case":   {strings.Replace(good, `"serial"`, `"Serial"`, 1), "line 5"},
		"a field twice":  {strings.Replace(good, `"serial": 1,`, "\"serial\": 1,\n    \"serial\": 1,", 1), "line 6"},
		"an unknown field": {strings.Replace(good, `"serial": 1,`, `"serial": 1, "boss": true,`, 1),
			`unknown field "boss"`},
		"signatures swapped": {swapped, "not in order"},
		"a signature twice":  {doubled, "each signer once"},
		"null for signatures": {good[:strings.Index(good, `"signatures"`)] + "\"signatures\": null\n}\n",
			"must have a list of at most 256 signatures (got 0)"},
	} {
		if _, err := parseDocument[Roster]([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, must contain %q", what, err, c.want)
		}
	}
	if _, err := parseDocument[Roster]([]byte(encoded(t, Unsigned(three())))); err != nil {
		t.Errorf("a draft without signatures: %v", err)
	}
}

// TestOneFederationForAll: adding or revoking a member leaves every other member's key, entry and
// approval as they are.
func TestOneFederationForAll(t *testing.T) {
	path := Trusted(filepath.Join(t.TempDir(), "sub", "trusted.json"))
	if _, err := path.Read(); !errors.Is(err, ErrUnknownFederation) {
		t.Errorf("%v, want %v", err, ErrUnknownFederation)
	}
	first := signed(t, three(), north, south)
	told := first.Body.Fingerprint()
	for _, c := range []struct{ told, want string }{
		{"", "ask an administrator"},
		{"12", "32 hexadecimal digits"},
		{strings.Repeat("z", 64), "32 hexadecimal digits"},
		{strings.Repeat("0", 64), "roster.fingerprint"},
	} {
		if err := path.Update(first, c.told, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("fingerprint %q: %v, must contain %q", c.told, err, c.want)
		}
	}
	rule(t, "too few signatures", path.Update(signed(t, three(), north), told, now), "roster.quorum")
	rule(t, "as read out", path.Update(first, strings.ToUpper(Grouped(told)), now), "")
	rule(t, "again", path.Update(first, "", now), "")

	second := three().Next()
	if err := second.Add(east.member(), 0); err != nil {
		t.Fatal(err)
	}
	third := second.Next()
	if err := third.Revoke(south.id, 0); err != nil {
		t.Fatal(err)
	}
	rule(t, "revoked", path.Update(signed(t, third, north, west), "", now), "")
	rule(t, "old serial", path.Update(signed(t, second, north, west), "", now), "roster.serial")
	held, err := path.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []someone{north, west, east} {
		if m, err := held.Body.Admit(p.id, now); err != nil || m.Name != p.name {
			t.Errorf("%s: %v", p.name, err)
		}
	}
	_, err = held.Body.Admit(south.id, now)
	rule(t, "south", err, "roster.revoked")
	want := "- south  " + south.id
	if lines := second.Changes(held.Body); len(lines) != 1 || !strings.HasPrefix(lines[0], want) {
		t.Errorf("changes: %q, want %q…", lines, want)
	}
	// A site that begins with a later version relies on a person's check of it, too.
	fresh := Trusted(filepath.Join(t.TempDir(), "trusted.json"))
	rule(t, "a later version first", fresh.Update(signed(t, third, north, west), third.Fingerprint(), now), "")
}

func FuzzRoster(f *testing.F) {
	s := Unsigned(three())
	for range 2 {
		b, err := s.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		if err := errors.Join(s.Sign(north.id, north.sign), s.Sign(west.id, west.sign)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte(`{"heddle":"roster 1","body":{"members":[{}]},"signatures":[]}`))
	f.Fuzz(func(t *testing.T, file []byte) { canonical[Roster](t, file) })
}

// canonical fails if a file that parses does not encode to the same bytes, or its parts cannot be used.
func canonical[T document](t *testing.T, file []byte) {
	s, err := parseDocument[T](file)
	if err != nil {
		return
	}
	if again := encoded(t, s); !bytes.Equal(file, again) {
		t.Errorf("%q encodes to %q", file, again)
	}
	if r, ok := any(s.Body).(Roster); ok {
		for _, m := range r.Members {
			r.Admit(m.ID, now)
		}
		if n := r.Next(); n.Serial > r.Serial && n.Validate() != nil {
			t.Errorf("the next version of %q is not valid", file)
		}
	}
}

// TestVersionsAreValues: changing one version leaves the versions that it was made of as they are.
func TestVersionsAreValues(t *testing.T) {
	first := three()
	before := first.Fingerprint()
	for _, edit := range []func(*Roster) error{
		func(r *Roster) error { return r.Add(east.member(), 0) },
		func(r *Roster) error { m := north.admin(); m.Expires = "2099-01-01"; return r.Add(m, 0) },
		func(r *Roster) error { return r.Revoke("north", 0) },
	} {
		for _, r := range []Roster{first, first.Next()} {
			if err := edit(&r); err != nil {
				t.Error(err)
			}
			if first.Fingerprint() != before {
				t.Fatal("the first version has changed")
			}
		}
	}
}
