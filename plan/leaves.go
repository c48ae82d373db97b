package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/internal/admission"
)

// mostCollecting is how many members may collect shares of leaves.
const mostCollecting = 64

// Collecting returns how many members collect shares of leaves.
func (p Plan) Collecting() (n int) {
	for _, m := range p.Members {
		if len(m.LeafAddresses) > 0 {
			n++
		}
	}
	return n
}

// fitLeaves makes what is auto in c what leaves can have: random features are too many numbers for a phone, and nobody
// knows how many nodes there are before the first sum.
func (p Plan) fitLeaves(c *classmeans.Config, errs *faults) {
	if c.Random < 0 {
		c.Random = 0
	}
	if c.Target == classmeans.Auto {
		c.Target = "labels"
	}
	c.LastHop = true
	if c.Random != 0 {
		errs.add("random_features must be -1 or 0 with phones (got %d): a phone would send megabytes", c.Random)
	}
	if c.Epsilon > 0 {
		errs.add("epsilon must be 0 with phones (got %g): nobody sees the parts of a sum", c.Epsilon)
	}
	m := p.ClassMeans
	if m.LeafEdges && p.Inductive {
		errs.add("inductive must be false with leaf_edges (got true): nobody but a phone knows what its rows are of")
	}
	if p.Runs > 1 {
		errs.add("runs must be 1 with phones (got %d)", p.Runs)
	}
	if m.LeastLeaves > m.Leaves {
		errs.add("least_leaves must be at most phones, %d (got %d)", m.Leaves, m.LeastLeaves)
	}
	if m.LeafQuorum > m.Leaves {
		errs.add("leaf_quorum must be at most phones, %d (got %d)", m.Leaves, m.LeafQuorum)
	}
}

// checkCollecting adds the faults of the addresses at which members collect shares of leaves.
func (p Plan) checkCollecting(errs *faults) {
	n := p.Collecting()
	for r, m := range p.Members {
		if err := (admission.Member{Name: m.Name, Addresses: m.LeafAddresses}).CheckTexts(); err != nil {
			errs.add("member %d: leaf_addresses: %w", r, err)
		}
		if r < n && len(m.LeafAddresses) == 0 {
			errs.add("the first %d members must have leaf_addresses (%s has none)", n, m.Name)
		}
	}
	switch {
	case p.ClassMeans.Leaves > 0 && len(p.Members) > 0 && (n < 2 || n > mostCollecting):
		errs.add("phones need 2 to %d members with leaf_addresses, which collect their shares (got %d)", mostCollecting,
			n)
	case p.ClassMeans.Leaves == 0 && n > 0:
		errs.add("leaf_addresses apply only with phones above 0 (%d members have some)", n)
	}
}

// CollectLeaves gives every member that listens addresses for leaves: its own at another port, port for the first
// member of a host and the next one for the next.
func (p *Plan) CollectLeaves(port int) error {
	ports := map[string]int{}
	for r, m := range p.Members {
		var all []string
		for _, a := range m.Addresses {
			parts := strings.Split(a, "/")
			at := slices.IndexFunc(parts, func(part string) bool { return part == "udp" || part == "tcp" })
			if at < 0 || at+1 >= len(parts) {
				return fmt.Errorf("%s: its address must have a UDP or TCP port (got %s)", m.Name, a)
			}
			host := strings.Join(parts[:at], "/")
			if _, ok := ports[host]; !ok {
				ports[host] = port
			}
			parts[at+1] = strconv.Itoa(ports[host])
			all = append(all, strings.Join(parts, "/"))
		}
		for host := range ports {
			if slices.ContainsFunc(m.Addresses, func(a string) bool { return strings.HasPrefix(a, host+"/") }) {
				ports[host]++
			}
		}
		for _, a := range all {
			if slices.Contains(p.Addresses(), a) {
				return fmt.Errorf("%s: its address for phones must not be a member's (got %s)", m.Name, a)
			}
		}
		p.Members[r].LeafAddresses = all
	}
	if p.Collecting() < 2 {
		return errors.New("phones need two members or more with a host")
	}
	return nil
}
