package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/admission"
)

// CheckMembers returns all faults of the texts of p's members and relays: names are those that a roster may have, and
// unique. Whether IDs and addresses are valid, package heddle says.
func (p Plan) CheckMembers() error {
	var errs faults
	for r, m := range p.Members {
		if err := (admission.Member{Name: m.Name, Addresses: m.Addresses}).CheckTexts(); err != nil {
			errs.add("member %d: %w", r, err)
		}
		if first := slices.IndexFunc(p.Members, func(one Member) bool { return one.Name == m.Name }); first < r {
			errs.add("members must have a name each (got %q for number %d and number %d)", m.Name, first, r)
		}
		if !printable(m.ID) {
			errs.add("member %d: the ID must be one that peer id prints (got %q)", r, m.ID)
		}
	}
	if err := (admission.Member{Name: "relay", Addresses: p.Relays}).CheckTexts(); err != nil {
		errs.add("relays: %w", err)
	}
	return errors.Join(errs...)
}

// printable reports whether text is a line of printable ASCII.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// Names returns the names of the members by rank.
func (p Plan) Names() (names []string) {
	for _, m := range p.Members {
		names = append(names, m.Name)
	}
	return names
}

// Rank returns the rank of the member with that ID.
func (p Plan) Rank(id string) (int, error) {
	if r := slices.IndexFunc(p.Members, func(m Member) bool { return m.ID == id }); r >= 0 {
		return r, nil
	}
	return 0, fmt.Errorf("members: this peer's ID %s is not among the %d listed: ask for it to be added, or give --identity", id, len(p.Members))
}

// Addresses returns the addresses of all members.
func (p Plan) Addresses() (all []string) {
	for _, m := range p.Members {
		all = append(all, m.Addresses...)
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
			m.Addresses = Addresses(p.Carrier, "/"+kind+"/"+host, port+ports[host])
			ports[host]++
		}
		p.Members = append(p.Members, m)
	}
	return errors.Join(errs...)
}

// Addresses returns the multiaddresses at which a peer listens, at a host such as "/ip4/10.0.0.1".
func Addresses(carrier, host string, port int) (all []string) {
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
