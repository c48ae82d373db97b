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

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cluster"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// launch is what a process that a scheduler started needs to find the others.
type launch struct {
	secret      string // file of the secret that all of them share; empty: the plan names the peers
	rank, ranks int    // −1 and 0: the scheduler's
	hosts       string // of all ranks, with commas between, or a name with {rank} in it; empty: the scheduler's
	port        int    // of a host's first rank; the next rank on the host has the next port
}

func (l *launch) bind(f *pflag.FlagSet) {
	f.StringVar(&l.secret, "secret", "", "file of the shared secret of peers that a scheduler starts")
	f.IntVar(&l.rank, "rank", -1, "rank of this peer; default: the scheduler's")
	f.IntVar(&l.ranks, "ranks", 0, "number of peers; default: the scheduler's")
	f.StringVar(&l.hosts, "hosts", "", "hosts of all peers, or a name with {rank}")
	f.IntVar(&l.port, "port", 4001, "port of a host's first peer")
}

// given reports whether a flag was given that requires a secret.
func (l launch) given() bool { return l.rank >= 0 || l.ranks > 0 || l.hosts != "" }

// join completes m and a plan that names no peers: the identity and the addresses of this process
// and of the others.
func (l launch) join(s *member, p *heddle.Plan, env func(string) string) (identity.Identity, error) {
	var none identity.Identity
	if len(p.Members) > 0 {
		return none, cli.Invalidf("%s: with --secret the plan must not name members (got %d)", s.Plan, len(p.Members))
	}
	t := cluster.Place{By: "--rank", Rank: l.rank, Ranks: l.ranks}
	if l.rank < 0 {
		var err error
		if t, err = cluster.Scheduled(env); err != nil {
			return none, cli.Invalid(err)
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
		return none, cli.Invalidf("the number of ranks must be 1 to %d (got %d from %s): give --ranks", cluster.MaxRanks,
			t.Ranks, t.By)
	case t.Rank >= t.Ranks:
		return none, cli.Invalidf("the rank must be below %d, the number of ranks (got %d from %s)", t.Ranks, t.Rank, t.By)
	case t.Hosts == nil:
		return none, cli.Invalidf("%s does not name the hosts of the ranks: give --hosts, as node-a,node-b or name-{rank}.service", t.By)
	case len(t.Hosts) != t.Ranks:
		return none, cli.Invalidf("there must be a host for each of the %d ranks (got %d)", t.Ranks, len(t.Hosts))
	}
	secret, err := readSecret(l.secret)
	if err != nil {
		return none, cli.Invalid(err)
	}
	me, err := heddle.DeriveMembers(p, secret, t.Hosts, t.Rank, l.port)
	if err != nil {
		return none, cli.Invalidf("%s: %w", l.secret, err)
	}
	return me, l.place(s, p, t.Rank)
}

// place sets what differs between the ranks, which all have the same flags: addresses to listen on,
// parts, and directories.
func (l launch) place(s *member, p *heddle.Plan, rank int) error {
	if s.Site.Listen == nil {
		for _, a := range p.Members[rank].Addresses { // the host's name is for the others; here listen on every interface
			part := strings.SplitN(a, "/", 4)
			any := "/ip4/0.0.0.0/"
			if ip, err := netip.ParseAddr(part[2]); err == nil && ip.Is6() {
				any = "/ip6/::/"
			}
			s.Site.Listen = append(s.Site.Listen, any+part[3])
		}
	}
	if m, err := shard.ReadManifest(s.shard); err == nil {
		var paths []string
		lo, hi := shard.Group(len(m.Parts), len(p.Members), rank)
		for part := lo; part < hi; part++ {
			paths = append(paths, filepath.Join(s.shard, fmt.Sprintf("part-%d", part)))
		}
		if paths == nil {
			return cli.Invalidf("%s has %d parts, fewer than the %d ranks", s.shard, len(m.Parts), len(p.Members))
		}
		s.shard = strings.Join(paths, ",")
	}
	own := fmt.Sprintf("rank-%d", rank)
	if s.Site.State != "" {
		s.Site.State = filepath.Join(s.Site.State, own)
	}
	if s.out.dir != "" {
		s.out.dir = filepath.Join(s.out.dir, own)
	}
	if rank > 0 {
		s.out.json = "" // rank 0 writes the figures
	}
	return nil
}

// readSecret reads the secret that all ranks share.
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
