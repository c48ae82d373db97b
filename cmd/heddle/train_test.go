package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// quick are settings of a short run with a hidden layer and its exchange.
var quick = slices.Concat(quickPlan, []string{"--checkpoint-every", "4", "-q"})

// quickPlan are the settings of quick on which sites agree.
var quickPlan = []string{"--method", "layer-wise", "--encoder", "pca:16", "--hidden", "16", "--rounds", "12"}

// inClosedForm reports whether args train class means, which have no layers.
func inClosedForm(args []string) bool { return slices.Contains(args, "class-means") }

func mustTrain(t *testing.T, out string, args ...string) string {
	t.Helper()
	settings := quick
	if inClosedForm(args) {
		settings = []string{"-q"}
	}
	return must(t, withoutEncoder(slices.Concat([]string{"train", "-o", out}, settings, args))...)
}

// withoutEncoder drops the encoder from arguments with method mini-batch, which has none.
func withoutEncoder(args []string) []string {
	for k := slices.Index(args, "--encoder"); k >= 0 && slices.Contains(args, "mini-batch"); k = slices.Index(args,
		"--encoder") {
		args = slices.Delete(slices.Clone(args), k, k+2)
	}
	return args
}

// TestSameBits: all transports and numbers of processes give the same bits.
func TestSameBits(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	parts := filepath.Join(dir, "parts")
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	ways := map[string][]string{
		"memory": {"--shards", parts, "--transport", "memory"},
		"quic":   {"--shards", parts},
		"tcp":    {"--shards", parts, "--carrier", "tcp"},
		"noise":  {"--shards", parts, "--carrier", "noise"},
		"ws":     {"--shards", parts, "--carrier", "ws"},
		"auto":   {"--shards", parts, "--carrier", "auto"},
		"data":   {"--data", data, "--policy", "by-column", "--transport", "memory"},
	}
	for name, args := range ways {
		mustTrain(t, filepath.Join(dir, name), args...)
	}
	processes(t, parts, 3, filepath.Join(dir, "join"))

	want := contents(t, filepath.Join(dir, "memory", "model.safetensors"))
	first := figures(t, filepath.Join(dir, "memory", "result.json"))
	schema := resultSchema(t)
	equal(t, "losses", len(first.Loss), 24)
	equal(t, "wire bytes in memory", first.Bytes.Wire, 0)
	for _, name := range []string{"quic", "tcp", "noise", "ws", "auto", "data", "join-0", "join-1", "join-2"} {
		if !bytes.Equal(contents(t, filepath.Join(dir, name, "model.safetensors")), want) {
			t.Errorf("%s: another model than in memory", name)
		}
		r := figures(t, filepath.Join(dir, name, "result.json"))
		for i := range r.Loss {
			if *r.Loss[i] != *first.Loss[i] {
				t.Fatalf("%s: loss %v in round %d, in memory %v", name, *r.Loss[i], i, *first.Loss[i])
			}
		}
		equal(t, name+": test accuracy", *r.Test, *first.Test)
		bySchema(t, schema, filepath.Join(dir, name, "result.json"))
		equal(t, name+": halo bytes of all peers", r.AllBytes.Halo, first.AllBytes.Halo)
		equal(t, name+": reduce bytes of all peers", r.AllBytes.Reduce, first.AllBytes.Reduce)
		equal(t, name+": temperature", r.Figures.Temperature, first.Figures.Temperature)
		if !strings.HasPrefix(name, "join") {
			equal(t, name+": halo bytes", r.Bytes.Halo, first.Bytes.Halo)
			equal(t, name+": reduce bytes", r.Bytes.Reduce, first.Bytes.Reduce)
		}
		if name != "data" && r.Bytes.Wire <= r.Bytes.Halo+r.Bytes.Reduce {
			t.Errorf("%s: %d bytes on the wire for %d of payload", name, r.Bytes.Wire, r.Bytes.Halo+r.Bytes.Reduce)
		}
	}
	// The sites' predictions are together those of all peers in one process.
	var joined []byte
	for r := range 3 {
		_, own, _ := bytes.Cut(contents(t, filepath.Join(dir, fmt.Sprintf("join-%d", r), "predictions.csv")),
			[]byte("\n"))
		joined = append(joined, own...)
	}
	if _, all, _ := bytes.Cut(contents(t, filepath.Join(dir, "memory", "predictions.csv")),
		[]byte("\n")); len(all) < 1000 || !bytes.Equal(joined, all) {
		t.Errorf("predictions of the sites, of %d bytes, must be those of one process, of %d", len(joined), len(all))
	}
}

// processes runs a peer process for each part, which write to out-0 and so on.
func processes(t *testing.T, parts string, n int, out string, more ...string) {
	t.Helper()
	dir := t.TempDir()
	members := make([]string, n)
	for r := range n {
		key := filepath.Join(dir, fmt.Sprintf("key-%d", r))
		members[r] = fmt.Sprintf("site-%d=%s@127.0.0.1", r, strings.TrimSpace(must(t, "init", "--identity", key)))
	}
	plan := filepath.Join(dir, "plan.yaml")
	settings := quickPlan
	if inClosedForm(more) {
		settings = nil
	}
	must(t, withoutEncoder(slices.Concat([]string{"plan", "-o", plan, "--port", fmt.Sprint(testenv.FreePorts(t, n))},
		settings, more, members))...)
	done := make(chan error, n)
	for r := range n {
		c := process(t, "join", "--plan", plan, "--shard", filepath.Join(parts, fmt.Sprintf("part-%d", r)),
			"--identity", filepath.Join(dir, fmt.Sprintf("key-%d", r)), "--wait", "30s", "-q", "-o",
			fmt.Sprintf("%s-%d", out, r))
		go func() {
			text, err := c.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("process %d: %w\n%s", r, err, text)
			}
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestInterrupt: an interrupted and resumed run gives the bits of an undisturbed one.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	for mode, more := range map[string][]string{
		"retexo": {"--peers", "3", "--rounds", "100", "--checkpoint-every", "25"},
		"standalone": {"--method", "full-batch", "--peers", "1", "--encoder", "raw", "--rounds", "400",
			"--checkpoint-every", "100"},
		"fullbatch": {"--method", "full-batch", "--encoder", "raw", "--order", "fixed", "--peers", "3", "--rounds",
			"120", "--checkpoint-every", "25"},
	} {
		whole, broken := filepath.Join(dir, mode+"-whole"), filepath.Join(dir, mode)
		mustTrain(t, whole, slices.Concat([]string{"--data", data, "--transport", "memory"}, more)...)

		ctx, cancel := context.WithCancel(t.Context())
		looking := make(chan struct{})
		go func() {
			defer close(looking)
			for ctx.Err() == nil {
				if left, _ := (heddle.Local{State: filepath.Join(broken, "checkpoints"),
					Shards: make([]*shard.Shard, 3)}).Interrupted(); left {
					cancel()
				}
				time.Sleep(time.Millisecond)
			}
		}()
		args := slices.Concat([]string{"train", "-o", broken, "--data", data, "--transport", "memory"}, quick, more)
		exit, _, stderr := call(ctx, args...)
		cancel()
		<-looking
		equal(t, mode+": exit when interrupted", exit, 1)
		if !strings.Contains(stderr, "--resume") {
			t.Fatalf("%s: %q does not say how to resume", mode, stderr)
		}
		if _, err := os.Stat(filepath.Join(broken, "model.safetensors")); err == nil {
			t.Errorf("%s: an interrupted run left a model", mode)
		}
		exit, _, stderr = call(t.Context(), args...)
		equal(t, mode+": exit over an interrupted run", exit, 2)
		if !strings.Contains(stderr, "interrupted run") {
			t.Errorf("%s: %q", mode, stderr)
		}
		must(t, append(args, "--resume")...)
		if !bytes.Equal(contents(t, filepath.Join(broken, "model.safetensors")),
			contents(t, filepath.Join(whole, "model.safetensors"))) {
			t.Errorf("%s: the resumed run made another model", mode)
		}
		if !bytes.Equal(contents(t, filepath.Join(broken, "predictions.csv")),
			contents(t, filepath.Join(whole, "predictions.csv"))) {
			t.Errorf("%s: the resumed run must have the same predictions", mode)
		}
		if left, _ := (heddle.Local{State: filepath.Join(broken, "checkpoints"),
			Shards: make([]*shard.Shard, 3)}).Interrupted(); left {
			t.Errorf("%s: checkpoints are left after the end", mode)
		}
	}
}

var printed = regexp.MustCompile(`(?m)^test [a-z0-9-]+: ([0-9.]+) %`)

// predicts fails unless heddle predict finds what the training reported.
func predicts(t *testing.T, out string, data ...string) {
	t.Helper()
	csv := filepath.Join(out, "predictions.csv")
	text := must(t, append([]string{"predict", "--model", filepath.Join(out, "model.safetensors"), "-o", csv},
		data...)...)
	m := printed.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no metric in %q", text)
	}
	equal(t, "metric of predict", m[1], fmt.Sprintf("%.2f", 100**figures(t, filepath.Join(out, "result.json")).Test))
	if n := bytes.Count(contents(t, csv), []byte("\n")); n < 100 {
		t.Errorf("%d lines of predictions", n)
	}
}

func TestPredict(t *testing.T) {
	t.Parallel()
	data, dir := sites(t), t.TempDir()
	for name, args := range map[string][]string{
		"gcn":        {"--peers", "3"},
		"frugal":     {"--peers", "3", "--method", "class-means", "--rows", "float32"},
		"gat":        {"--peers", "2", "--model", "gat"},
		"mlp":        {"--peers", "2", "--model", "sage", "--encoder", "mlp", "--layer-output", "logits"},
		"standalone": {"--method", "full-batch", "--peers", "1", "--encoder", "raw"},
	} {
		out := filepath.Join(dir, name)
		mustTrain(t, out, append(args, "--data", data, "--transport", "memory")...)
		predicts(t, out, "--data", data)
		for _, path := range []string{out + "/model.safetensors", data} {
			must(t, "inspect", path)
		}
	}
}

// TestPredictCora compares on real data, where sums over neighbours have another order than in the
// parts. Rows are exact, as they are in prediction: of int8 rows a node or two would change sides.
func TestPredictCora(t *testing.T) {
	t.Parallel()
	data, out := testenv.DataDir(t, "cora"), t.TempDir()
	must(t, "train", "--data", data, "--rows", "float32", "--transport", "memory", "-q", "-o", out)
	predicts(t, out, "--data", data)
	if a := *figures(t, filepath.Join(out, "result.json")).Test; a < 0.8 {
		t.Errorf("test accuracy must be at least 0.8 (got %.3f)", a)
	}
}

// TestWire: the network carries at most 3 % more than is sent, with messages of a megabyte.
func TestWire(t *testing.T) {
	t.Parallel()
	data := testenv.DataDir(t, "cora")
	for _, carrier := range []string{"quic", "tcp"} {
		out := t.TempDir()
		must(t, "train", "--data", data, "--method", "layer-wise", "--encoder", "raw", "--decay", "0.005", "--row-norm",
			"l1", "--exchange", "halo", "--keep-last", "--peers", "2", "--rounds", "6", "--layers", "1", "--hops", "2",
			"--encoder", "mlp", "--carrier", carrier, "-q", "-o", out)
		b := figures(t, filepath.Join(out, "result.json")).Bytes
		sent := b.Halo + b.Reduce + b.Control
		if over := float64(b.Wire)/float64(sent) - 1; sent < 20e6 || over < 0 || over > 0.03 {
			t.Errorf("%s: %d bytes on the wire for %d sent, %.1f %% above", carrier, b.Wire, sent, 100*over)
		}
	}
}

// TestTables goes through the steps of a user with tables.
func TestTables(t *testing.T) {
	t.Parallel()
	const tables = "../../examples/hospitals/"
	dir := t.TempDir()
	data, parts, out := filepath.Join(dir, "data"), filepath.Join(dir, "parts"), filepath.Join(dir, "out")
	must(t, "import", "--nodes", tables+"patients.csv", "--edges", tables+"contacts.csv", "--label-column",
		"readmitted", "--site-column", "hospital", "-o", data)
	must(t, "partition", "--data", data, "--policy", "by-column", "-o", parts)
	for _, path := range []string{data, parts, parts + "/part-1"} {
		must(t, "inspect", path)
	}
	mustTrain(t, out, "--shards", parts, "--encoder", "raw", "--transport", "memory")
	predicts(t, out, "--data", data)
	csv := filepath.Join(dir, "p.csv")
	text := must(t, "predict", "--model", out+"/model.safetensors", "--nodes", tables+"patients.csv", "--edges",
		tables+"contacts.csv", "-o", csv)
	if !strings.Contains(text, "labelled accuracy") {
		t.Errorf("predict said %q", text)
	}
	first := regexp.MustCompile(`(?m)^p000,(yes|no),0\.\d{4},(train|val)?,(yes|no),0\.\d{4},0\.\d{4}$`)
	if got := string(contents(t, csv)); !first.MatchString(got) {
		t.Errorf("no line of p000 in %.80q", got)
	}
	must(t, "predict", "--model", out+"/model.safetensors", "--shard", parts+"/part-0", "-o", csv)
}

func TestDemo(t *testing.T) {
	if testing.Short() || os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("SKIPPED: trains 16 times; HEDDLE_LONG=1 runs it")
	}
	t.Parallel()
	out := t.TempDir()
	must(t, "demo", "-q", "--seeds", "2", "-o", out)
	var got struct {
		Ways []struct {
			Way  string
			Test struct{ Mean float64 }
		}
	}
	if err := json.Unmarshal(contents(t, filepath.Join(out, "compare.json")), &got); err != nil {
		t.Fatal(err)
	}
	test := map[string]float64{}
	for _, one := range got.Ways {
		test[one.Way] = 100 * one.Test.Mean
	}
	together, alone, features, pooled := test["together"], test["alone"], test["features"], test["pooled"]
	if together < alone+5 || together < features+5 || together < pooled-5 {
		t.Errorf("together %.1f, alone %.1f, features only %.1f, pooled %.1f: the demo shows nothing", together, alone,
			features, pooled)
	}
	for _, name := range []string{"compare.html", "compare.json", "compare.csv", "compare.npz", "settings.yaml"} {
		if len(contents(t, filepath.Join(out, name))) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

// TestCompareFlags: settings, seeds and data of heddle compare arrive, and what it cannot compare is refused as bad
// input.
func TestCompareFlags(t *testing.T) {
	t.Parallel()
	data, out := sites(t), t.TempDir()
	args := []string{"compare", "--data", data, "--seeds", "2", "--seed", "5", "--transport", "memory", "-q", "-o", out}
	if text := must(t, args...); !strings.Contains(text, "Joining helped: ") ||
		!strings.Contains(text, "spread of 2 runs") {
		t.Errorf("printed\n%s", text)
	}
	text := string(contents(t, filepath.Join(out, "compare.json")))
	for _, want := range []string{`"dataset": "sites"`, `"seed": 6`, "method: class-means",
		"heddle compare --config "} {
		if !strings.Contains(text, want) {
			t.Errorf("compare.json has no %q", want)
		}
	}
	again := filepath.Join(out, "again")
	must(t, "compare", "--config", filepath.Join(out, "settings.yaml"), "-q", "-o", again)
	if !bytes.Equal(bytes.ReplaceAll(contents(t, filepath.Join(again, "settings.yaml")), []byte(again), []byte(out)),
		contents(t, filepath.Join(out, "settings.yaml"))) {
		t.Error("settings.yaml must repeat the comparison, seeds and all")
	}
	for want, args := range map[string][]string{
		"--seeds must be 1 to 1000 (got 0)":            {"--data", data, "--seeds", "0"},
		"peers must be at least 2 (got 1): comparing":  {"--data", data, "--method", "full-batch", "--peers", "1"},
		"split must be 0 to 0 (got 3)":                 {"--data", data, "--split", "3"},
		"either --data D (a data set) or --shards DIR": {},
	} {
		exit, _, stderr := call(t.Context(), append([]string{"compare", "-o", t.TempDir()}, args...)...)
		if exit != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s", args, exit, stderr)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	if text := must(t, "doctor"); !strings.Contains(text, "kernels") {
		t.Errorf("doctor said %q", text)
	}
}

// TestResumeOfAnotherRun: even before the first checkpoint, --resume continues no run of other data or settings, and no
// other run takes the directory of a running one. A link out of the directory is refused.
func TestResumeOfAnotherRun(t *testing.T) {
	t.Parallel()
	data, out := sites(t), t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.CopyFS(other, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"train", "-o", out, "--transport", "memory", "--peers", "2", "--rounds", "2"}, quick)
	state := filepath.Join(out, "checkpoints")
	begun := heddle.Defaults("", "")
	settings, err := begun.MarshalYAML()
	if err != nil {
		t.Fatal(err)
	}
	record := cli.Record{Path: cli.RecordOf(state), Settings: append(settings, "data: "+data+"\nout: "+out+"\n"...)}
	if err := record.Keep(); err != nil { // all that remains of a run that is killed at once
		t.Fatal(err)
	}
	refused := func(want string, more ...string) {
		t.Helper()
		exit, _, stderr := call(t.Context(), slices.Concat(args, more)...)
		if exit != 2 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, must be 2 with %q:\n%s", exit, want, stderr)
		}
	}
	refused("data is "+other+", and was "+data, "--resume", "--data", other)
	release, err := checkpoint.Lock(state)
	if err != nil {
		t.Fatal(err)
	}
	refused("must be the directory of only one peer (got one in use", "--data", other)
	release()
	away := filepath.Join(t.TempDir(), "model")
	link := filepath.Join(out, "model.safetensors")
	if err := os.Symlink(away, link); err != nil {
		t.Skip(err) // Windows, without the right to
	}
	refused(link+" must not be a link out of its directory (got one to "+away+")", "--data", other)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	must(t, append(args, "--data", other)...)
}
