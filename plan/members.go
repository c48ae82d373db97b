package plan

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/internal/admission"
)

// CheckMembers returns all faults of the texts of p's members and relays: names must be unique and valid in a roster.
// Package heddle checks IDs and addresses.
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
			errs.add("member %d: the ID must be one that heddle init prints (got %q)", r, m.ID)
		}
	}
	p.checkCollecting(&errs)
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
	return 0, fmt.Errorf("members: this peer's ID %s is not among the %d listed: ask for it to be added, "+
		"or take another identity", id, len(p.Members))
}

// Addresses returns the addresses of all members.
func (p Plan) Addresses() (all []string) {
	for _, m := range p.Members {
		all = append(all, m.Addresses...)
	}
	return all
}

// IDOf returns the ID of the member of that name, empty if there is none.
func (p Plan) IDOf(name string) string {
	for _, m := range p.Members {
		if m.Name == name {
			return m.ID
		}
	}
	return ""
}

// AddMembers adds members given as NAME=ID, NAME=ID@HOST or NAME=ID@HOST:PORT, and returns all faults of the texts.
// A member without a port listens on port if it is the first of its host, the next one on the next port; a member
// without a host only dials.
func (p *Plan) AddMembers(texts []string, port int) error {
	ports := make(map[string]int)
	var errs faults
	for _, text := range texts {
		name, id, ok := strings.Cut(text, "=")
		if !ok || name == "" || id == "" {
			errs.add("a peer must be NAME=ID, NAME=ID@HOST or NAME=ID@HOST:PORT (got %q)", text)
			continue
		}
		id, at, reachable := strings.Cut(id, "@")
		m := Member{Name: name, ID: id, Addresses: []string{}}
		if reachable {
			host, own, err := hostPort(at)
			if err != nil {
				errs.add("%s: %w", name, err)
				continue
			}
			if own == 0 {
				own = port + ports[host]
				ports[host]++
			}
			if own > math.MaxUint16 {
				errs.add("%s: its port must be below 65536 (got %d)", name, own)
				continue
			}
			m.Addresses = Addresses(p.Carrier, host, own)
			if slices.ContainsFunc(p.Addresses(), func(a string) bool { return slices.Contains(m.Addresses, a) }) {
				errs.add("%s: its address must not be another member's (got %s)", name, m.Addresses[0])
			}
		}
		p.Members = append(p.Members, m)
	}
	return errors.Join(errs...)
}

// hostPort parses HOST or HOST:PORT; an IPv6 address before a port has brackets. The host is returned as the start of a
// multiaddress, as "/ip4/10.0.0.1" (port 0 = none is given).
func hostPort(text string) (host string, port int, err error) {
	const must = "the host must be an IP address or a name, without or with a port, as 10.0.0.1, [2001:db8::1]:4001 " +
		"or a.example:4001 (got %q)"
	host = text
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	} else if _, err := netip.ParseAddr(text); err != nil && strings.Contains(text, ":") {
		colon := strings.LastIndex(text, ":")
		host = text[:colon]
		if inner, ok := strings.CutPrefix(host, "["); ok {
			if host, ok = strings.CutSuffix(inner, "]"); !ok {
				return "", 0, fmt.Errorf(must, text)
			}
		}
		if port, err = strconv.Atoi(text[colon+1:]); err != nil || port < 1 || port > math.MaxUint16 {
			return "", 0, fmt.Errorf("the port of a host must be 1 to 65535 (got %q)", text)
		}
	}
	switch ip, err := netip.ParseAddr(host); {
	case err == nil && ip.Zone() != "":
		return "", 0, fmt.Errorf("the address of a host must have no zone (got %q)", text)
	case err == nil && ip.Is4():
		return "/ip4/" + host, port, nil
	case err == nil:
		return "/ip6/" + host, port, nil
	case strings.HasPrefix(text, "[") || !isHostName(host):
		return "", 0, fmt.Errorf(must, text)
	}
	return "/dns/" + host, port, nil
}

// hostLabel matches a label of a name: RFC 1123, section 2.1, and underscores, which container networks use.
var hostLabel = regexp.MustCompile(`^\w([\w-]*\w)?$`)

// isHostName reports whether text is the name of a host. Its last label is not a number: 10.0.0.256 is a mistyped
// address.
func isHostName(text string) bool {
	labels := strings.Split(text, ".")
	for _, label := range labels {
		if len(label) > 63 || !hostLabel.MatchString(label) {
			return false
		}
	}
	return len(text) <= 253 && strings.ContainsFunc(labels[len(labels)-1],
		func(r rune) bool { return r < '0' || r > '9' })
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
