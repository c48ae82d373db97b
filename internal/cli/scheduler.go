package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// schedule is where a scheduler has put a process.
type schedule struct {
	By          string // the scheduler, for errors
	Rank, Ranks int
	Hosts       []string // of every rank (nil = the scheduler does not name them)
}

// scheduled reads the environment. Kubernetes only numbers the pods of an Indexed Job (and of a JobSet's); Slurm names
// the nodes of a step; Open MPI counts ranks, and names no host.
func scheduled(env func(string) string) (t schedule, err error) {
	number := func(name string) (n int) {
		n, fault := strconv.Atoi(env(name))
		if fault != nil || n < 0 {
			err = errors.Join(err, fmt.Errorf("environment: %s must be a number (got %q)", name, env(name)))
		}
		return n
	}
	switch {
	case env("JOB_COMPLETION_INDEX") != "":
		return schedule{By: "Kubernetes", Rank: number("JOB_COMPLETION_INDEX")}, err
	case env("SLURM_PROCID") != "":
		t = schedule{By: "Slurm", Rank: number("SLURM_PROCID"), Ranks: number("SLURM_NTASKS")}
		if err == nil {
			t.Hosts, err = slurmHosts(env("SLURM_STEP_NODELIST"), env("SLURM_STEP_TASKS_PER_NODE"), t.Ranks)
		}
		if at := number("SLURM_NODEID"); err == nil {
			// Ranks are dealt to nodes in blocks, unless srun was given another distribution; then the list would be
			// wrong.
			if begin := firstOn(t.Hosts, at); begin < 0 || t.Rank-begin != number("SLURM_LOCALID") {
				err = errors.New("environment: Slurm has not dealt the ranks out in blocks: give srun " +
					"--distribution=block, or --hosts")
			}
		}
		return t, err
	case env("OMPI_COMM_WORLD_RANK") != "":
		t = schedule{By: "Open MPI", Rank: number("OMPI_COMM_WORLD_RANK"), Ranks: number("OMPI_COMM_WORLD_SIZE")}
		if env("OMPI_COMM_WORLD_LOCAL_SIZE") == env("OMPI_COMM_WORLD_SIZE") && err == nil && t.Ranks <= maxRanks {
			for range t.Ranks {
				t.Hosts = append(t.Hosts, "127.0.0.1")
			}
		}
		return t, err
	}
	return t, errors.New("environment: neither JOB_COMPLETION_INDEX (Kubernetes), SLURM_PROCID nor " +
		"OMPI_COMM_WORLD_RANK is set: give --rank, --ranks and --hosts")
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

// slurmHosts returns the host of every rank from what Slurm writes of a step: nodes as "a[01-03,7],b", tasks as
// "2(x3),1".
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
			return nil, fmt.Errorf("environment: SLURM_STEP_TASKS_PER_NODE must be counts as 2(x3),1 for %d nodes "+
				"(got %q)", len(names), tasks)
		}
		for range k {
			for range n {
				hosts = append(hosts, names[0])
			}
			names = names[1:]
		}
	}
	if len(names) != 0 || len(hosts) != ranks {
		return nil, fmt.Errorf("environment: Slurm's SLURM_STEP_NODELIST %q and SLURM_STEP_TASKS_PER_NODE %q make "+
			"%d ranks, SLURM_NTASKS is %d", nodes, tasks, len(hosts), ranks)
	}
	return hosts, nil
}

// slurmNodes expands a list of nodes.
func slurmNodes(list string) (names []string, err error) {
	wrong := fmt.Errorf("environment: SLURM_STEP_NODELIST must be names as a[01-03,7],b (got %q)", list)
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
		// a suffix, or a second bracket, is of clusters with more than one dimension
		if !closed || after != "" && after[0] != ',' {
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
			if fault != nil || other != nil || a < 0 || b < a || b-a >= maxRanks || len(names)+b-a >= maxRanks ||
				len(low) > 9 {
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
