package cli

import (
	"strings"
	"testing"
)

// TestScheduled reads what schedulers set.
func TestScheduled(t *testing.T) {
	for _, c := range []struct {
		env         string
		rank, ranks int
		hosts       string
		fault       string
	}{
		{"JOB_COMPLETION_INDEX=3", 3, 0, "", ""},
		{"JOB_COMPLETION_INDEX=x", 0, 0, "", "JOB_COMPLETION_INDEX"},
		{"SLURM_PROCID=3 SLURM_NTASKS=5 SLURM_STEP_NODELIST=n[08-10],gpu SLURM_STEP_TASKS_PER_NODE=2,1(x3) " +
			"SLURM_NODEID=2 SLURM_LOCALID=0", 3, 5, "n08 n08 n09 n10 gpu", ""},
		{"SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_NODELIST=a,b SLURM_STEP_TASKS_PER_NODE=2(x2) " +
			"SLURM_NODEID=0 SLURM_LOCALID=1", 1, 4, "a a b b", ""},
		{"SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_NODELIST=a,b SLURM_STEP_TASKS_PER_NODE=2(x2) " +
			"SLURM_NODEID=1 SLURM_LOCALID=0", 0, 0, "", "distribution=block"},
		{"SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_STEP_NODELIST=a,b SLURM_STEP_TASKS_PER_NODE=2(x2) " +
			"SLURM_NODEID=0 SLURM_LOCALID=0", 0, 0, "", "4 ranks, SLURM_NTASKS is 3"},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NODELIST=a[1-2]b[3-4] SLURM_STEP_TASKS_PER_NODE=2 " +
			"SLURM_NODEID=0 SLURM_LOCALID=0", 0, 0, "", "SLURM_STEP_NODELIST"},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NODELIST=a[1-99999999] SLURM_STEP_TASKS_PER_NODE=1 " +
			"SLURM_NODEID=0 SLURM_LOCALID=0", 0, 0, "", "SLURM_STEP_NODELIST"},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NODELIST=a SLURM_STEP_TASKS_PER_NODE=2000000000(x2) " +
			"SLURM_NODEID=0 SLURM_LOCALID=0", 0, 0, "", "SLURM_STEP_TASKS_PER_NODE"},
		{"SLURM_PROCID=0", 0, 0, "", "SLURM_NTASKS"},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2", 1, 2, "127.0.0.1 127.0.0.1", ""},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2", 1, 4, "", ""},
		{"", 0, 0, "", "--rank"},
	} {
		env := make(map[string]string)
		for _, pair := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		got, err := scheduled(func(name string) string { return env[name] })
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v, must contain %q", c.env, err, c.fault)
			}
			continue
		}
		if err != nil || got.Rank != c.rank || got.Ranks != c.ranks || strings.Join(got.Hosts, " ") != c.hosts {
			t.Errorf("%s: rank %d of %d on %v, %v; want %d of %d on %s", c.env, got.Rank, got.Ranks, got.Hosts, err,
				c.rank, c.ranks, c.hosts)
		}
	}
}

// FuzzSlurmHosts: no list of nodes makes the reader panic or write more names than a session has members.
func FuzzSlurmHosts(f *testing.F) {
	f.Add("n[08-10],gpu", "2,1(x3)", 5)
	f.Add("a[1-2]b[3]", "1", 1)
	f.Fuzz(func(t *testing.T, nodes, tasks string, ranks int) {
		hosts, err := slurmHosts(nodes, tasks, ranks)
		if err == nil && (len(hosts) != ranks || len(hosts) > maxRanks) {
			t.Fatalf("%d hosts for %d ranks", len(hosts), ranks)
		}
	})
}
