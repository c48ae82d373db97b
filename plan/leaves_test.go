package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// withLeaves returns a plan of a single closed form with several members, two on each host, and the given settings.
func withLeaves(t *testing.T, members int, settings string) Plan {
	t.Helper()
	p, err := Read(sections(""+settings), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for r := range members {
		texts = append(texts, fmt.Sprintf("m%d=id%d@10.0.0.%d", r, r, r%2))
	}
	if err := p.AddMembers(texts, 4001); err != nil {
		t.Fatal(err)
	}
	return *p
}

// TestCollectLeaves: members that share a host get different ports, and hosts are compared by their whole names.
func TestCollectLeaves(t *testing.T) {
	p := withLeaves(t, 3, "phones: 50")
	p.Members = append(p.Members, Member{Name: "far", ID: "x"})
	if err := p.CollectLeaves(4101); err != nil {
		t.Fatal(err)
	}
	for r, must := range []string{"/ip4/10.0.0.0/udp/4101/quic-v1", "/ip4/10.0.0.1/udp/4101/quic-v1",
		"/ip4/10.0.0.0/udp/4102/quic-v1"} {
		if !slices.Equal(p.Members[r].LeafAddresses, []string{must}) {
			t.Errorf("member %d collects at %v, must at %s", r, p.Members[r].LeafAddresses, must)
		}
	}
	if p.Collecting() != 3 || p.Validate() != nil {
		t.Errorf("%d members collect (%v), must be 3", p.Collecting(), p.Validate())
	}
	c, err := p.closedFormConfig(task{Features: 4, Classes: 2})
	if err != nil || c.Random != 0 || c.Target != "labels" {
		t.Errorf("with leaves there are %d random features and class_target %s (%v), must be 0 and labels", c.Random,
			c.Target, err)
	}
	if err := p.CollectLeaves(4001); err == nil || !strings.Contains(err.Error(), "must not be a member's") {
		t.Errorf("the port of members for leaves: %v", err)
	}
}

// TestFaultsOfLeaves: what leaves cannot have is refused.
func TestFaultsOfLeaves(t *testing.T) {
	for settings, must := range map[string]string{
		"phones: 5":                       "least_leaves must be at most phones, 5 (got 20)",
		"phones: 50\nleaf_quorum: 60":     "leaf_quorum must be at most phones, 50 (got 60)",
		"phones: 50\nrandom_features: 64": "random_features must be -1 or 0",
		"phones: 50\nruns: 3":             "runs must be 1 with phones (got 3)",
		"phones: 50\nepsilon: 4":          "epsilon must be 0",
		"phones: 50\nsecure_sums: off":    "phones need 2 to 64 members with leaf_addresses",
	} {
		p := withLeaves(t, 2, settings)
		if must != "phones need 2 to 64 members with leaf_addresses" {
			if err := p.CollectLeaves(4101); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), must) {
			t.Errorf("%q: the error is %v, must say %q", settings, err, must)
		}
	}
	p := withLeaves(t, 3, "")
	p.Members[1].LeafAddresses, p.Members[2].LeafAddresses = []string{"/ip4/10.0.0.1/udp/1/quic-v1"},
		[]string{"/ip4/10.0.0.1/udp/2/quic-v1"}
	if err := p.Validate(); err == nil ||
		!strings.Contains(err.Error(), "the first 2 members must have leaf_addresses (m0 has none)") ||
		!strings.Contains(err.Error(), "only with phones above 0") {
		t.Errorf("members that collect are not the first, and there are no leaves: %v", err)
	}
}
