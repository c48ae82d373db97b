package p2p

import (
	"bytes"
	"strings"
	"testing"
)

func sample() greeting {
	g := greeting{Hello: Hello{Generation: 7, Plan: [32]byte{1}, Partition: [32]byte{2}}, rank: 2, size: 4, roster: [32]byte{3}}
	g.roster[31], g.Plan[31], g.Partition[31] = 4, 5, 6
	return g
}

func TestHelloLayout(t *testing.T) {
	want := "HEDL" + "\x01\x00" + "\x02\x00\x00\x00" + "\x04\x00\x00\x00" + "\x07\x00\x00\x00\x00\x00\x00\x00" +
		"\x03" + strings.Repeat("\x00", 30) + "\x04" + "\x01" + strings.Repeat("\x00", 30) + "\x05" + "\x02" + strings.Repeat("\x00", 30) + "\x06"
	if got := sample().encode(); string(got) != want {
		t.Fatalf("encoded\n%x, want\n%x", got, want)
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
		{"short", good[:helloSize-1], "117 bytes"},
		{"long", append(bytes.Clone(good), 0), "119 bytes"},
		{"magic", edit(0, 'h'), "begins with"},
		{"version", edit(4, 9), "version 9"},
		{"rank", edit(6, 4), "rank 4 in 4"},
		{"no peers", edit(10, 0), "rank 2 in 0"},
		{"many peers", edit(10, 0, 0, 0, 1), "in 16777216 peers"},
	} {
		_, err := parseGreeting(test.in)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
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
