package main

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cluster"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// launch is what one of the processes that a scheduler starts needs to find the others.
type launch struct {
	secret      string // file that all of them read; empty: the plan names the peers
	rank, ranks int    // −1, 0: as the scheduler says
	hosts       string // of every rank, with commas between, or one name with {rank} in it; empty: as the scheduler says
	port        int    // of the first rank on a host; the next one on it takes the next
}

func (l *launch) bind(f *pflag.FlagSet) {
	f.StringVar(&l.secret, "secret", "", "file of the shared secret of peers that a scheduler starts")
	f.IntVar(&l.rank, "rank", -1, "rank of this peer; default: the scheduler's")
	f.IntVar(&l.ranks, "ranks", 0, "number of peers; default: the scheduler's")
	f.StringVar(&l.hosts, "hosts", "", "hosts of all peers, or a name with {rank}")
	f.IntVar(&l.port, "port", 4001, "port of a host's first peer")
}

// given reports whether there is anything that only means something with a secret.
func (l launch) given() bool { return l.rank >= 0 || l.ranks > 0 || l.hosts != "" }

// join completes a seat and a plan that names no peers: who this process is, who the others are, and where.
func (l launch) join(s *seat, p *agreement, env func(string) string) (identity.Identity, error) {
	var none identity.Identity
	if len(p.Members) > 0 {
		return none, badInput{fmt.Errorf("%s: peers: %d are named, but with --secret all follow from it: leave them out", s.plan, len(p.Members))}
	}
	t := cluster.Place{By: "--rank", Rank: l.rank, Ranks: l.ranks}
	if l.rank < 0 {
		var err error
		if t, err = cluster.Scheduled(env); err != nil {
			return none, badInput{err}
		}
	}
	if l.ranks > 0 {
		t.Ranks = l.ranks
	}
	if l.hosts != "" {
		t.Hosts = strings.Split(l.hosts, ",")
		if strings.Contains(l.hosts, "{rank}") && t.Ranks <= cluster.MaxRanks {
			t.Hosts = nil
			for r := range t.Ranks {
				t.Hosts = append(t.Hosts, strings.ReplaceAll(l.hosts, "{rank}", strconv.Itoa(r)))
			}
		}
	}
	switch {
	case t.Ranks < 1 || t.Ranks > cluster.MaxRanks:
		return none, badInput{fmt.Errorf("ranks: %d by %s, want 1 to %d: give --ranks", t.Ranks, t.By, cluster.MaxRanks)}
	case t.Rank >= t.Ranks:
		return none, badInput{fmt.Errorf("rank: %d by %s, want less than the %d ranks there are", t.Rank, t.By, t.Ranks)}
	case t.Hosts == nil:
		return none, badInput{fmt.Errorf("hosts: %s does not say where the ranks are: give --hosts, as node-a,node-b or name-{rank}.service", t.By)}
	case len(t.Hosts) != t.Ranks:
		return none, badInput{fmt.Errorf("hosts: %d, want one for each of %d ranks", len(t.Hosts), t.Ranks)}
	}
	secret, err := readSecret(l.secret)
	if err != nil {
		return none, badInput{err}
	}
	var me identity.Identity
	var members []string
	for r, host := range t.Hosts {
		id, err := identity.Derive(secret, r)
		if err != nil {
			return none, badInput{fmt.Errorf("%s: %w", l.secret, err)}
		}
		if r == t.Rank {
			me = id
		}
		members = append(members, fmt.Sprintf("rank-%d=%s@%s", r, id.PeerID(), host))
	}
	if err := p.AddMembers(members, l.port); err != nil {
		return none, badInput{err}
	}
	return me, l.place(s, p, t.Rank)
}

// place says where rank listens, which parts it holds and where it keeps its own, all ranks having been told the same.
func (l launch) place(s *seat, p *agreement, rank int) error {
	if s.site.Listen == nil {
		for _, a := range p.Members[rank].Addresses { // the host's name is how others reach it; here every address will do
			part := strings.SplitN(a, "/", 4)
			any := "/ip4/0.0.0.0/"
			if ip, err := netip.ParseAddr(part[2]); err == nil && ip.Is6() {
				any = "/ip6/::/"
			}
			s.site.Listen = append(s.site.Listen, any+part[3])
		}
	}
	if m, err := shard.ReadManifest(s.shard); err == nil {
		var paths []string
		lo, hi := shard.Group(len(m.Parts), len(p.Members), rank)
		for part := lo; part < hi; part++ {
			paths = append(paths, filepath.Join(s.shard, fmt.Sprintf("part-%d", part)))
		}
		if paths == nil {
			return badInput{fmt.Errorf("%s has %d parts, fewer than the %d ranks", s.shard, len(m.Parts), len(p.Members))}
		}
		s.shard = strings.Join(paths, ",")
	}
	own := fmt.Sprintf("rank-%d", rank)
	if s.site.State != "" {
		s.site.State = filepath.Join(s.site.State, own)
	}
	if s.out != "" {
		s.out = filepath.Join(s.out, own)
	}
	if rank > 0 {
		s.json = "" // one file of figures, by rank 0
	}
	return nil
}

// readSecret reads what all ranks share.
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	defer f.Close()
	secret, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return secret, nil
}
