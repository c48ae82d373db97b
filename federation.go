package heddle

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/p2p"
)

// Roster returns the members of p as p2p has them.
func (p Plan) Roster() (r p2p.Roster) {
	for _, m := range p.Members {
		r.Members = append(r.Members, p2p.Member{Name: m.Name, ID: m.ID, Addrs: m.Addresses})
	}
	return r
}

// CheckMembers returns the faults of p's members. A plan without members is of those that derive them.
func (p Plan) CheckMembers() error {
	var errs []error
	if len(p.Members) > 0 {
		errs = append(errs, p.Roster().Validate())
	}
	for r, m := range p.Members {
		if first := slices.IndexFunc(p.Members, func(one Member) bool { return one.Name == m.Name }); first < r {
			errs = append(errs, fmt.Errorf("members must have a name each (got %q for number %d and number %d)", m.Name, first, r))
		}
	}
	return errors.Join(errs...)
}

// Names lists the members by rank.
func (p Plan) Names() (names []string) {
	for _, m := range p.Members {
		names = append(names, m.Name)
	}
	return names
}

// Rank finds the member of an ID.
func (p Plan) Rank(id string) (int, error) {
	if r := slices.IndexFunc(p.Members, func(m Member) bool { return m.ID == id }); r >= 0 {
		return r, nil
	}
	return 0, input(fmt.Errorf("members: this peer's ID %s is not among the %d listed: ask for it to be added, or give --identity", id, len(p.Members)))
}

// AddMembers adds members from texts NAME=ID[@HOST]. On a host its first member listens on port, its next one on the next.
func (p *Plan) AddMembers(texts []string, port int) error {
	ports := make(map[string]int)
	var errs []error
	for _, text := range texts {
		name, id, ok := strings.Cut(text, "=")
		if !ok || name == "" || id == "" {
			errs = append(errs, fmt.Errorf("a peer must be NAME=ID or NAME=ID@HOST (got %q)", text))
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

// addresses are those at which a peer listens for a carrier, at a host written as "/ip4/10.0.0.1".
func addresses(carrier, host string, port int) (all []string) {
	tails := map[string][]string{"tcp": {"/tcp/%d"}, "noise": {"/tcp/%d"}, "ws": {"/tcp/%d/wss"}, "auto": {"/udp/%d/quic-v1", "/tcp/%d"}}[carrier]
	if tails == nil {
		tails = []string{"/udp/%d/quic-v1"}
	}
	for _, tail := range tails {
		all = append(all, host+fmt.Sprintf(tail, port))
	}
	return all
}

// IDOf returns the ID of the member of that name, empty where there is none.
func (p Plan) IDOf(name string) string {
	for _, m := range p.Members {
		if m.Name == name {
			return m.ID
		}
	}
	return ""
}

// naming adds the name of the member at fault, which trainers know by its rank only.
func (p Plan) naming(err error) error {
	var at *comm.PeerError
	if errors.As(err, &at) && at.Name == "" && at.Rank >= 0 && at.Rank < len(p.Members) {
		return fmt.Errorf("%s: %w", p.Members[at.Rank].Name, err)
	}
	return err
}
