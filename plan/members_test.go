package plan

import (
	"slices"
	"strings"
	"testing"
)

func TestAddMembers(t *testing.T) {
	const udp, quic = "/udp/", "/quic-v1"
	for _, c := range []struct {
		texts []string
		port  int
		want  []string // the addresses of all members
		fault string
	}{
		{texts: []string{"a=X"}, port: 4001},
		{texts: []string{"a=X@10.0.0.1", "b=Y@10.0.0.1",
			"c=Z@10.0.0.2"}, port: 4001, want: []string{"/ip4/10.0.0.1/udp/4001/quic-v1",
			"/ip4/10.0.0.1/udp/4002/quic-v1", "/ip4/10.0.0.2/udp/4001/quic-v1"}},
		{texts: []string{"a=X@127.0.0.1:4711"}, port: 4001, want: []string{"/ip4/127.0.0.1" + udp + "4711" + quic}},
		{texts: []string{"a=X@::1", "b=Y@[::1]",
			"c=Z@[2001:db8::2]:5000"}, port: 4001, want: []string{"/ip6/::1/udp/4001/quic-v1",
			"/ip6/::1/udp/4002/quic-v1", "/ip6/2001:db8::2/udp/5000/quic-v1"}},
		{texts: []string{"a=X@peer_0.net-1:99"}, port: 4001, want: []string{"/dns/peer_0.net-1/udp/99/quic-v1"}},
		{texts: []string{"a=X@4f3a"}, port: 4001, want: []string{"/dns/4f3a/udp/4001/quic-v1"}},
		{texts: []string{"a=X@:4711"}, fault: `a: the host must be an IP address or a name`},
		{texts: []string{"a=X@h:99999"}, fault: `the port of a host must be 1 to 65535 (got "h:99999")`},
		{texts: []string{"a=X@h:0"}, fault: `the port of a host must be 1 to 65535 (got "h:0")`},
		{texts: []string{"a=X@h:x"}, fault: `the port of a host must be 1 to 65535 (got "h:x")`},
		{texts: []string{"a=X@:99999"}, fault: `the port of a host must be 1 to 65535 (got ":99999")`},
		{texts: []string{"a=X@"}, fault: `(got "")`},
		{texts: []string{"a=X@10.0.0.256"}, fault: `(got "10.0.0.256")`},
		{texts: []string{"a=X@[name]:1"}, fault: `(got "[name]:1")`},
		{texts: []string{"a=X@fe80::1%eth0"}, fault: "no zone"},
		{texts: []string{"a=X@a/tcp/1"}, fault: `(got "a/tcp/1")`},
		{texts: []string{"a=X@h", "b=Y@h"}, port: 65535, fault: "b: its port must be below 65536 (got 65536)"},
		{texts: []string{"a=X@h:4001", "b=Y@h"}, port: 4001,
			fault: "b: its address must not be another member's (got /dns/h/udp/4001/quic-v1)"},
		{texts: []string{"a"}, fault: `a peer must be NAME=ID, NAME=ID@HOST or NAME=ID@HOST:PORT (got "a")`},
	} {
		p := Plan{Carrier: "quic"}
		err := p.AddMembers(c.texts, c.port)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%q: the error must say %q (got %v)", c.texts, c.fault, err)
			}
			continue
		}
		if err != nil || !slices.Equal(p.Addresses(), c.want) {
			t.Errorf("%q: addresses must be %q (got %q, %v)", c.texts, c.want, p.Addresses(), err)
		}
	}
}
