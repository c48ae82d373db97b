package bind

import (
	"bufio"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// patience only guards against hanging.
const patience = 3 * time.Minute

// The goals for the library, in bytes.
const (
	mostBytes  = 19_000_000
	mostPacked = 5_800_000
)

// machine starts a program for Java machines, with the library.
type machine struct{ dir, classes, program string }

// build builds the library and java/Phone.java, once for all tests.
func build(t *testing.T) machine {
	t.Helper()
	for _, program := range []string{"javac", "gcc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: no %s: the library is not run in a Java machine", program)
		}
	}
	dir := t.TempDir()
	if out, err := exec.Command("./jvm.sh", dir, "java/Phone.java").CombinedOutput(); err != nil {
		t.Fatalf("jvm.sh: %v\n%s", err, out)
	}
	return machine{dir, filepath.Join(dir, "classes"), "Phone"}
}

// phone is a process; lines are what it prints.
type phone struct {
	*exec.Cmd
	lines chan string
	all   []string
}

// run starts the program; the test ends it.
func (m machine) run(t *testing.T, args ...string) *phone {
	t.Helper()
	p := &phone{Cmd: exec.Command("java", append([]string{"-XX:+UseSerialGC", "-Xmx64m", "-Djava.library.path=" + m.dir,
		"-cp", m.classes, m.program}, args...)...), lines: make(chan string, 10_000)}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = os.Stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	})
	t.Cleanup(func() { p.Process.Kill(); reading.Wait(); p.Wait() })
	return p
}

// until returns the first line that begins so.
func (p *phone) until(t *testing.T, begin string) string {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("the phone ended without %q: %s", begin, strings.Join(p.all, "\n"))
			}
			p.all = append(p.all, line)
			if strings.HasPrefix(line, begin) {
				return line
			}
		case <-limit:
			t.Fatalf("the phone never said %q: %s", begin, strings.Join(p.all, "\n"))
		}
	}
}

// federation is two phones that only dial out, a site, and a relay through which the phones reach each other.
type federation struct {
	machine
	ids  string // directory of the phones' keys
	plan string // file
	of   heddle.Plan
	site heddle.Site
}

func newFederation(t *testing.T, m machine, settings string) *federation {
	t.Helper()
	f := &federation{machine: m, ids: t.TempDir()}
	var members []identity.Member
	for r := range 2 {
		p := m.run(t, "id", filepath.Join(f.ids, fmt.Sprint(r)))
		members = append(members,
			identity.Member{Name: fmt.Sprintf("phone-%d", r), ID: strings.TrimPrefix(p.until(t, "id "), "id ")})
	}
	at := free(t)
	own, err := identity.New()
	relay, err2 := identity.New()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	members = append(members, identity.Member{Name: "site", ID: own.PeerID(), Addrs: []string{at}})
	r, err := node.ListenRelay(node.Config{Identity: relay, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}},
		identity.Roster{Members: members}, node.RelayLimits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	text := settings + "\nrelays: [" + strings.Join(r.Addrs(), ", ") + "]\nmembers:\n"
	for _, m := range members {
		text += fmt.Sprintf("- name: %s\n  id: %s\n  addresses: [%s]\n", m.Name, m.ID, strings.Join(m.Addrs, ", "))
	}
	f.plan = filepath.Join(f.ids, "plan.yaml")
	p, err := heddle.ReadPlan([]byte(text), nil, nil)
	if err := errors.Join(err, os.WriteFile(f.plan, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	f.of, f.site = *p, heddle.Site{Identity: own, Wait: patience, Rejoin: patience}
	return f
}

// people is the site's graph: two groups, as in Phone.java.
func people(t *testing.T, nodes int) *graph.Graph {
	t.Helper()
	var src, dst []int32
	x, class, split := mat.New(nodes, 4), make([]int32, nodes), make([]graph.Split, nodes)
	for i := range nodes {
		group := i % 2
		x.Set(i, group, 1)
		x.Set(i, 3, float32(group))
		class[i], split[i] = int32(group), graph.Split(1+i/2%3)
		src, dst = append(src, int32(i)), append(dst, int32((i+2)%nodes))
	}
	adj, err := graph.FromEdges(nodes, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	return &graph.Graph{Name: "people", Adj: adj, X: graph.Features{Dense: x},
		Labels: graph.Labels{Classes: 2, Class: class}, Split: split}
}

// train runs the site, and both phones with fresh directories and this many nodes. between gets phone 1, and returns
// the phone that replaces it (nil = none).
func (f *federation) train(t *testing.T, nodes int, between func(*phone, []string) *phone) (models [][]byte) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	dir, g := t.TempDir(), people(t, 400)
	var result *heddle.Result
	var failed error
	var site sync.WaitGroup
	site.Go(func() { result, failed = heddle.JoinGraph(ctx, f.of, f.site, g, dir) })
	t.Cleanup(func() { cancel(); site.Wait() })
	var phones []*phone
	var dirs []string
	for r := range 2 {
		at := filepath.Join(f.ids, fmt.Sprint(r))
		if err := os.RemoveAll(filepath.Join(at, "runs")); err != nil {
			t.Fatal(err)
		}
		args := []string{"train", at, f.plan, fmt.Sprint(r), fmt.Sprint(nodes)}
		p := f.run(t, args...)
		if r == 1 && between != nil {
			p = between(p, args)
		}
		if p != nil {
			phones, dirs = append(phones, p), append(dirs, at)
		}
	}
	for k, p := range phones {
		p.until(t, "state done")
		memory := p.until(t, "resident")
		right := p.until(t, "right")
		p.until(t, "end")
		t.Logf("%s; %s; %s; %s", p.all[0], p.all[1], memory, right)
		model, err := os.ReadFile(filepath.Join(dirs[k], "runs", "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, model)
	}
	if site.Wait(); failed != nil {
		t.Fatal(failed)
	}
	for _, m := range models {
		if !bytes.Equal(m, models[0]) {
			t.Error("the phones must end with the same model")
		}
	}
	if result.Test < 0.9 {
		t.Errorf("test accuracy is %v", result.Test)
	}
	return models
}

const trained = "method: layer-wise\nlayer_wise: {model: gcn, encoder: pca:2, hidden: 8, rounds: 40, secure_sums: " +
	"auto}\nexperimental: {peer_timeout: 2s}"

// TestJavaMachine: two phones, each a Java machine with the library, and a site train over QUIC. One phone is killed
// and resumes, and the model has the bits of a run without that; one leaves for good, and the others finish.
func TestJavaMachine(t *testing.T) {
	m := build(t)
	t.Run("size", m.size)
	t.Run("licenses", m.licensed)
	other := m
	t.Run("Kotlin", func(t *testing.T) { other = m.kotlin(t) })
	f := newFederation(t, m, trained)
	var want []byte
	t.Run("trains", func(t *testing.T) { want = f.train(t, 60, nil)[0] })
	t.Run("killed", func(t *testing.T) {
		got := f.train(t, 60, func(p *phone, args []string) *phone {
			p.until(t, "round 12")
			p.Process.Kill()
			return f.run(t, args...)
		})
		if !bytes.Equal(got[0], want) {
			t.Error("the model must be that of a run without a killed phone")
		}
	})
	t.Run("leaves of two sites", func(t *testing.T) { leaves(t, m, other) })
	t.Run("memory", func(t *testing.T) {
		nodes := 10_000
		if testing.Short() {
			nodes = 1000
		}
		newFederation(t, m, "experimental: {peer_timeout: 2s}").train(t, nodes, nil)
	})
	t.Run("faults", func(t *testing.T) {
		f := newFederation(t, m, trained)
		m.run(t, "faults", filepath.Join(f.ids, "0"), f.plan).until(t, "end")
	})
	t.Run("cycles", func(t *testing.T) { f.cycles(t) })
}

// leaves has two phones that no plan lists send shares to two sites; all end with one model.
func leaves(t *testing.T, programs ...machine) {
	ids := make([]identity.Identity, 2)
	text := "phone_when: always\nclass_means: {phones: 2, experimental: {class_rounds: 2, least_leaves: 2}}\nmembers:\n"
	for r := range ids {
		var err error
		if ids[r], err = identity.New(); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("- {name: site-%d, id: %s, addresses: [%s], leaf_addresses: [%s]}\n", r, ids[r].PeerID(),
			free(t), free(t))
	}
	p, err := heddle.ReadPlan([]byte(text), nil, nil)
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	if err := errors.Join(err, os.WriteFile(plan, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sites sync.WaitGroup
	errs := make([]error, len(ids))
	for r, id := range ids {
		site := heddle.Site{Identity: id, Wait: patience,
			Phones: &gate.Phones{Stay: patience, Cohorts: []gate.Cohort{{Name: "app", Most: 2}},
				Attest: func(_ context.Context, _ [16]byte, evidence []byte) (gate.Admission, error) {
					if string(evidence) != "spring" {
						return gate.Admission{}, errors.New("no invitation")
					}
					return gate.Admission{Cohort: "app"}, nil
				}}}
		g := people(t, 200)
		sites.Go(func() { _, errs[r] = heddle.JoinGraph(ctx, *p, site, g, filepath.Join(dir, fmt.Sprint("site-", r))) })
	}
	t.Cleanup(func() { cancel(); sites.Wait() })
	var phones []*phone
	for r, m := range programs {
		phones = append(phones, m.run(t, "train", filepath.Join(dir, fmt.Sprint(r)), plan, fmt.Sprint(r), "60",
			"spring"))
	}
	var models [2][]byte
	for r, one := range phones {
		one.until(t, "state done")
		t.Log(one.until(t, "resident"), one.until(t, "right"))
		one.until(t, "end") // of further checks of the phone in Kotlin
		if models[r], err = os.ReadFile(filepath.Join(dir, fmt.Sprint(r), "runs", "model.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	sites.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(models[0], models[1]) {
		t.Error("the phones must end with the same model")
	}
}

// free returns an address on loopback that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	at, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	return fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", at.LocalAddr().(*net.UDPAddr).Port)
}

func (f *federation) cycles(t *testing.T) {
	count := 1000
	if testing.Short() {
		count = 60
	}
	p := f.run(t, "cycles", filepath.Join(f.ids, "0"), f.plan, fmt.Sprint(count))
	line := p.until(t, "cycles")
	var done, threads, threadsEnd, files, filesEnd, slowest int
	if _, err := fmt.Sscanf(line, "cycles %d threads %d to %d files %d to %d slowest %d ms", &done, &threads,
		&threadsEnd, &files, &filesEnd, &slowest); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if threadsEnd > threads+8 || filesEnd > files {
		t.Errorf("threads and files must not grow: %s", line)
	}
	p.until(t, "end")
	t.Logf("%s\n%s", line, strings.Join(p.all, "\n"))
}

// licensed checks that the notices have each module of the library.
func (m machine) licensed(t *testing.T) {
	info, err1 := buildinfo.ReadFile(filepath.Join(m.dir, "libgojni.so"))
	notices, err2 := os.ReadFile(filepath.Join(m.dir, "NOTICES"))
	if err := errors.Join(err1, err2); err != nil || len(info.Deps) == 0 {
		t.Fatal(err)
	}
	for _, d := range info.Deps {
		ours := d.Replace != nil && (d.Replace.Path == "../.." || d.Replace.Path == "./prometheus")
		if !ours && !strings.Contains(string(notices), "\n"+d.Path+" "+d.Version+": ") {
			t.Errorf("the library must have the license of %s", d.Path)
		}
	}
}

// size compares the library with its goals.
func (m machine) size(t *testing.T) {
	library := filepath.Join(m.dir, "libgojni.so")
	info, err := os.Stat(library)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > mostBytes {
		t.Errorf("the library has %d bytes, more than %d", info.Size(), mostBytes)
	}
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("SKIPPED: no xz: the packed library is not measured")
	}
	packed, err := exec.Command("xz", "--stdout", "--keep", library).Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > mostPacked {
		t.Errorf("the library has %d bytes in xz, more than %d", len(packed), mostPacked)
	}
	t.Logf("%d bytes, %d in xz", info.Size(), len(packed))
}

// kotlin compiles the library for Kotlin, the example for Android, what pages show, and testdata/Phone.kt, a phone that
// it returns.
func (m machine) kotlin(t *testing.T) machine {
	if _, err := exec.LookPath("mvn"); err != nil {
		t.Skip("SKIPPED: no mvn: no Kotlin is compiled")
	}
	args := []string{filepath.Join(m.dir, "classes")}
	for _, at := range []string{"kotlin", "testdata", "testdata/androidx",
		"../../examples/android/app/src/main/java/org/heddle/phones"} {
		files, err := filepath.Glob(at + "/*.kt")
		if err != nil || len(files) == 0 {
			t.Fatalf("no Kotlin in %s (%v)", at, err)
		}
		args = append(args, files...)
	}
	compiler := exec.Command("kotlin/kotlin.sh", append(args, pages(t))...)
	var errs bytes.Buffer
	compiler.Stderr = &errs
	out, err := compiler.Output()
	if compiler.ProcessState.ExitCode() == noMaven {
		t.Skipf("SKIPPED: Maven cannot bring a compiler: no Kotlin is compiled: %s", errs.String())
	}
	if err != nil {
		t.Fatalf("kotlin.sh: %v\n%s", err, errs.String())
	}
	return machine{m.dir, m.classes + ":" + strings.TrimSpace(string(out)), "PhoneKt"}
}

// pages writes a file with the Kotlin of pages, as testdata/pages.kt.txt frames it.
func pages(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/pages.kt.txt")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`PAGE \S+`).ReplaceAllFunc(text, func(at []byte) (code []byte) {
		page, err := os.ReadFile(string(at[len("PAGE "):]))
		blocks := regexp.MustCompile("(?s)```kotlin\n(.*?)```").FindAllSubmatch(page, -1)
		if err != nil || len(blocks) < 2 {
			t.Fatalf("%s must show Kotlin (%v)", at, err)
		}
		for _, block := range blocks {
			code = append(code, block[1]...)
		}
		return code
	})
	path := filepath.Join(t.TempDir(), "Pages.kt")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// noMaven is the exit status of kotlin.sh without what Maven brings.
const noMaven = 3
