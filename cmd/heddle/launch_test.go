package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestLaunch starts three processes as Open MPI would, with five parts, one secret and a plan
// without members. They find each other and make the same model as one process.
func TestLaunch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "partition", "--data", sites(t), "--parts", "5", "-o", at("parts"))
	settings := "method: full-batch\nfull_batch: {hidden: 8, rounds: 4, experimental: {order: fixed}}\n"
	for name, text := range map[string]string{"plan.yaml": settings + "carrier: tcp\n", "settings.yaml": settings,
		"secret": strings.Repeat("0123456789abcdef", 2)} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ranks := func(args ...string) {
		t.Helper()
		for r, p := range launched(t, append(args, "--plan", at("plan.yaml"), "--shard", at("parts"), "--secret",
			at("secret"))...) {
			if err := p.Wait(); err != nil {
				t.Errorf("%s, rank %d: %v", args[0], r, err)
			}
		}
	}
	ranks("join", "-q", "-o", at("out"), "--state", at("state"), "--json", at("figures.json"))
	ranks("predict", "--model", at("out/rank-0/model.safetensors"), "--out", at("again-{rank}.csv"))
	must(t, "train", "--config", at("settings.yaml"), "--shards", at("parts"), "--peers", "3", "--transport", "memory",
		"-q", "-o", at("whole"))
	_, _, log := call(t.Context(), "train", "--config", at("settings.yaml"), "--shards", at("parts"), "--peers", "3",
		"--transport", "memory", "-o", at("logged"))
	if !strings.Contains(log, "the slowest peer will be ") {
		t.Errorf("the log is %q, must say which peer will be the slowest", log)
	}
	want := contents(t, filepath.Join(at("whole"), "model.safetensors"))
	for r := range 3 {
		own, again := predictedClasses(t, at(fmt.Sprintf("out/rank-%d/predictions.csv", r))),
			predictedClasses(t, at(fmt.Sprintf("again-%d.csv", r)))
		if len(own) == 0 || !maps.Equal(own, again) {
			t.Errorf("rank %d predicts other classes than at the end of training, for %d nodes", r, len(own))
		}
		if !bytes.Equal(contents(t, filepath.Join(at("out"), fmt.Sprintf("rank-%d", r), "model.safetensors")), want) {
			t.Errorf("rank %d made another model", r)
		}
	}
	equal(t, "peers of the one file of figures", figures(t, at("figures.json")).Peers, 3)
}

// launched starts a command in three processes as Open MPI would.
func launched(t *testing.T, args ...string) (all []*exec.Cmd) {
	t.Helper()
	first := testenv.FreePorts(t, 3)
	for r := range 3 {
		p := process(t, append(args, "--port", fmt.Sprint(first), "--wait", "20s", "--listen",
			fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", first+r))...)
		p.Env = append(slices.DeleteFunc(os.Environ(),
			func(s string) bool { return strings.HasPrefix(s, "SLURM_") || strings.HasPrefix(s, "JOB_") }),
			append(p.Env, fmt.Sprint("OMPI_COMM_WORLD_RANK=", r), "OMPI_COMM_WORLD_SIZE=3",
				"OMPI_COMM_WORLD_LOCAL_SIZE=3")...)
		p.Stderr = new(bytes.Buffer)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// predictedClasses reads the class of each node from a file of predictions.
func predictedClasses(t *testing.T, path string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(contents(t, path))) {
		cells := strings.SplitN(line, ",", 3)
		all[cells[0]] = cells[1]
	}
	return all
}

// TestLaunchRefuses: what a launch refuses.
func TestLaunchRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "partition", "--data", sites(t), "--parts", "2", "-o", at("parts"))
	for name, text := range map[string]string{"plan.yaml": "method: full-batch\n", "secret": strings.Repeat("x", 32),
		"short": "password"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--secret " + at("short") + " --rank 0 --ranks 2 --hosts a,b", "at least 32 random bytes (got 8)"},
		{"--secret " + at("none") + " --rank 0 --ranks 2 --hosts a,b", "none"},
		{"--secret " + at("secret") + " --rank 2 --ranks 2 --hosts a,b", "must be below 2"},
		{"--secret " + at("secret") + " --rank 0 --ranks 3 --hosts a,b", "each of the 3 ranks (got 2)"},
		{"--secret " + at("secret") + " --rank 0 --ranks 2", "--hosts"},
		{"--secret " + at("secret") + " --rank 0 --ranks 3 --hosts a,b,c", "2 parts"},
		{"--rank 0", "--secret"},
	} {
		refuse(t, 2, []string{c.want}, append([]string{"join", "--plan", at("plan.yaml"), "--shard", at("parts")},
			strings.Fields(c.args)...)...)
	}
	refuse(t, 2, []string{"--plan"}, "predict", "--model", "m", "--out", "p.csv", "--secret", at("secret"))
	must(t, "train", "--shards", at("parts"), "--transport", "memory", "-q", "-o", at("run"))
	refuse(t, 2, []string{"{rank}"}, "predict", "--model", at("run/model.safetensors"), "--plan", at("plan.yaml"),
		"--shard", at("parts"), "--out", at("p.csv"), "--secret", at("secret"), "--rank", "0", "--ranks", "2",
		"--hosts", "a,b")
}
