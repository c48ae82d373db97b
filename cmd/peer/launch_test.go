package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
)

// TestLaunch starts three processes as Open MPI would, with five parts, one secret and a plan
// without members. They find each other and make the same model as one process.
func TestLaunch(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "partition", "--data", sites(t), "--parts", "5", "-o", at("parts"))
	settings := "mode: fullbatch\norder: fixed\nhidden: 8\nrounds: 4\n"
	for name, text := range map[string]string{"plan.yaml": settings + "carrier: tcp\n", "settings.yaml": settings, "secret": strings.Repeat("0123456789abcdef", 2)} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ranks := func(args ...string) {
		t.Helper()
		for r, p := range launched(t, append(args, "--plan", at("plan.yaml"), "--shard", at("parts"), "--secret", at("secret"))...) {
			if err := p.Wait(); err != nil {
				t.Errorf("%s, rank %d: %v", args[0], r, err)
			}
		}
	}
	ranks("join", "-q", "-o", at("out"), "--state", at("state"), "--json", at("figures.json"))
	ranks("predict", "--model", at("out/rank-0/model.safetensors"), "--out", at("again-{rank}.csv"))
	must(t, "train", "--config", at("settings.yaml"), "--shards", at("parts"), "--peers", "3", "--transport", "memory", "-q", "-o", at("whole"))
	want := contents(t, filepath.Join(at("whole"), "model.safetensors"))
	for r := range 3 {
		own, again := predictedClasses(t, at(fmt.Sprintf("out/rank-%d/predictions.csv", r))), predictedClasses(t, at(fmt.Sprintf("again-%d.csv", r)))
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
	port := freePorts(t, 3)
	first, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for r := range 3 {
		p := process(t, append(args, "--port", port, "--wait", "20s", "--listen", fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", first+r))...)
		p.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SLURM_") || strings.HasPrefix(s, "JOB_") }),
			append(p.Env, fmt.Sprint("OMPI_COMM_WORLD_RANK=", r), "OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_LOCAL_SIZE=3")...)
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
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, "partition", "--data", sites(t), "--parts", "2", "-o", at("parts"))
	for name, text := range map[string]string{"plan.yaml": "mode: fullbatch\n", "secret": strings.Repeat("x", 32), "short": "password"} {
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
		refuse(t, 2, []string{c.want}, append([]string{"join", "--plan", at("plan.yaml"), "--shard", at("parts")}, strings.Fields(c.args)...)...)
	}
	refuse(t, 2, []string{"--plan"}, "predict", "--model", "m", "--out", "p.csv", "--secret", at("secret"))
	must(t, "train", "--shards", at("parts"), "--transport", "memory", "--preset", "frugal", "-q", "-o", at("run"))
	refuse(t, 2, []string{"{rank}"}, "predict", "--model", at("run/model.safetensors"), "--plan", at("plan.yaml"), "--shard", at("parts"), "--out", at("p.csv"),
		"--secret", at("secret"), "--rank", "0", "--ranks", "2", "--hosts", "a,b")
}

// TestManifests checks the Kubernetes examples as its API server would, and that they agree with
// each other: the strict reader refuses unknown fields.
func TestManifests(t *testing.T) {
	type meta struct {
		Name string `yaml:"name"`
	}
	type volume struct {
		Name   string `yaml:"name"`
		Secret *struct {
			SecretName  string `yaml:"secretName"`
			DefaultMode int    `yaml:"defaultMode"`
		} `yaml:"secret"`
		ConfigMap *meta `yaml:"configMap"`
		Claim     *struct {
			ClaimName string `yaml:"claimName"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"persistentVolumeClaim"`
	}
	type probe struct {
		HTTPGet struct {
			Path string `yaml:"path"`
			Port string `yaml:"port"`
		} `yaml:"httpGet"`
		PeriodSeconds    int `yaml:"periodSeconds"`
		TimeoutSeconds   int `yaml:"timeoutSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
	type pod struct {
		Metadata struct {
			Labels map[string]string `yaml:"labels"`
		} `yaml:"metadata"`
		Spec struct {
			Subdomain       string         `yaml:"subdomain"`
			RestartPolicy   string         `yaml:"restartPolicy"`
			SecurityContext map[string]any `yaml:"securityContext"`
			Containers      []struct {
				Name    string   `yaml:"name"`
				Image   string   `yaml:"image"`
				Command []string `yaml:"command"`
				Args    []string `yaml:"args"`
				Ports   []struct {
					Name          string `yaml:"name"`
					ContainerPort int    `yaml:"containerPort"`
					Protocol      string `yaml:"protocol"`
				} `yaml:"ports"`
				StartupProbe   *probe                       `yaml:"startupProbe"`
				LivenessProbe  *probe                       `yaml:"livenessProbe"`
				ReadinessProbe *probe                       `yaml:"readinessProbe"`
				Resources      map[string]map[string]string `yaml:"resources"`
				VolumeMounts   []struct {
					Name      string `yaml:"name"`
					MountPath string `yaml:"mountPath"`
					ReadOnly  bool   `yaml:"readOnly"`
				} `yaml:"volumeMounts"`
			} `yaml:"containers"`
			Volumes []volume `yaml:"volumes"`
		} `yaml:"spec"`
	}
	type Job struct {
		CompletionMode string `yaml:"completionMode"`
		Completions    int    `yaml:"completions"`
		Parallelism    int    `yaml:"parallelism"`
		BackoffLimit   int    `yaml:"backoffLimit"`
		Template       pod    `yaml:"template"`
	}
	type object struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   meta              `yaml:"metadata"`
		Data       map[string]string `yaml:"data"`
		Spec       struct {
			Job                      `yaml:",inline"`
			ClusterIP                string            `yaml:"clusterIP"`
			PublishNotReadyAddresses bool              `yaml:"publishNotReadyAddresses"`
			Selector                 map[string]string `yaml:"selector"`
			Network                  struct {
				EnableDNSHostnames       bool `yaml:"enableDNSHostnames"`
				PublishNotReadyAddresses bool `yaml:"publishNotReadyAddresses"`
			} `yaml:"network"`
			FailurePolicy  map[string]int `yaml:"failurePolicy"`
			ReplicatedJobs []struct {
				Name     string `yaml:"name"`
				Replicas int    `yaml:"replicas"`
				Template struct {
					Spec Job `yaml:"spec"`
				} `yaml:"template"`
			} `yaml:"replicatedJobs"`
		} `yaml:"spec"`
	}
	for file, hosts := range map[string]string{"job.yaml": "heddle-{rank}.heddle", "jobset.yaml": "heddle-workers-0-{rank}.heddle"} {
		text := contents(t, filepath.Join("..", "..", "examples", "k8s", file))
		objects := make(map[string]object)
		d := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
		for range bytes.Count(text, []byte("\n---\n")) + 1 {
			var o object
			if err := d.Decode(&o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			objects[o.APIVersion+" "+o.Kind] = o
		}
		var j Job
		if o, ok := objects["jobset.x-k8s.io/v1alpha2 JobSet"]; ok {
			equal(t, file+": replicated jobs", len(o.Spec.ReplicatedJobs), 1)
			r := o.Spec.ReplicatedJobs[0]
			equal(t, file+": replicas", r.Replicas, 1)
			equal(t, file+": hosts", strings.ReplaceAll(hosts, "{rank}", "0"), fmt.Sprintf("%s-%s-0-0.%s", o.Metadata.Name, r.Name, o.Metadata.Name))
			j = r.Template.Spec
			if !o.Spec.Network.EnableDNSHostnames || !o.Spec.Network.PublishNotReadyAddresses {
				t.Errorf("%s: names of pods do not resolve before they are ready", file)
			}
		} else {
			o, s := objects["batch/v1 Job"], objects["v1 Service"]
			j = o.Spec.Job
			service := s.Metadata.Name
			equal(t, file+": hosts", strings.ReplaceAll(hosts, "{rank}", "0"), fmt.Sprintf("%s-0.%s", o.Metadata.Name, service))
			equal(t, file+": subdomain", j.Template.Spec.Subdomain, service)
			equal(t, file+": headless", s.Spec.ClusterIP, "None")
			for k, v := range s.Spec.Selector {
				equal(t, file+": label "+k, j.Template.Metadata.Labels[k], v)
			}
			if len(s.Spec.Selector) == 0 || !s.Spec.PublishNotReadyAddresses {
				t.Errorf("%s: names of pods do not resolve before they are ready", file)
			}
		}
		equal(t, file+": completion mode", j.CompletionMode, "Indexed")
		equal(t, file+": pods at a time", j.Parallelism, j.Completions)
		if p := j.Template.Spec.RestartPolicy; p != "OnFailure" && p != "Never" {
			t.Errorf("%s: restart policy %q is none of a job", file, p)
		}
		equal(t, file+": containers", len(j.Template.Spec.Containers), 1)
		c := j.Template.Spec.Containers[0]
		arg := func(name string) string {
			k := slices.Index(c.Args, name)
			if k < 0 || k+1 == len(c.Args) {
				t.Fatalf("%s: no %s among the arguments", file, name)
			}
			return c.Args[k+1]
		}
		if err := newJoin().ParseFlags(c.Args[1:]); err != nil || c.Args[0] != "join" {
			t.Errorf("%s: the arguments must be those of peer join (%v)", file, err)
		}
		equal(t, file+": --ranks", arg("--ranks"), fmt.Sprint(j.Completions))
		equal(t, file+": --hosts", arg("--hosts"), hosts)
		mounted := func(path string) {
			for _, m := range c.VolumeMounts {
				if strings.HasPrefix(path, m.MountPath+"/") || path == m.MountPath {
					for _, v := range j.Template.Spec.Volumes {
						if v.Name == m.Name {
							return
						}
					}
				}
			}
			t.Errorf("%s: nothing is mounted for %s", file, path)
		}
		for _, name := range []string{"--plan", "--shard", "--secret", "--state", "--out", "--http-token-file"} {
			mounted(arg(name))
		}
		if len(c.Ports) != 2 || c.Ports[0].ContainerPort != 4001 || c.Ports[0].Protocol != "UDP" {
			t.Fatalf("%s: the first of 2 ports must be 4001 by UDP (got %v)", file, c.Ports)
		}
		live := c.Ports[1]
		equal(t, file+": --http", arg("--http"), fmt.Sprintf("0.0.0.0:%d", live.ContainerPort))
		for path, p := range map[string]*probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if p == nil || c.StartupProbe == nil {
				t.Fatalf("%s: there must be a startup probe and one of %s", file, path)
			}
			equal(t, file+": path of a probe", p.HTTPGet.Path, path)
			for _, p := range []*probe{p, c.StartupProbe} {
				equal(t, file+": port of "+path, p.HTTPGet.Port, live.Name)
				if p.PeriodSeconds < 1 {
					t.Errorf("%s: a probe must have a period (got %d)", file, p.PeriodSeconds)
				}
			}
		}
		plan := objects["v1 ConfigMap"].Data["plan.yaml"]
		if _, _, err := cli.ReadPlan(write(t, plan), func(text string) { t.Error(text) }); err != nil {
			t.Errorf("%s: plan.yaml: %v", file, err)
		}
	}
}
