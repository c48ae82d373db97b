package cli

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// LaunchFlags are what a process that a scheduler started needs to find the others.
type LaunchFlags struct {
	Secret      string // file of the secret that all of them share (empty = the plan names the peers)
	rank, ranks int    // (−1 and 0 = the scheduler's)
	hosts       string // of all ranks, with commas between, or a name with {rank} (empty = the scheduler's)
	port        int    // of a host's first rank; the next rank on the host has the next port
}

// Bind adds the flags.
func (l *LaunchFlags) Bind(f *pflag.FlagSet) {
	f.StringVar(&l.Secret, "secret", "", "file of the secret shared by peers of one scheduler")
	Reads(f, "secret")
	f.IntVar(&l.rank, "rank", -1, "rank of this peer (default: the scheduler's)")
	f.IntVar(&l.ranks, "ranks", 0, "number of peers (default: the scheduler's)")
	f.StringVar(&l.hosts, "hosts", "", "hosts of all peers, or a name with {rank}")
	f.IntVar(&l.port, "port", 4001, "port of a host's first peer")
}

// Identify returns this process's key: one that follows from the shared secret, if there is one. Then it also completes
// site and a plan that names no peers, by the addresses of this process and of the others. Else it is the peer's own,
// and rank is −1. A nil l is of a process that no scheduler starts.
func (l *LaunchFlags) Identify(site *SiteFlags, p *heddle.Plan) (own identity.Identity, rank int, err error) {
	switch {
	case l == nil:
	case l.Secret != "":
		own, rank, err = l.derive(site.Plan, p, os.Getenv)
		if err == nil && site.Site.Network.Listen == nil {
			site.Site.Network.Listen = everywhere(p.Members[rank].Addresses)
		}
		return own, rank, err
	case l.rank >= 0 || l.ranks > 0 || l.hosts != "":
		return own, -1, Invalidf("--rank, --ranks and --hosts require --secret: without it the plan and this peer's " +
			"key determine its rank")
	}
	own, err = LoadOrMakeKey(site.Identity)
	return own, -1, err
}

// derive finds the rank of this process and adds all ranks to the plan at path.
func (l *LaunchFlags) derive(path string, p *heddle.Plan, env func(string) string) (own identity.Identity, rank int,
	err error) {
	if len(p.Members) > 0 {
		return own, 0, Invalidf("%s: with --secret the plan must not name members (got %d)", path, len(p.Members))
	}
	t := schedule{By: "--rank", Rank: l.rank, Ranks: l.ranks}
	if l.rank < 0 {
		if t, err = scheduled(env); err != nil {
			return own, 0, Invalid(err)
		}
	}
	if l.ranks > 0 {
		t.Ranks = l.ranks
	}
	if l.hosts != "" {
		t.Hosts = strings.Split(l.hosts, ",")
		if strings.Contains(l.hosts, "{rank}") && t.Ranks <= maxRanks {
			t.Hosts = nil
			for r := range t.Ranks {
				t.Hosts = append(t.Hosts, strings.ReplaceAll(l.hosts, "{rank}", strconv.Itoa(r)))
			}
		}
	}
	switch {
	case t.Ranks < 1 || t.Ranks > maxRanks:
		return own, 0, Invalidf("the number of ranks must be 1 to %d (got %d from %s): give --ranks", maxRanks,
			t.Ranks, t.By)
	case t.Rank >= t.Ranks:
		return own, 0, Invalidf("the rank must be below %d, the number of ranks (got %d from %s)", t.Ranks, t.Rank,
			t.By)
	case t.Hosts == nil:
		return own, 0, Invalidf("%s does not name the hosts of the ranks: give --hosts, as node-a,node-b or "+
			"name-{rank}.service", t.By)
	case len(t.Hosts) != t.Ranks:
		return own, 0, Invalidf("there must be a host for each of the %d ranks (got %d)", t.Ranks, len(t.Hosts))
	}
	secret, err := disk.ReadStart(l.Secret, 1<<16)
	if err != nil {
		return own, 0, Invalidf("secret: %w", err)
	}
	if own, err = disclosure.DeriveMembers(p, secret, t.Hosts, t.Rank, l.port); err != nil {
		return own, 0, Invalidf("%s: %w", l.Secret, err)
	}
	return own, t.Rank, nil
}

// everywhere returns what to listen on for others to reach these addresses: a host's name in them is for the others.
func everywhere(addresses []string) (listen []string) {
	for _, a := range addresses {
		part := strings.SplitN(a, "/", 4)
		any := "/ip4/0.0.0.0/"
		if ip, err := netip.ParseAddr(part[2]); err == nil && ip.Is6() {
			any = "/ip6/::/"
		}
		listen = append(listen, any+part[3])
	}
	return listen
}

// LaunchedParts returns the parts of the rank, with commas between: consecutive parts of a partition, else what is at
// path. With rank −1 it returns path itself.
func LaunchedParts(path string, rank, ranks int) (string, error) {
	if rank < 0 {
		return path, nil
	}
	m, err := shard.ReadManifest(path)
	if err != nil {
		return path, nil // a part: its reader reports what is wrong with it
	}
	var paths []string
	lo, hi := shard.Group(len(m.Parts), ranks, rank)
	for part := lo; part < hi; part++ {
		paths = append(paths, filepath.Join(path, fmt.Sprintf("part-%d", part)))
	}
	if paths == nil {
		return "", Invalidf("%s has %d parts, fewer than the %d ranks", path, len(m.Parts), ranks)
	}
	return strings.Join(paths, ","), nil
}
