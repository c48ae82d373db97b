package node

import (
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

func TestConfigReportsAllFaults(t *testing.T) {
	err := Config{Transport: "carrier pigeon", Listen: []string{"localhost:80"}, MaxFrame: -1,
		MaxPeers: MostPeers + 1}.Validate()
	for _, want := range []string{"identity", "carrier pigeon", "an address to listen on", "MaxFrame", "MaxPeers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not name %s", err, want)
		}
	}
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		transport, addr string
		ok              bool
	}{
		{"", "/ip4/127.0.0.1/udp/0/quic-v1", true},
		{"quic", "/ip6/::1/udp/0/quic-v1", true},
		{"quic", "/ip4/127.0.0.1/tcp/0", false},
		{"quic", "/ip4/127.0.0.1/udp/0", false},
		{"quic", "/ip4/127.0.0.1/udp/0/quic-v1/webtransport", false},
		{"tcp", "/ip4/127.0.0.1/tcp/0", true},
		{"tcp", "/ip4/127.0.0.1/tcp/0/ws", false},
		{"tcp", "/ip4/127.0.0.1/udp/0/quic-v1", false},
	} {
		err := Config{Identity: id, Transport: test.transport, Listen: []string{test.addr}}.Validate()
		if (err == nil) != test.ok {
			t.Errorf("%s over %q: error %v, must be ok %v", test.addr, test.transport, err, test.ok)
		}
	}
}

func TestRosterReportsAllFaults(t *testing.T) {
	a, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	b, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	roster := identity.Roster{Members: []identity.Member{
		{Name: "a", ID: a.PeerID()},
		{Name: "twin", ID: a.PeerID()},
		{Name: "", ID: b.PeerID(), Addrs: []string{"/ip4/1.2.3.4/tcp/1/p2p/" + a.PeerID()}},
		{Name: "d", ID: "site-d"},
		{Name: strings.Repeat("e", maxName+1), ID: b.PeerID(), Addrs: []string{"10.0.0.1:80", "/p2p/" + b.PeerID()}},
	}}
	_, err = parse(roster, 10)
	for _, want := range []string{"member 1 (twin): peer ID " + a.PeerID() +
		" must be of one member (member 0 has it, too)",
		"1 to 255 bytes (got 0)", "names another peer",
		`member 3 (d): its ID must be a peer ID, which heddle init prints (got "site-d")`, "1 to 255 bytes (got 256)",
		`"10.0.0.1:80"`, "must name a host and a port"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if _, err := parse(roster, 4); err == nil || !strings.Contains(err.Error(), "at most 4 members (got 5)") {
		t.Errorf("5 members under MaxPeers 4: %v", err)
	}
	if _, err := parse(identity.Roster{}, 4); err == nil {
		t.Error("an empty roster has no fault")
	}
}
