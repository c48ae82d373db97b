package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/heddle-gnn/heddle/internal/cli"
)

// Objects of Kubernetes with the fields that the examples have: the strict reader refuses others.
type (
	kubeMeta struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	}
	kubeHead struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   kubeMeta `yaml:"metadata"`

		Data map[string]string `yaml:"-"` // of a config map
	}
	kubeVolume struct {
		Name   string `yaml:"name"`
		Secret *struct {
			SecretName  string `yaml:"secretName"`
			DefaultMode int    `yaml:"defaultMode"`
		} `yaml:"secret"`
		ConfigMap *kubeMeta `yaml:"configMap"`
		Claim     *struct {
			ClaimName string `yaml:"claimName"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"persistentVolumeClaim"`
	}
	kubeProbe struct {
		HTTPGet struct {
			Path string `yaml:"path"`
			Port string `yaml:"port"`
		} `yaml:"httpGet"`
		PeriodSeconds    int `yaml:"periodSeconds"`
		TimeoutSeconds   int `yaml:"timeoutSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
	kubeContainer struct {
		Name    string   `yaml:"name"`
		Image   string   `yaml:"image"`
		Command []string `yaml:"command"`
		Args    []string `yaml:"args"`
		Ports   []struct {
			Name          string `yaml:"name"`
			ContainerPort int    `yaml:"containerPort"`
			Protocol      string `yaml:"protocol"`
		} `yaml:"ports"`
		StartupProbe   *kubeProbe                   `yaml:"startupProbe"`
		LivenessProbe  *kubeProbe                   `yaml:"livenessProbe"`
		ReadinessProbe *kubeProbe                   `yaml:"readinessProbe"`
		Resources      map[string]map[string]string `yaml:"resources"`
		VolumeMounts   []struct {
			Name      string `yaml:"name"`
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	kubePod struct {
		Metadata kubeMeta `yaml:"metadata"`
		Spec     struct {
			Subdomain       string          `yaml:"subdomain"`
			RestartPolicy   string          `yaml:"restartPolicy"`
			SecurityContext map[string]any  `yaml:"securityContext"`
			Containers      []kubeContainer `yaml:"containers"`
			Volumes         []kubeVolume    `yaml:"volumes"`
		} `yaml:"spec"`
	}
	kubeJob struct {
		CompletionMode string  `yaml:"completionMode"`
		Completions    int     `yaml:"completions"`
		Parallelism    int     `yaml:"parallelism"`
		BackoffLimit   int     `yaml:"backoffLimit"`
		Template       kubePod `yaml:"template"`
	}
	kubeJobSet struct {
		Network struct {
			EnableDNSHostnames       bool `yaml:"enableDNSHostnames"`
			PublishNotReadyAddresses bool `yaml:"publishNotReadyAddresses"`
		} `yaml:"network"`
		FailurePolicy  map[string]int `yaml:"failurePolicy"`
		ReplicatedJobs []struct {
			Name     string `yaml:"name"`
			Replicas int    `yaml:"replicas"`
			Template struct {
				Metadata kubeMeta `yaml:"metadata"`
				Spec     kubeJob  `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"replicatedJobs"`
	}
	kubeService struct {
		ClusterIP                string            `yaml:"clusterIP"`
		PublishNotReadyAddresses bool              `yaml:"publishNotReadyAddresses"`
		Selector                 map[string]string `yaml:"selector"`
	}
	kubeRuntime struct {
		MLPolicy struct {
			NumNodes int `yaml:"numNodes"`
		} `yaml:"mlPolicy"`
		Template struct {
			Spec kubeJobSet `yaml:"spec"`
		} `yaml:"template"`
	}
	kubeTrainJob struct {
		RuntimeRef struct {
			APIGroup string `yaml:"apiGroup"`
			Kind     string `yaml:"kind"`
			Name     string `yaml:"name"`
		} `yaml:"runtimeRef"`
		Trainer struct {
			NumNodes         int                          `yaml:"numNodes"`
			Command          []string                     `yaml:"command"`
			Args             []string                     `yaml:"args"`
			ResourcesPerNode map[string]map[string]string `yaml:"resourcesPerNode"`
		} `yaml:"trainer"`
	}
)

// podsOf is what a manifest starts.
type podsOf struct {
	plan  string // of the config map
	hosts string // of the pods, with {rank}
	job   kubeJob
}

// kubeObject reads the object of a kind from the documents of a file.
func kubeObject[T any](t *testing.T, file, kind string) (spec T, head kubeHead, found bool) {
	t.Helper()
	text := contents(t, filepath.Join("..", "..", "examples", "k8s", file))
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if head.APIVersion+" "+head.Kind != kind {
			continue
		}
		var o struct {
			APIVersion string            `yaml:"apiVersion"`
			Kind       string            `yaml:"kind"`
			Metadata   kubeMeta          `yaml:"metadata"`
			Spec       T                 `yaml:"spec"`
			Data       map[string]string `yaml:"data"`
		}
		if err := yaml.UnmarshalWithOptions(document, &o, yaml.Strict()); err != nil {
			t.Fatalf("%s: %s: %v", file, kind, err)
		}
		head.Data = o.Data
		return o.Spec, head, true
	}
	return spec, head, false
}

// podsIn reads a manifest as the controllers of its kinds do, and checks that its objects agree with each other.
func podsIn(t *testing.T, file string) (of podsOf) {
	t.Helper()
	_, plan, _ := kubeObject[struct{}](t, file, "v1 ConfigMap")
	of.plan = plan.Data["plan.yaml"]
	one := func(name string, s kubeJobSet) {
		equal(t, file+": replicated jobs", len(s.ReplicatedJobs), 1)
		r := s.ReplicatedJobs[0]
		equal(t, file+": replicas", r.Replicas, 1)
		of.job, of.hosts = r.Template.Spec, fmt.Sprintf("%s-%s-0-{rank}.%s", name, r.Name, name)
		if !s.Network.EnableDNSHostnames || !s.Network.PublishNotReadyAddresses {
			t.Errorf("%s: names of pods do not resolve before they are ready", file)
		}
	}
	if s, head, ok := kubeObject[kubeJobSet](t, file, "jobset.x-k8s.io/v1alpha2 JobSet"); ok {
		one(head.Metadata.Name, s)
		return of
	}
	if trained, head, ok := kubeObject[kubeTrainJob](t, file, "trainer.kubeflow.org/v1alpha1 TrainJob"); ok {
		r, made, _ := kubeObject[kubeRuntime](t, file, "trainer.kubeflow.org/v1alpha1 TrainingRuntime")
		one(head.Metadata.Name, r.Template.Spec)
		equal(t, file+": runtime", trained.RuntimeRef.Name, made.Metadata.Name)
		equal(t, file+": kind of the runtime", trained.RuntimeRef.Kind, "TrainingRuntime")
		trainer := r.Template.Spec.ReplicatedJobs[0]
		equal(t, file+": step", trainer.Template.Metadata.Labels["trainer.kubeflow.org/trainjob-ancestor-step"],
			"trainer")
		equal(t, file+": nodes", trained.Trainer.NumNodes, r.MLPolicy.NumNodes)
		c := &of.job.Template.Spec.Containers[0]
		equal(t, file+": container", c.Name, trainer.Name) // whose command the TrainJob gives
		c.Command, c.Args = trained.Trainer.Command, trained.Trainer.Args
		of.job.Completions, of.job.Parallelism = trained.Trainer.NumNodes, trained.Trainer.NumNodes
		return of
	}
	job, head, _ := kubeObject[kubeJob](t, file, "batch/v1 Job")
	s, service, _ := kubeObject[kubeService](t, file, "v1 Service")
	of.job, of.hosts = job, fmt.Sprintf("%s-{rank}.%s", head.Metadata.Name, service.Metadata.Name)
	equal(t, file+": subdomain", job.Template.Spec.Subdomain, service.Metadata.Name)
	equal(t, file+": headless", s.ClusterIP, "None")
	for k, v := range s.Selector {
		equal(t, file+": label "+k, job.Template.Metadata.Labels[k], v)
	}
	if len(s.Selector) == 0 || !s.PublishNotReadyAddresses {
		t.Errorf("%s: names of pods do not resolve before they are ready", file)
	}
	return of
}

// kubeManifests are the files in examples/k8s.
var kubeManifests = []string{"job.yaml", "jobset.yaml", "trainjob.yaml"}

// TestManifests checks the Kubernetes examples as its API server would, and that they agree with
// each other.
func TestManifests(t *testing.T) {
	t.Parallel()
	for _, file := range kubeManifests {
		of := podsIn(t, file)
		j := of.job
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
		root, _ := program.Root(nil)
		join, _, _ := root.Find([]string{"join"})
		if err := join.ParseFlags(c.Args[1:]); err != nil || c.Args[0] != "join" {
			t.Errorf("%s: heddle join must take the arguments (%v)", file, err)
		}
		equal(t, file+": --ranks", arg("--ranks"), fmt.Sprint(j.Completions))
		equal(t, file+": --hosts", arg("--hosts"), of.hosts)
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
		for path, p := range map[string]*kubeProbe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if p == nil || c.StartupProbe == nil {
				t.Fatalf("%s: there must be a startup probe and one of %s", file, path)
			}
			equal(t, file+": path of a probe", p.HTTPGet.Path, path)
			for _, p := range []*kubeProbe{p, c.StartupProbe} {
				equal(t, file+": port of "+path, p.HTTPGet.Port, live.Name)
				if p.PeriodSeconds < 1 {
					t.Errorf("%s: a probe must have a period (got %d)", file, p.PeriodSeconds)
				}
			}
		}
		if _, _, err := cli.ReadPlan(write(t, of.plan)); err != nil {
			t.Errorf("%s: plan.yaml: %v", file, err)
		}
	}
}
