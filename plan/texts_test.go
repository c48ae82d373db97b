package plan

import (
	"strings"
	"testing"
)

// id is a peer ID.
const id = "12D3KooWAAbDtCKfTbXVMXFWTBZuDyEeRcGZxb8QmNcLTiBRLF8d"

// TestDeletedPrivacySettings: a plan with a deleted setting of privacy is refused, and no other one is suggested.
func TestDeletedPrivacySettings(t *testing.T) {
	for _, text := range []string{"label_epsilon: 4", "colluding: 1", "clip_means: true", "least_in_sum: 3"} {
		_, err := Read(sections(""+text), nil, nil)
		name, _, _ := strings.Cut(text, ":")
		if got := errorText(err); !strings.Contains(got, "unknown field \""+name+"\"") {
			t.Errorf("%s: the error must be that the field is unknown (got %q)", text, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestStrangeTexts: texts of a plan are shown at terminals, so all have the alphabet of the roster.
func TestStrangeTexts(t *testing.T) {
	member := func(name, address string) string {
		return "members:\n- name: " + name + "\n  id: " + id + "\n  addresses: [" + address + "]\n"
	}
	const address = "/ip4/10.0.0.1/udp/4001/quic-v1"
	read(t, member("north", address), nil)
	for text, want := range map[string]string{
		member(`"no\e[2Jrth"`,
			address): `name must be 1 to 63 letters, digits and . _ - (got "no\x1b[2Jrth")`,
		member(`"north (verified)"`, address):     "name must be",
		member(strings.Repeat("n", 64), address):  "name must be",
		member(id, address):                       "could be taken for that peer",
		member("north", `"/ip4/1.2.3.4/tcp/1\r"`): "address must be a multiaddress",
		strings.Replace(member("n", address), id, `"12\e[A"`,
			1): `member 0: the ID must be one that heddle init prints (got "12\x1b[A")`,
		"relays: [\"/ip4/1.2.3.4/tcp/1/p2p/\\u202e\"]\n": "relays must be printable ASCII",
		"policy: \"\\e]0;x\\a\"\n":                       `policy must be printable ASCII (got "\x1b]0;x\a")`,
		member("north", address) +
			"- name: north\n  id: other\n": `members must have a name each (got "north" for number 0 and number 1)`,
		"seed: 1\n# " + strings.Repeat("x", 65<<10) + "\n": "at most 65536 bytes",
		"encoder: [&a [b, b], &b [*a, *a], &c [*b, *b]]\n": "must not have anchors",
	} {
		p, err := Read([]byte(text), nil, nil)
		if err == nil {
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\a\r") {
			t.Errorf("%.80q: the error has an escape: %q", text, err)
		}
	}
}
