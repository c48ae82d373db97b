package heddle

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/p2p/node"
)

// Roster returns the members of p, by rank, as package node takes them.
func (p Plan) Roster() (r node.Roster) {
	for _, m := range p.Members {
		r.Members = append(r.Members, node.Member{Name: m.Name, ID: m.ID, Addrs: m.Addresses})
	}
	return r
}

// CheckMembers returns all faults of p's members. A plan may have none: peers with a common secret
// derive them.
func (p Plan) CheckMembers() error {
	var errs faults
	if len(p.Members) > 0 {
		errs = append(errs, p.Roster().Validate())
	}
	for r, m := range p.Members {
		if first := slices.IndexFunc(p.Members, func(one Member) bool { return one.Name == m.Name }); first < r {
			errs.add("members must have a name each (got %q for number %d and number %d)", m.Name, first, r)
		}
	}
	return errors.Join(errs...)
}

// Names returns the names of the members by rank.
func (p Plan) Names() (names []string) {
	for _, m := range p.Members {
		names = append(names, m.Name)
	}
	return names
}

// Rank returns the rank of the member with that ID, or an *InputError.
func (p Plan) Rank(id string) (int, error) {
	if r := slices.IndexFunc(p.Members, func(m Member) bool { return m.ID == id }); r >= 0 {
		return r, nil
	}
	return 0, input(fmt.Errorf("members: this peer's ID %s is not among the %d listed: ask for it to be added, or give --identity", id, len(p.Members)))
}

// AddMembers adds members given as NAME=ID or NAME=ID@HOST, and returns all faults of the texts.
// The first member of a host listens on port, the next one on the next port; a member without a
// host only dials.
func (p *Plan) AddMembers(texts []string, port int) error {
	ports := make(map[string]int)
	var errs faults
	for _, text := range texts {
		name, id, ok := strings.Cut(text, "=")
		if !ok || name == "" || id == "" {
			errs.add("a peer must be NAME=ID or NAME=ID@HOST (got %q)", text)
			continue
		}
		id, host, reachable := strings.Cut(id, "@")
		m := Member{Name: name, ID: id, Addresses: []string{}}
		if reachable {
			kind := "dns"
			if ip, err := netip.ParseAddr(host); err == nil {
				kind = "ip4"
				if ip.Is6() {
					kind = "ip6"
				}
			}
			m.Addresses = addresses(p.Carrier, "/"+kind+"/"+host, port+ports[host])
			ports[host]++
		}
		p.Members = append(p.Members, m)
	}
	return errors.Join(errs...)
}

// DeriveMembers adds a member for each host, with keys that follow from a secret that all of them
// share (see identity.Derive), and returns the key of the member of that rank.
func (p *Plan) DeriveMembers(secret []byte, hosts []string, rank, port int) (own identity.Identity, err error) {
	var members []string
	for r, host := range hosts {
		id, err := identity.Derive(secret, r)
		if err != nil {
			return own, input(err)
		}
		if r == rank {
			own = id
		}
		members = append(members, fmt.Sprintf("rank-%d=%s@%s", r, id.PeerID(), host))
	}
	return own, input(p.AddMembers(members, port))
}

// addresses returns the multiaddresses at which a peer listens, at a host such as "/ip4/10.0.0.1".
func addresses(carrier, host string, port int) (all []string) {
	tails := map[string][]string{"tcp": {"/tcp/%d"}, "noise": {"/tcp/%d"}, "ws": {"/tcp/%d/wss"},
		"auto": {"/udp/%d/quic-v1", "/tcp/%d"}}[carrier]
	if tails == nil {
		tails = []string{"/udp/%d/quic-v1"}
	}
	for _, tail := range tails {
		all = append(all, host+fmt.Sprintf(tail, port))
	}
	return all
}

// IDOf returns the ID of the member of that name; empty: there is none.
func (p Plan) IDOf(name string) string {
	for _, m := range p.Members {
		if m.Name == name {
			return m.ID
		}
	}
	return ""
}

// naming adds to err the name of the member at fault, of which trainers know only the rank.
func (p Plan) naming(err error) error {
	var at *comm.PeerError
	if errors.As(err, &at) && at.Name == "" && at.Rank >= 0 && at.Rank < len(p.Members) {
		return fmt.Errorf("%s: %w", p.Members[at.Rank].Name, err)
	}
	return err
}
