package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pod starts a container as the kubelet does: its image and volumes are the root, read-only except for the claim; user
// and environment come from the manifest. The arguments are the root, the file of hosts and the command.
const pod = `set -e
root=$1 hosts=$2
shift 2
mount --bind $root $root
for dir in usr bin lib lib64 etc dev proc; do
	if [ -e /$dir ]; then mkdir -p $root/$dir && mount --rbind /$dir $root/$dir; fi
done
mount --bind $hosts $root/etc/hosts
mount --bind $root/data $root/data
mount -o remount,ro,bind $root
exec chroot --userspec=65532:65532 $root env -i "$@"`

// TestPods runs the exact command of each Kubernetes example in the environment of its pods: a network, a host name and
// a rank each, one claim for all. They make the model of one process.
func TestPods(t *testing.T) {
	if testing.Short() || os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("SKIPPED: pods of the Kubernetes examples; HEDDLE_LONG=1 runs them")
	}
	if os.Getuid() != 0 || exec.Command("unshare", "--mount", "true").Run() != nil {
		t.Skip("SKIPPED: pods of the Kubernetes examples need root and unshare")
	}
	data := sites(t)
	for _, file := range kubeManifests {
		t.Run(file, func(t *testing.T) { runPods(t, data, podsIn(t, file)) })
	}
}

func runPods(t *testing.T, data string, of podsOf) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	n, c := of.job.Completions, of.job.Template.Spec.Containers[0]
	for _, dir := range []string{"plan", "secret", "data", "image"} {
		if err := os.Mkdir(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "partition", "--data", data, "--parts", fmt.Sprint(n), "-o", at("data/parts"))
	for name, text := range map[string]string{"plan/plan.yaml": of.plan,
		"secret/secret": strings.Repeat("0123456789abcdef", 2), "secret/token": strings.Repeat("0", 32)} {
		if err := os.WriteFile(at(name), []byte(text), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	self := contents(t, os.Args[0])
	if err := os.WriteFile(at("image/peer"), self, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chown", "-R", "65532:65532", at("data"), at("plan"),
		at("secret")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for dir := root; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) { // its user must pass
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	spaces, hosts := podNetworks(t, n), "127.0.0.1 localhost\n"
	for r := range n {
		hosts += fmt.Sprintf("10.9.1.%d %s\n", r+1, strings.ReplaceAll(of.hosts, "{rank}", fmt.Sprint(r)))
	}
	table := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(table, []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}
	var all []*exec.Cmd
	for r := range n {
		args := slices.Concat([]string{"netns", "exec", spaces[r], "unshare", "--mount", "sh", "-c", pod, "sh", root,
			table, "PATH=/image", asPeer + "=1", fmt.Sprint("JOB_COMPLETION_INDEX=", r)}, c.Command, c.Args)
		p := exec.CommandContext(t.Context(), "ip", args...)
		p.Stdout, p.Stderr = new(bytes.Buffer), new(bytes.Buffer)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for r, p := range all {
		if err := p.Wait(); err != nil {
			t.Errorf("pod %d: %v\n%s%s", r, err, p.Stdout, p.Stderr)
		}
	}
	must(t, "train", "--config", at("plan/plan.yaml"), "--shards", at("data/parts"), "--transport", "memory", "-q",
		"-o", at("whole"))
	want := contents(t, at("whole/model.safetensors"))
	for r := range n {
		if got, err := os.ReadFile(at(fmt.Sprintf("data/out/rank-%d/model.safetensors", r))); err != nil ||
			!bytes.Equal(got, want) {
			t.Errorf("pod %d made another model (%v)", r, err)
		}
	}
}

// podNetworks makes n network namespaces on one bridge, with the addresses 10.9.1.1 and on.
func podNetworks(t *testing.T, n int) (spaces []string) {
	t.Helper()
	do := func(line string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: pods of the Kubernetes examples: networks are not allowed: ip %s: %v %s", line, err, out)
		}
	}
	space := func(name string) string {
		name = fmt.Sprintf("hp%d%s", os.Getpid()%100000, name)
		do("netns add " + name)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
		do("-n " + name + " link set lo up")
		return name
	}
	node := space("node")
	do("-n " + node + " link add pods type bridge")
	do("-n " + node + " link set pods up")
	for r := range n {
		s, end := space(fmt.Sprint(r)), fmt.Sprint("pod", r)
		do(fmt.Sprintf("-n %s link add %s type veth peer name eth0 netns %s", node, end, s))
		do(fmt.Sprintf("-n %s link set %s master pods up", node, end))
		do(fmt.Sprintf("-n %s addr add 10.9.1.%d/24 dev eth0", s, r+1))
		do("-n " + s + " link set eth0 up")
		spaces = append(spaces, s)
	}
	return spaces
}
