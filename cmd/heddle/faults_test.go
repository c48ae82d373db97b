package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// write puts text into a new file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// refuse fails the test unless the program ends with exit and its error contains all of want.
func refuse(t *testing.T, exit int, want []string, args ...string) {
	t.Helper()
	got, _, stderr := call(t.Context(), args...)
	if got != exit {
		t.Errorf("peer %s: exit %d, must be %d\n%s", strings.Join(args, " "), got, exit, stderr)
	}
	for _, w := range want {
		if !strings.Contains(stderr, w) {
			t.Errorf("peer %s says %q, must contain %q", strings.Join(args, " "), stderr, w)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	data := sites(t)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"train", []string{"--data", "--shards"}},
		{"train --data D --shards S", []string{"either"}},
		{"train --data ../../examples/hospitals/patients.csv",
			[]string{"patients.csv is a table: make a data set of it first, by heddle import"}},
		{"train --data D --epochs 5", []string{"unknown flag: --epochs; did you mean --rounds?"}},
		{"train --data D --epsilon 4 --model gat", []string{"epsilon works with class-means only; model is " +
			"a setting of layer-wise, full-batch and mini-batch"}},
		{"train --data D --method layer-wise --model gat --heads 7",
			[]string{"hidden must be a multiple of heads, 7 (got 256)"}},
		{"train --data D --method layer-wise --model rgcn",
			[]string{"got rgcn, which works with full-batch or mini-batch"}},
		{"train --data D --method layer-wise --encoder embedding:8",
			[]string{"encoder must be raw, mlp, pca:K or pca:K+classes with method layer-wise (got embedding:8, " +
				"which works with full-batch)"}},
		{"predict --data D --model ../../examples/hospitals/patients.csv --out X",
			[]string{"patients.csv: must be a model file (.safetensors)"}},
		{"roster show ../../examples/hospitals/patients.csv", []string{"patients.csv: the file must be a roster"}},
		{"train --data D --config ../../examples/hospitals/patients.csv",
			[]string{`patients.csv: the text must be YAML, one "name: value" a line (got "id,hospital`}},
		{"train --shards D", []string{"must be a partition, as heddle partition"}},
		{"partition --data D --parts x -o X", []string{`--parts must be an integer (got "x")`}},
		{"join --wait x", []string{`--wait must be a duration, as 30s or 5m (got "x")`}},
		{"join --plan X", []string{"--shard must be given with --plan"}},
		{"train --nonsense", []string{"--nonsense", "--help"}},
		{"train --lr much", []string{"--lr", "much"}},
		{"train --data D rest", []string{"rest"}},
		{"nonsense", []string{"nonsense"}},
		{"inspect", []string{"arg", "heddle inspect PATH"}},
		{"roster nonsense", []string{"nonsense", "heddle roster --help"}},
		{"import --nodes n.csv", []string{"heddle import needs --out"}},
		{"train --data D --peers 0", []string{"peers must be at least 1", "(got 0)"}},
		{"train --data D --peers -3", []string{"peers must be at least", "(got -3)"}},
		{"train --data D --peers 601", []string{"601", "600"}},
		{"partition --data D --parts 0 -o X", []string{"parts must be at least 1 (got 0)"}},
		{"partition --data D --parts 601 -o X", []string{"601", "600"}},
		{"train --data D --policy alphabetical", []string{"alphabetical", "random"}},
		{"train --data D --method microbatch",
			[]string{"method must be class-means, layer-wise, full-batch or mini-batch (got \"microbatch\")"}},
		{"train --data D --method mini-batch --fanouts 1,2,3",
			[]string{"fanouts must have a number for each of 2 layers (got 3)"}},
		{"train --data D --method mini-batch --model mlp",
			[]string{"model must be gcn, sage", "(got mlp, which works with full-batch"}},
		{"train --data D --method full-batch --model nonsense",
			[]string{`(got "nonsense")`, "model must be gcn, sage"}},
		{"train --data D --method full-batch --peers 1 --encoder pca:4", []string{"pca:4", "raw"}},
		{"train --data D --method layer-wise --model mlp",
			[]string{"model must be gcn, sage", "(got mlp, which works with full-batch"}},
		{"train --data D --transport pigeon", []string{"pigeon", "libp2p"}},
		{"train --data D --link rate=5", []string{"rate=5", "latency=50ms"}},
		{"train --data D --carrier udp", []string{"udp", "quic"}},
		{"train --data D --encoder pca:0", []string{"pca:0"}},
		{"train --data D --encoder pca:many", []string{"pca:many"}},
		{"train --data D --split 3", []string{"split"}},
		{"train --data D --method layer-wise --layers 0 --rounds 0 --solver magic --lr -1",
			[]string{"layers must be at least 1 and at most 1000 (got 0)", "rounds must be at least 1", "(got 0)",
				`(got "magic")`, "lr must be above 0 (got -1)"}},
		{"train --data D --method layer-wise --rounds 0 --lr -1 --local-steps 0 --metric beauty",
			[]string{"rounds must be at least 1", "lr must be above 0 (got -1)", "local_steps must be at least 1",
				`(got "beauty")`}},
		{"train --data D --model gat --encoder raw",
			[]string{"model: unknown setting of class-means; it belongs to layer-wise, full-batch and mini-batch",
				"encoder: unknown setting of class-means"}},
		{"train --data D --method layer-wise --fetch nonsense",
			[]string{"fetch: unknown setting of layer-wise; it belongs to full-batch"}},
		{"train --data D --method full-batch --alpha 7", []string{"alpha applies only to model appnp (got model gcn)"}},
		{"train --data D --method layer-wise --attention-dropout 9",
			[]string{"attention_dropout applies only to model gat", "(got model gcn)"}},
		{"train --data D --peer-timeout 3s", []string{"--peer-timeout"}},
		{"train --data /nonexistent", []string{"/nonexistent"}},
		{"train --shards /nonexistent", []string{"/nonexistent"}},
		{"predict --model /nonexistent --data D -o X", []string{"/nonexistent"}},
		{"inspect /nonexistent", []string{"/nonexistent"}},
		{"join --plan /nonexistent --shard X", []string{"/nonexistent"}},
		{"plan north", []string{`"north"`, "NAME=ID"}},
		{"plan north=nobody", []string{"north", `"nobody"`}},
		{"plan --carrier pigeon north=nobody", []string{`"pigeon"`, "quic"}},
	} {
		dir := t.TempDir()
		args := strings.Fields(c.args)
		for i, a := range args {
			switch a {
			case "D":
				args[i] = data
			case "X", "S":
				args[i] = filepath.Join(dir, "x")
			}
		}
		refuse(t, 2, c.want, args...)
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s left %v", c.args, left)
		}
	}
}

// TestPlansRefused: a plan by which peers could not connect is neither written nor, if written by
// hand, run.
func TestPlansRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := func(name string) (path, id string) {
		path = filepath.Join(dir, name+".key")
		return path, strings.TrimSpace(must(t, "init", "--identity", path))
	}
	north, a := key("north")
	_, b := key("south")
	plan := filepath.Join(dir, "plan.yaml")
	refuse(t, 2, []string{"number 0 and number 1", `"north"`}, "plan", "-o", plan, "north="+a, "north="+b)
	refuse(t, 2, []string{"south", "must be of one member (member 0 has it, too)"}, "plan", "-o", plan, "north="+a,
		"south="+a)
	if _, err := os.Stat(plan); err == nil {
		t.Error("a refused plan was written")
	}
	must(t, "plan", "-o", plan, "north="+a+"@127.0.0.1", "south="+b+"@127.0.0.1")
	wrong := write(t, strings.Replace(string(contents(t, plan)), "/udp/4002", "/udp/x", 1))
	refuse(t, 2, []string{wrong, "south", "/udp/x"}, "join", "--plan", wrong, "--identity", north, "--shard", dir)
}

func TestSettingsFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"seed: 3\nrouns: 3\n":                                {"file.yaml", "[2:1]", `"rouns"`},
		"method: layer-wise\nlayer_wise:\n  rounds: three\n": {"file.yaml", "[3:11]", `"three"`, "an integer"},
		"method: layer-wise\nlayer_wise: {lr: [1]}\n":        {"file.yaml", "[2:18]", "a number"},
		"class_weights: 3\n":                                 {"file.yaml", "[1:16]", "sequence is expected"},
		"inductive: 3\n":                                     {"file.yaml", "[1:12]", "true or false"},
		"experimental: {peer_timeout: 5}\n":                  {"file.yaml", "[1:30]", "5", "30s"},
		"experimental:\n  peer_timeout: soon\n":              {"file.yaml", "soon"},
		"method: layer-wise\nlayer_wise: {model: cgn}\n":     {`(got "cgn")`, "model must be gcn, sage"},
		"seed: 1\nseed: 2\n":                                 {"file.yaml", "[2:1]", "seed"},
		"fanouts: [5]\n": {"file.yaml",
			"[1:1] fanouts: unknown setting of class-means; it belongs to mini-batch"},
		"method: layer-wise\nrounds: 3\n": {"file.yaml", "[2:1] rounds must stand under layer_wise"},
		"rounds: [1\n":                    {"file.yaml"},
		"peers:\n- name: a\n":             {"file.yaml"},
		"seed: -1\n":                      {"file.yaml", "[1:7]"},
		"fanouts: !0 &a\n0\n":             {"file.yaml", "must not have anchors"}, // the library panics on it
		"method: layer-wise\nlayer_wise: {layers: 0, rounds: 0}\n": {"layers must be", "rounds must be"},
	} {
		refuse(t, 2, want, "train", "--data", sites(t), "--config", write(t, text))
	}
	refuse(t, 2, []string{"fanouts: unknown setting of class-means; it belongs to mini-batch"}, "train", "--data",
		sites(t), "--method", "class-means", "--fanouts", "5")
}

// TestPrecedence: a file overrides the defaults of its method, and flags override both.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	root, _ := program.Root(nil)
	c, _, _ := root.Find([]string{"train"})
	if err := c.ParseFlags([]string{"--rounds", "3", "--fanouts", "5,6"}); err != nil {
		t.Fatal(err)
	}
	j, _, err := cli.LoadPlan("train", write(t, "method: mini-batch\nmini_batch: {rounds: 4, hidden: 9, fanouts: "+
		"[1]}\nseed: 7\npeers: 2\n"), cli.GivenSettings(c.Flags()), nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "encoder, of the method", j.Encoder().String(), "raw")
	equal(t, "hidden, of the file", j.Gradient().Hidden, 9)
	equal(t, "seed, of the file", j.Seed, 7)
	equal(t, "peers, of the file", j.Peers, 2)
	equal(t, "rounds, of the flag", j.Gradient().Rounds, 3)
	equal(t, "fanouts, of the flag", fmt.Sprint(j.MiniBatch.Fanouts), "[5 6]")
	equal(t, "policy, of nobody", j.Policy, "auto")
}

func TestBadData(t *testing.T) {
	t.Parallel()
	good := contents(t, filepath.Join(sites(t), "graph.npz"))
	file := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "graph.npz")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	truncated := file(good[:len(good)/2])
	refuse(t, 2, []string{truncated}, "train", "--data", truncated)
	empty := file(nil)
	refuse(t, 2, []string{empty}, "train", "--data", empty)
	for i := 0; i < len(good); i += len(good)/40 + 1 {
		b := bytes.Clone(good)
		b[i] ^= 0x55
		if exit, _, stderr := call(t.Context(), "inspect", file(b)); exit != 0 && exit != 2 {
			t.Errorf("byte %d changed: exit %d: %s", i, exit, stderr)
		}
	}

	// A peer without a training node takes part if another peer has one.
	g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3, Classes: 3, Columns: 30, Train: 0.2, Val: 0.1},
		rng.New(1))
	strip := func(site int32) string {
		for i := range g.Split {
			if g.Split[i] == graph.Train && (site < 0 || g.Site[i] == site) {
				g.Split[i] = graph.None
			}
		}
		dir := filepath.Join(t.TempDir(), "data")
		if err := dataset.Write(dir, g); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	run := func(data string, more ...string) []string {
		return append([]string{"train", "--data", data, "--method", "layer-wise", "--encoder", "raw", "--rounds", "5",
			"--hidden", "8", "--transport", "memory", "-q", "-o", filepath.Join(t.TempDir(), "out")}, more...)
	}
	must(t, run(strip(1), "--policy", "by-column")...)
	none := strip(-1)
	refuse(t, 2, []string{"train_mask must mark nodes with a label"}, run(none, "--policy", "by-column")...)
	refuse(t, 2, []string{"train_mask must mark nodes with a label"},
		run(none, "--method", "full-batch", "--peers", "1")...)
}

func TestUnwritable(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"cannot write", blocked}, "train", "--data", data, "-o", filepath.Join(blocked, "out"))
	refuse(t, 2, []string{"cannot write", blocked}, "train", "--data", data, "-o", filepath.Join(dir, "out"), "--json",
		filepath.Join(blocked, "out.json"))
	refuse(t, 2, []string{"is a directory"}, "train", "--data", data, "-o", filepath.Join(dir, "out"), "--json", dir)
	refuse(t, 2, []string{"not empty"}, "partition", "--data", data, "-o", dir)
	for _, name := range []string{"model.safetensors", "result.json"} {
		if _, err := os.Stat(filepath.Join(dir, "out", name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// crew is a partition, a plan and the keys of its peers.
type crew struct {
	parts, dir string
	members    []string
	own        []string // settings of each site, which no plan has
}

func newCrew(t *testing.T, n int) *crew {
	c := &crew{dir: t.TempDir()}
	c.parts = filepath.Join(c.dir, "parts")
	must(t, "partition", "--data", sites(t), "--parts", fmt.Sprint(n), "-o", c.parts)
	for r := range n {
		c.members = append(c.members,
			fmt.Sprintf("site-%d=%s", r, strings.TrimSpace(must(t, "init", "--identity", c.key(r)))))
	}
	return c
}

func (c *crew) key(r int) string { return filepath.Join(c.dir, fmt.Sprintf("key-%d", r)) }

// plan writes a plan in which every peer listens on localhost.
func (c *crew) plan(t *testing.T, members []string, settings ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.yaml")
	args := append([]string{"plan", "-o", path, "--method", "layer-wise", "--encoder", "raw", "--hidden", "8",
		"--rounds", "4"}, settings...)
	for _, m := range members {
		args = append(args, m+"@127.0.0.1")
	}
	must(t, withoutEncoder(args)...)
	return path
}

func (c *crew) join(r int, plan string, more ...string) []string {
	return slices.Concat([]string{"join", "--plan", plan, "--shard", filepath.Join(c.parts, fmt.Sprintf("part-%d", r)),
		"--identity", c.key(r), "-q", "--wait", "20s", "-o", filepath.Join(c.dir, fmt.Sprintf("out-%d", r))}, c.own,
		more)
}

// TestJoinRefuses: faults between peers, and before they connect.
func TestJoinRefuses(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	port := fmt.Sprint(testenv.FreePorts(t, 3))
	plan := c.plan(t, c.members, "--port", port)

	t.Run("no member", func(t *testing.T) {
		refuse(t, 2, []string{"not among the 2"}, c.join(0, plan, "--identity", filepath.Join(c.dir, "stranger"))...)
	})
	t.Run("another's part", func(t *testing.T) {
		refuse(t, 2, []string{"part-1", "part 1 of 2", "number 0"},
			c.join(0, plan, "--shard", filepath.Join(c.parts, "part-1"))...)
	})
	t.Run("no part", func(t *testing.T) {
		refuse(t, 2, []string{"part-7"}, c.join(0, plan, "--shard", filepath.Join(c.parts, "part-7"))...)
	})
	t.Run("number of peers", func(t *testing.T) {
		refuse(t, 2, []string{"part 0 of 2", "of the 1"}, c.join(0, c.plan(t, c.members[:1], "--port", port))...)
	})
	t.Run("unknown field", func(t *testing.T) {
		text := contents(t, plan)
		refuse(t, 2, []string{"[1:1]", "colour"}, c.join(0, write(t, "colour: red\n"+string(text)))...)
	})
	t.Run("port in use", func(t *testing.T) {
		conn, err := net.ListenPacket("udp4", "127.0.0.1:"+port)
		if err != nil {
			t.Skip("SKIPPED: somebody took the port")
		}
		defer conn.Close()
		refuse(t, 1, []string{"in use", port}, c.join(0, plan)...)
	})
	t.Run("nobody else", func(t *testing.T) {
		refuse(t, 1, []string{"site-1"}, c.join(0, plan, "--wait", "1s")...)
	})
	both := func(t *testing.T, exit int, want string, args0, args1 []string) {
		t.Helper()
		done := make(chan string)
		go func() {
			got, _, stderr := call(t.Context(), args1...)
			if got != exit {
				stderr = fmt.Sprintf("exit %d, want %d: %s", got, exit, stderr)
			}
			done <- stderr
		}()
		refuse(t, exit, []string{want, "site-1"}, args0...)
		if stderr := <-done; !strings.Contains(stderr, want) || !strings.Contains(stderr, "site-0") ||
			strings.HasPrefix(stderr, "exit") {
			t.Errorf("the other peer says %q, must contain %s and site-0", stderr, want)
		}
	}
	t.Run("plans differ", func(t *testing.T) {
		both(t, 2, "plan", c.join(0, plan), c.join(1, c.plan(t, c.members, "--port", port, "--lr", "0.5")))
	})
	t.Run("partitions differ", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "parts")
		must(t, "partition", "--data", sites(t), "--parts", "2", "--seed", "2", "-o", other)
		both(t, 2, "partition", c.join(0, plan), c.join(1, plan, "--shard", filepath.Join(other, "part-1")))
	})
	t.Run("stranger dials in", func(t *testing.T) {
		// A stranger with its own copy of the plan, which lists it, is refused; the others are not
		// disturbed.
		stranger := strings.TrimSpace(must(t, "init", "--identity", filepath.Join(c.dir, "dialer")))
		false1 := c.plan(t, []string{c.members[0], "intruder=" + stranger}, "--port", port)
		done := make(chan int)
		go func() {
			exit, _, _ := call(t.Context(), c.join(1, false1, "--identity", filepath.Join(c.dir, "dialer"), "--listen",
				"/ip4/127.0.0.1/udp/0/quic-v1", "--wait", "4s", "-o", filepath.Join(c.dir, "stolen"))...)
			done <- exit
		}()
		honest := make(chan string)
		go func() {
			_, _, stderr := call(t.Context(), c.join(1, plan)...)
			honest <- stderr
		}()
		must(t, c.join(0, plan)...)
		if stderr := <-honest; stderr != "" {
			t.Errorf("the honest peer says %q", stderr)
		}
		if exit := <-done; exit == 0 {
			t.Error("the stranger took part")
		}
		if _, err := os.Stat(filepath.Join(c.dir, "stolen", "model.safetensors")); err == nil {
			t.Error("the stranger has a model")
		}
	})
}

// TestPlansDiffer: one of three processes has another plan. All end immediately and name the
// settings that differ, and the sites.
func TestPlansDiffer(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3)
	port := fmt.Sprint(testenv.FreePorts(t, 3))
	same, other := c.plan(t, c.members, "--port", port),
		c.plan(t, c.members, "--port", port, "--lr", "0.5", "--encoder", "mlp")
	said := make([]string, 3)
	var all sync.WaitGroup
	for r, plan := range []string{same, same, other} {
		all.Go(func() {
			begun := time.Now()
			p := process(t, c.join(r, plan, "--wait", "2m")...)
			text, err := p.CombinedOutput()
			said[r] = string(text)
			if exit, _ := errors.AsType[*exec.ExitError](err); exit == nil || exit.ExitCode() != 2 ||
				time.Since(begun) > time.Minute {
				t.Errorf("site %d: %v after %v\n%s", r, err, time.Since(begun), text)
			}
		})
	}
	all.Wait()
	for r, text := range said {
		for _, setting := range []string{"lr", "encoder"} {
			one, another := `"0.01"`, `"0.5"`
			if setting == "encoder" {
				one, another = `"raw"`, `"mlp"`
			}
			if !strings.Contains(text, setting+" is ") || !strings.Contains(text, one) ||
				!strings.Contains(text, another) || !strings.Contains(text, "site-2") && r < 2 {
				t.Errorf("site %d does not say that %s differs, of which site:\n%s", r, setting, text)
			}
		}
		if strings.Contains(text, "rounds is") {
			t.Errorf("site %d names a setting that is the same:\n%s", r, text)
		}
	}
}

// TestLostPeer: a failed peer ends the run of the others with its name. When it is back they
// resume, and the model is that of an undisturbed run.
func TestLostPeer(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	settings := []string{"--rounds", "1500"}
	c.own = []string{"--checkpoint-every", "100"}
	// over QUIC silence is noticed after 30 s
	plan := c.plan(t, c.members, append(settings, "--port", fmt.Sprint(testenv.FreePorts(t, 2)), "--carrier", "tcp")...)
	state := func(r int) string { return filepath.Join(c.dir, fmt.Sprintf("state-%d", r)) }
	lost := process(t, c.join(1, plan, "--state", state(1))...)
	if err := lost.Start(); err != nil {
		t.Fatal(err)
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for len(checkpoints(t, state(1))) == 0 { // until it trains
			time.Sleep(time.Millisecond)
		}
		lost.Process.Kill()
		lost.Wait()
	}()
	refuse(t, 1, []string{"site-1"}, c.join(0, plan, "--state", state(0), "--rejoin", "0")...)
	<-killed

	back := process(t, c.join(1, plan, "--state", state(1))...)
	if err := back.Start(); err != nil {
		t.Fatal(err)
	}
	exit, _, stderr := call(t.Context(),
		slices.DeleteFunc(c.join(0, plan, "--state", state(0)), func(s string) bool { return s == "-q" })...)
	if exit != 0 || !strings.Contains(stderr, "resumed from a checkpoint") {
		t.Fatalf("after the peer was back: exit %d: %s", exit, stderr)
	}
	if err := back.Wait(); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(c.dir, "whole")
	must(t,
		withoutEncoder(slices.Concat([]string{"train", "--shards", c.parts, "--method", "layer-wise", "--encoder",
			"raw", "--hidden", "8", "--transport", "memory", "-q", "-o", whole}, settings))...)
	want := contents(t, filepath.Join(whole, "model.safetensors"))
	for r := range 2 {
		if !bytes.Equal(contents(t, filepath.Join(c.dir, fmt.Sprintf("out-%d", r), "model.safetensors")), want) {
			t.Errorf("peer %d: the resumed run made another model", r)
		}
	}
	other := c.plan(t, c.members, append(settings, "--lr", "0.5", "--port", fmt.Sprint(testenv.FreePorts(t, 2)),
		"--carrier", "tcp")...)
	refuse(t, 2, []string{"lr is 0.5, and was 0.01"}, append(c.join(0, other, "--state", state(0)), "--wait", "5s")...)
	if said := must(t, "inspect", state(0)); !strings.Contains(said, "to continue: heddle join --plan "+plan) ||
		!strings.Contains(said, "method layer-wise") {
		t.Errorf("inspect says\n%s", said)
	}
}

// TestStay: the other peer waits for one that is killed twice; when it is back both continue to the
// model of an undisturbed run.
func TestStay(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	settings := []string{"--rounds", "1500"}
	c.own = []string{"--checkpoint-every", "50"}
	plan := c.plan(t, c.members, append(settings, "--port", fmt.Sprint(testenv.FreePorts(t, 2)), "--carrier", "tcp")...)
	state := func(r int) string { return filepath.Join(c.dir, fmt.Sprintf("state-%d", r)) }
	type end struct {
		exit   int
		stderr string
	}
	stayed := make(chan end)
	go func() {
		exit, _, stderr := call(t.Context(), slices.DeleteFunc(c.join(0, plan, "--state", state(0), "--rejoin", "1m"),
			func(s string) bool { return s == "-q" })...)
		stayed <- end{exit, stderr}
	}()
	newest := uint64(0)
	for life := range 3 {
		p := process(t, c.join(1, plan, "--state", state(1))...)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if life == 2 {
			if err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			break
		}
		for begun := time.Now(); ; time.Sleep(time.Millisecond) { // until it is further than before the kill
			if list := checkpoints(t, state(1)); len(list) > 0 && list[0] > newest+50 {
				newest = list[0]
				break
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("life %d got no further than checkpoint %d", life, newest)
			}
		}
		p.Process.Kill()
		p.Wait()
	}
	if e := <-stayed; e.exit != 0 || strings.Count(e.stderr, "a peer failed") != 2 ||
		strings.Count(e.stderr, "resumed from a checkpoint") != 2 {
		t.Fatalf("the peer that stayed: exit %d: %s", e.exit, e.stderr)
	}
	whole := filepath.Join(c.dir, "whole")
	must(t,
		withoutEncoder(slices.Concat([]string{"train", "--shards", c.parts, "--method", "layer-wise", "--encoder",
			"raw", "--hidden", "8", "--transport", "memory", "-q", "-o", whole}, settings))...)
	want := contents(t, filepath.Join(whole, "model.safetensors"))
	for r := range 2 {
		if !bytes.Equal(contents(t, filepath.Join(c.dir, fmt.Sprintf("out-%d", r), "model.safetensors")), want) {
			t.Errorf("peer %d made another model than a run without faults", r)
		}
	}
}

func checkpoints(t *testing.T, dir string) []uint64 {
	t.Helper()
	list, err := (&checkpoint.Store{Dir: dir}).List()
	if err != nil {
		t.Error(err)
	}
	return list
}
