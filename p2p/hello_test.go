package p2p

import (
	"bytes"
	"strings"
	"testing"
)

func sample() greeting {
	g := greeting{Hello: Hello{Generation: 7, Plan: [32]byte{1}, Partition: [32]byte{2}}, rank: 2, size: 4,
		roster: [32]byte{3}, attempt: 9}
	g.roster[31], g.Plan[31], g.Partition[31] = 4, 5, 6
	return g
}

func TestHelloLayout(t *testing.T) {
	want := "HEDL" + "\x02\x00" + "\x02\x00\x00\x00" + "\x04\x00\x00\x00" + "\x07\x00\x00\x00\x00\x00\x00\x00" +
		"\x03" + strings.Repeat("\x00", 30) + "\x04" + "\x01" + strings.Repeat("\x00", 30) + "\x05" + "\x02" +
		strings.Repeat("\x00", 30) + "\x06\x09\x00\x00\x00\x00\x00\x00\x00"
	if got := sample().encode(); string(got) != want {
		t.Fatalf("encoded\n%x, must be\n%x", got, want)
	}
}

func TestParseGreeting(t *testing.T) {
	good := sample().encode()
	edit := func(at int, v ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], v)
		return b
	}
	for _, test := range []struct {
		name string
		in   []byte
		want string // in the error; "" for none
	}{
		{"good", good, ""},
		{"short", good[:helloSize-1], "got 125"},
		{"long", append(bytes.Clone(good), 0), "got 127"},
		{"magic", edit(0, 'h'), "must begin with"},
		{"version", edit(4, 9), "must be 2 (got 9)"},
		{"rank", edit(6, 4), "rank 4 of 4"},
		{"no peers", edit(10, 0), "rank 2 of 0"},
		{"attempt", edit(118, 0), "attempt"},
		{"many peers", edit(10, 0, 0, 0, 1), "of 16777216"},
	} {
		_, err := parseGreeting(test.in)
		if test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, must have %q", test.name, err, test.want)
		}
	}
}

func TestMismatchNamesEveryPart(t *testing.T) {
	ours := sample()
	ours.rank = 0
	theirs := sample()
	if err := theirs.mismatch(ours, 2, "site-c"); err != nil {
		t.Fatal(err)
	}
	theirs.Plan[0]++
	theirs.Partition[0]++
	theirs.Generation++
	theirs.roster[0]++
	err := theirs.mismatch(ours, 1, "site-b")
	for _, part := range []string{"roster", "rank", "generation", "plan", "partition"} {
		if !strings.Contains(err.Error(), "peer 1 (site-b) has another "+part) {
			t.Errorf("%v\ndoes not name the %s", err, part)
		}
	}
	theirs.size++
	if err := theirs.mismatch(ours, 1, "site-b"); !strings.Contains(err.Error(),
		"peer 1 (site-b) has another size: 5, ours is 4") {
		t.Errorf("%v\ndoes not name the size", err)
	}
}

// What parses re-encodes to the same bytes.
func FuzzHello(f *testing.F) {
	good := sample().encode()
	f.Add(good)
	f.Add(good[:50])
	f.Add([]byte("HEDL"))
	f.Add(bytes.Repeat([]byte{0xff}, helloSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseGreeting(b)
		if err == nil && !bytes.Equal(g.encode(), b) {
			t.Errorf("%x\nre-encodes to\n%x", b, g.encode())
		}
	})
}
