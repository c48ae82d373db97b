package main

import (
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/mat"
)

// FuzzPlan: a plan comes from others. Any text is refused or gives settings that are checked before
// memory is allocated for them.
func FuzzPlan(f *testing.F) {
	f.Add([]byte("mode: retexo\nmodel: gcn\nencoder: pca:16\nlayers: 3\ncarrier: auto\npeers:\n- name: north\n" +
		"  id: 12D3KooW\n  addresses: [/ip4/10.0.0.1/udp/4001/quic-v1]\n"))
	f.Add([]byte("hops: 2\nrelays: [/ip4/10.0.0.1/tcp/1/p2p/12D3KooW]\n"))
	f.Add([]byte("mode: fullbatch\nmodel: gat\nencoder: raw\norder: fixed\nmemory: 99\n"))
	f.Add([]byte("layers: 2000000000\nhidden: 9223372036854775807\nheads: -1\n"))
	f.Add([]byte("fanouts: !0 &a\n0\n"))
	f.Add([]byte("peers: &a [*a, *a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return
		}
		p, err := heddle.ReadPlan(text, nil, nil)
		if err != nil {
			return
		}
		p.Identify(&shard.Shard{X: graph.Features{Dense: mat.New(1, 10)}, Labels: graph.Labels{Classes: 3}})
		disclosure.CheckMembers(*p)
		node.Config{Transport: p.Carrier, Relays: p.Relays}.Validate()
		if rank, err := p.Rank("12D3KooW"); err == nil && p.Members[rank].ID != "12D3KooW" {
			t.Fatalf("rank %d", rank)
		}
	})
}
