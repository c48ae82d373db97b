package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/p2p"
)

// launch is what one of the processes that a scheduler starts needs to find the others.
type launch struct {
	secret      string // file that all of them read; empty: the plan names the peers
	rank, ranks int    // −1, 0: as the scheduler says
	hosts       string // of every rank, with commas between, or one name with {rank} in it; empty: as the scheduler says
	port        int    // of the first rank on a host; the next one on it takes the next
}

func (l *launch) bind(f *pflag.FlagSet) {
	f.StringVar(&l.secret, "secret", "", "of peers that a scheduler starts (Kubernetes, Slurm, Open MPI): file of 32 random bytes or more from which all their keys follow; the plan then names no peers, and --shard may be the whole partition")
	f.IntVar(&l.rank, "rank", -1, "with --secret: which peer this is, from 0 (default: as the scheduler says)")
	f.IntVar(&l.ranks, "ranks", 0, "with --secret: how many peers there are (default: as the scheduler says)")
	f.StringVar(&l.hosts, "hosts", "", "with --secret: host of every peer, with commas between, or a name with {rank} in it (default: as the scheduler says)")
	f.IntVar(&l.port, "port", 4001, "with --secret: on which a host's first peer listens; its next one takes the next")
}

// given reports whether there is anything that only means something with a secret.
func (l launch) given() bool { return l.rank >= 0 || l.ranks > 0 || l.hosts != "" }

// told is what a scheduler says.
type told struct {
	by          string // for errors
	rank, ranks int
	hosts       []string // nil: it does not say
}

// scheduled reads the environment. Kubernetes numbers the pods of an Indexed Job (and of a JobSet's) and says no more;
// Slurm names the nodes of a step; Open MPI counts, and names no host.
func scheduled(env func(string) string) (t told, err error) {
	number := func(name string) (n int) {
		n, fault := strconv.Atoi(env(name))
		if fault != nil || n < 0 {
			err = errors.Join(err, fmt.Errorf("environment: %s is %q, want a number", name, env(name)))
		}
		return n
	}
	switch {
	case env("JOB_COMPLETION_INDEX") != "":
		return told{by: "Kubernetes", rank: number("JOB_COMPLETION_INDEX")}, err
	case env("SLURM_PROCID") != "":
		t = told{by: "Slurm", rank: number("SLURM_PROCID"), ranks: number("SLURM_NTASKS")}
		if err == nil {
			t.hosts, err = slurmHosts(env("SLURM_STEP_NODELIST"), env("SLURM_STEP_TASKS_PER_NODE"), t.ranks)
		}
		if at := number("SLURM_NODEID"); err == nil {
			// Ranks are dealt to nodes in blocks, unless srun was told otherwise; then the list would be wrong.
			if begin := firstOn(t.hosts, at); begin < 0 || t.rank-begin != number("SLURM_LOCALID") {
				err = errors.New("environment: Slurm has not dealt the ranks out in blocks: give srun --distribution=block, or --hosts")
			}
		}
		return t, err
	case env("OMPI_COMM_WORLD_RANK") != "":
		t = told{by: "Open MPI", rank: number("OMPI_COMM_WORLD_RANK"), ranks: number("OMPI_COMM_WORLD_SIZE")}
		if env("OMPI_COMM_WORLD_LOCAL_SIZE") == env("OMPI_COMM_WORLD_SIZE") && err == nil && t.ranks <= maxRanks {
			for range t.ranks {
				t.hosts = append(t.hosts, "127.0.0.1")
			}
		}
		return t, err
	}
	return t, errors.New("environment: neither JOB_COMPLETION_INDEX (Kubernetes), SLURM_PROCID nor OMPI_COMM_WORLD_RANK is set: give --rank, --ranks and --hosts")
}

// firstOn returns the first rank on the node of that number; hosts are its ranks', in blocks.
func firstOn(hosts []string, node int) int {
	for r, n := 0, 0; r < len(hosts); r++ {
		if r > 0 && hosts[r] != hosts[r-1] {
			n++
		}
		if n == node {
			return r
		}
	}
	return -1
}

// maxRanks bounds what the environment may ask for: a session has no more members.
const maxRanks = 4096

// slurmHosts returns the host of every rank from what Slurm writes of a step: nodes as "a[01-03,7],b", tasks as "2(x3),1".
func slurmHosts(nodes, tasks string, ranks int) ([]string, error) {
	names, err := slurmNodes(nodes)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for part := range strings.SplitSeq(tasks, ",") {
		count, times, repeated := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		n, err := strconv.Atoi(count)
		k := 1
		if err == nil && repeated {
			k, err = strconv.Atoi(times)
		}
		if err != nil || n < 1 || k < 1 || n > maxRanks || k > len(names) || len(hosts)+n*k > maxRanks {
			return nil, fmt.Errorf("environment: SLURM_STEP_TASKS_PER_NODE is %q, want counts as 2(x3),1 for %d nodes", tasks, len(names))
		}
		for range k {
			for range n {
				hosts = append(hosts, names[0])
			}
			names = names[1:]
		}
	}
	if len(names) != 0 || len(hosts) != ranks {
		return nil, fmt.Errorf("environment: Slurm's SLURM_STEP_NODELIST %q and SLURM_STEP_TASKS_PER_NODE %q make %d ranks, SLURM_NTASKS is %d", nodes, tasks, len(hosts), ranks)
	}
	return hosts, nil
}

// slurmNodes expands a list of nodes.
func slurmNodes(list string) (names []string, err error) {
	wrong := fmt.Errorf("environment: SLURM_STEP_NODELIST is %q, want names as a[01-03,7],b", list)
	for rest := list; rest != ""; {
		at := strings.IndexAny(rest, ",[")
		if at < 0 || rest[at] == ',' {
			name := rest
			if at >= 0 {
				name, rest = rest[:at], rest[at+1:]
			} else {
				rest = ""
			}
			if name == "" {
				return nil, wrong
			}
			names = append(names, name)
			continue
		}
		prefix := rest[:at]
		inside, after, closed := strings.Cut(rest[at+1:], "]")
		if !closed || after != "" && after[0] != ',' { // a suffix, or a second bracket, is of clusters with more than one dimension
			return nil, wrong
		}
		rest = strings.TrimPrefix(after, ",")
		for part := range strings.SplitSeq(inside, ",") {
			low, high, ranged := strings.Cut(part, "-")
			if !ranged {
				high = low
			}
			a, fault := strconv.Atoi(low)
			b, other := strconv.Atoi(high)
			if fault != nil || other != nil || a < 0 || b < a || b-a >= maxRanks || len(names)+b-a >= maxRanks || len(low) > 9 {
				return nil, wrong
			}
			for n := a; n <= b; n++ {
				names = append(names, fmt.Sprintf("%s%0*d", prefix, len(low), n))
			}
		}
	}
	if len(names) == 0 {
		return nil, wrong
	}
	return names, nil
}

// join completes a seat and a plan that names no peers: who this process is, who the others are, and where.
func (l launch) join(s *seat, p *agreement, env func(string) string) (p2p.Identity, error) {
	var none p2p.Identity
	if len(p.Peers) > 0 {
		return none, badInput{fmt.Errorf("%s: peers: %d are named, but with --secret all follow from it: leave them out", s.plan, len(p.Peers))}
	}
	t := told{by: "--rank", rank: l.rank, ranks: l.ranks}
	if l.rank < 0 {
		var err error
		if t, err = scheduled(env); err != nil {
			return none, badInput{err}
		}
	}
	if l.ranks > 0 {
		t.ranks = l.ranks
	}
	if l.hosts != "" {
		t.hosts = strings.Split(l.hosts, ",")
		if strings.Contains(l.hosts, "{rank}") && t.ranks <= maxRanks {
			t.hosts = nil
			for r := range t.ranks {
				t.hosts = append(t.hosts, strings.ReplaceAll(l.hosts, "{rank}", strconv.Itoa(r)))
			}
		}
	}
	switch {
	case t.ranks < 1 || t.ranks > maxRanks:
		return none, badInput{fmt.Errorf("ranks: %d by %s, want 1 to %d: give --ranks", t.ranks, t.by, maxRanks)}
	case t.rank >= t.ranks:
		return none, badInput{fmt.Errorf("rank: %d by %s, want less than the %d ranks there are", t.rank, t.by, t.ranks)}
	case t.hosts == nil:
		return none, badInput{fmt.Errorf("hosts: %s does not say where the ranks are: give --hosts, as node-a,node-b or name-{rank}.service", t.by)}
	case len(t.hosts) != t.ranks:
		return none, badInput{fmt.Errorf("hosts: %d, want one for each of %d ranks", len(t.hosts), t.ranks)}
	}
	secret, err := readSecret(l.secret)
	if err != nil {
		return none, badInput{err}
	}
	var me p2p.Identity
	var members []string
	for r, host := range t.hosts {
		id, err := p2p.DeriveIdentity(secret, r)
		if err != nil {
			return none, badInput{fmt.Errorf("%s: %w", l.secret, err)}
		}
		if r == t.rank {
			me = id
		}
		members = append(members, fmt.Sprintf("rank-%d=%s@%s", r, id.PeerID(), host))
	}
	if err := p.name(members, l.port); err != nil {
		return none, badInput{err}
	}
	return me, l.place(s, p, t.rank)
}

// place says where rank listens, which parts it holds and where it keeps its own, all ranks having been told the same.
func (l launch) place(s *seat, p *agreement, rank int) error {
	if s.listen == nil {
		for _, a := range p.Peers[rank].Addresses { // the host's name is how others reach it; here every address will do
			part := strings.SplitN(a, "/", 4)
			any := "/ip4/0.0.0.0/"
			if ip, err := netip.ParseAddr(part[2]); err == nil && ip.Is6() {
				any = "/ip6/::/"
			}
			s.listen = append(s.listen, any+part[3])
		}
	}
	if m, err := partition.ReadManifest(s.shard); err == nil {
		var paths []string
		lo, hi := partition.Group(len(m.Parts), len(p.Peers), rank)
		for part := lo; part < hi; part++ {
			paths = append(paths, filepath.Join(s.shard, fmt.Sprintf("part-%d", part)))
		}
		if paths == nil {
			return badInput{fmt.Errorf("%s has %d parts, fewer than the %d ranks", s.shard, len(m.Parts), len(p.Peers))}
		}
		s.shard = strings.Join(paths, ",")
	}
	own := fmt.Sprintf("rank-%d", rank)
	if s.state != "" {
		s.state = filepath.Join(s.state, own)
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
