package main

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/p2p"
)

// FuzzPlan: a plan comes from others. Whatever its text, it is refused or gives settings that are checked before memory is
// taken for them.
func FuzzPlan(f *testing.F) {
	f.Add([]byte("mode: retexo\nmodel: gcn\nencoder: pca:16\nlayers: 3\ncarrier: auto\npeers:\n- name: north\n  id: 12D3KooW\n  addresses: [/ip4/10.0.0.1/udp/4001/quic-v1]\n"))
	f.Add([]byte("preset: frugal\nlambdas: [0.1, 1]\nrelays: [/ip4/10.0.0.1/tcp/1/p2p/12D3KooW]\n"))
	f.Add([]byte("mode: fullbatch\nmodel: gat\nencoder: raw\nboundary: sample:0.5\nmemory: 99\n"))
	f.Add([]byte("layers: 2000000000\nhidden: 9223372036854775807\nheads: -1\n"))
	f.Add([]byte("lambdas: !0 &a\n0\n"))
	f.Add([]byte("peers: &a [*a, *a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return
		}
		p := startPlan()
		p.Settings = Settings{Mode: "retexo", Model: "gcn"} // as load does
		if agreedPlan.overlay(p, "plan.yaml", text, pflag.NewFlagSet("", pflag.ContinueOnError)) != nil {
			return
		}
		s, err := base(p.Mode, p.Preset, p.Model)
		if err != nil {
			return
		}
		p.Settings = s
		if agreedPlan.overlay(p, "plan.yaml", text, pflag.NewFlagSet("", pflag.ContinueOnError)) != nil {
			t.Fatal("the second reading fails where the first did not")
		}
		p.fingerprint(task{Kind: "single", Features: 10, Classes: 3})
		p.validate()
		p2p.Config{Transport: p.Carrier, Relays: p.Relays}.Validate()
		if rank, err := p.rank("12D3KooW", "plan.yaml"); err == nil && p.Peers[rank].ID != "12D3KooW" {
			t.Fatalf("rank %d", rank)
		}
	})
}
