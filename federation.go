package heddle

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/p2p/node"
)

// Roster returns the members of p, by rank, as package node takes them.
func Roster(p Plan) (r node.Roster) {
	for _, m := range p.Members {
		r.Members = append(r.Members, node.Member{Name: m.Name, ID: m.ID, Addrs: m.Addresses})
	}
	return r
}

// CheckMembers returns all faults of p's members. A plan may have none: peers with a common secret
// derive them.
func CheckMembers(p Plan) error {
	if err := p.CheckMembers(); err != nil || len(p.Members) == 0 {
		return err
	}
	return Roster(p).Validate()
}

// DeriveMembers adds a member for each host, with keys that follow from a secret that all of them
// share (see identity.Derive), and returns the key of the member of that rank.
func DeriveMembers(p *Plan, secret []byte, hosts []string, rank, port int) (own identity.Identity, err error) {
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

// named adds to err the name of the member at fault, of which trainers know only the rank.
func named(p Plan, err error) error {
	var at *comm.PeerError
	if errors.As(err, &at) && at.Name == "" && at.Rank >= 0 && at.Rank < len(p.Members) {
		at.Name = p.Members[at.Rank].Name
	}
	return err
}
