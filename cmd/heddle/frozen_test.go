package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

var rewriteFrozen = flag.Bool("rewrite", false, "write testdata/frozen.txt anew")

// frozenPlans train every model, method, solver and encoder at least once, and every kind of label.
var frozenPlans = []struct {
	name  string
	data  string // sites, typed, bare (no features), several (labels a node), prices (numbers)
	peers []int
	args  []string
}{
	{"retexo gcn adam pca", "sites", []int{1, 2, 3, 4}, []string{"--lr", "0.003"}},
	{"retexo sage pca and classes", "sites", []int{1, 2, 3, 4},
		[]string{"--model", "sage", "--encoder", "pca:16+classes", "--lr", "0.003"}},
	{"retexo sage adamw mlp scores", "sites", []int{1, 2, 4},
		[]string{"--model", "sage", "--encoder", "mlp", "--layer-output", "logits", "--solver", "adamw", "--residual",
			"--schedule", "cosine", "--keep-last", "--lr", "0.003"}},
	{"retexo gat sgd raw", "sites", []int{1, 2, 4}, []string{"--model", "gat", "--heads", "4", "--attention-dropout",
		"0.2", "--encoder", "raw", "--solver", "sgd", "--momentum", "0.9", "--lr", "0.05", "--keep-last"}},
	{"retexo gatv2 raw", "sites", []int{1, 2, 4},
		[]string{"--model", "gatv2", "--heads", "4", "--encoder", "raw", "--keep-last"}},
	{"retexo gin local steps", "sites", []int{1, 2, 3, 4},
		[]string{"--model", "gin", "--hops", "2", "--local-steps", "3", "--class-weights", "balanced", "--rows", "int8",
			"--compress", "zstd", "--keep-last", "--lr", "0.003", "--dropout", "0.3"}},
	{"retexo gcn few bytes", "sites", []int{1, 2, 4},
		[]string{"--rows", "int4", "--sums", "int16", "--updates", "int8"}},
	{"retexo sage-pool inductive", "sites", []int{1, 2, 3, 4}, []string{"--model", "sage-pool", "--inductive",
		"--rows", "bf16", "--patience", "5", "--keep-last", "--lr", "0.003"}},
	{"retexo gcn secure sums", "sites", []int{3, 4}, []string{"--lr", "0.003", "--secure-sums", "on"}},
	{"retexo sage several", "several", []int{1, 2, 4}, []string{"--model", "sage", "--encoder", "raw"}},
	{"retexo sage prices", "prices", []int{1, 2, 4}, []string{"--model", "sage", "--encoder", "raw"}},
	{"retexo gcn as the paper", "sites", []int{1, 2, 4}, []string{"--method", "layer-wise", "--encoder", "raw",
		"--decay", "0.005", "--row-norm", "l1", "--exchange", "halo", "--keep-last"}},
	{"retexo sage links", "sites", []int{1, 2, 4}, []string{"--model", "sage", "--task", "links"}},
	{"frugal", "sites", []int{1, 2, 3, 4}, []string{"--method", "class-means"}},
	{"frugal secure sums", "sites", []int{3, 4}, []string{"--method", "class-means", "--secure-sums", "on"}},
	{"frugal labels", "sites", []int{1, 2, 4}, []string{"--method", "class-means", "--class-target", "labels",
		"--leave-one-out", "true", "--random-features", "16"}},
	{"frugal rounds", "sites", []int{1, 2, 4},
		[]string{"--method", "class-means", "--class-rounds", "2", "--leave-one-out", "true", "--metric", "macro-f1"}},
	{"frugal inductive", "sites", []int{2, 4}, []string{"--method", "class-means", "--inductive"}},
	{"frugal bare", "bare", []int{1, 2, 4}, []string{"--method", "class-means"}},
	{"frugal several", "several", []int{1, 2, 4}, []string{"--method", "class-means"}},
	{"frugal prices", "prices", []int{1, 2, 4}, []string{"--method", "class-means"}},
	{"frugal typed", "typed", []int{1, 2, 4}, []string{"--method", "class-means"}},
	{"standalone gat", "sites", []int{1}, []string{"--method", "full-batch", "--peers", "1", "--model", "gat",
		"--encoder", "raw", "--norm", "layer"}},
	{"standalone sign", "sites", []int{1}, []string{"--method", "full-batch", "--peers", "1", "--model", "sign",
		"--encoder", "raw", "--correct-smooth", "10"}},
	{"standalone mlp sgd", "sites", []int{1}, []string{"--method", "full-batch", "--peers", "1", "--model", "mlp",
		"--encoder", "raw", "--solver", "sgd", "--metric", "macro-f1"}},
	{"fullbatch gcn", "sites", []int{1, 2, 3, 4},
		[]string{"--method", "full-batch", "--encoder", "raw", "--fetch", "sar", "--label-inputs", "0.5"}},
	{"fullbatch sage batch norm", "sites", []int{1, 2, 3, 4}, []string{"--method", "full-batch", "--model", "sage",
		"--encoder", "raw", "--norm", "batch", "--exchange", "cover"}},
	{"fullbatch sage-sum", "sites", []int{1, 2},
		[]string{"--method", "full-batch", "--model", "sage-sum", "--encoder", "raw"}},
	{"fullbatch gat", "sites", []int{1, 2, 4}, []string{"--method", "full-batch", "--model", "gat", "--encoder", "raw",
		"--fetch", "sar"}},
	{"fullbatch gatv2", "sites", []int{1, 2, 4}, []string{"--method", "full-batch", "--model", "gatv2", "--heads", "4",
		"--encoder", "raw"}},
	{"fullbatch gine", "sites", []int{1, 2, 4},
		[]string{"--method", "full-batch", "--model", "gine", "--encoder", "raw"}},
	{"fullbatch sage-pool", "sites", []int{1, 2, 4},
		[]string{"--method", "full-batch", "--model", "sage-pool", "--encoder", "raw", "--fetch", "oneshot"}},
	{"fullbatch appnp", "sites", []int{1, 2, 3, 4},
		[]string{"--method", "full-batch", "--model", "appnp", "--hops", "4", "--encoder", "raw"}},
	{"fullbatch rgcn", "typed", []int{1, 2, 3, 4}, []string{"--method", "full-batch", "--model", "rgcn", "--bases", "1",
		"--encoder", "raw", "--hidden", "16", "--dropout", "0", "--decay", "0"}},
	{"fullbatch rsage", "typed", []int{1, 2, 4},
		[]string{"--method", "full-batch", "--model", "rsage", "--encoder", "raw"}},
	{"fullbatch rgat", "typed", []int{1, 2, 4}, []string{"--method", "full-batch", "--model", "rgat", "--heads", "4",
		"--bases", "2", "--encoder", "raw"}},
	{"fullbatch embedding", "bare", []int{1, 2, 4},
		[]string{"--method", "full-batch", "--model", "sage", "--encoder", "embedding:8"}},
	{"fullbatch several", "several", []int{1, 2, 4},
		[]string{"--method", "full-batch", "--model", "sage", "--encoder", "raw"}},
	{"fullbatch prices", "prices", []int{1, 2, 4},
		[]string{"--method", "full-batch", "--model", "sage", "--encoder", "raw"}},
	{"fullbatch inductive", "sites", []int{1, 2, 4},
		[]string{"--method", "full-batch", "--model", "sage", "--encoder", "raw", "--inductive"}},
	{"fullbatch links", "sites", []int{1, 2, 4}, []string{"--method", "full-batch", "--model", "sage", "--encoder",
		"raw", "--task", "links", "--decoder", "distmult"}},
	{"minibatch neighbour", "sites", []int{1, 2, 4},
		[]string{"--method", "mini-batch", "--model", "sage", "--batch-size", "16", "--fanouts", "4,3"}},
	{"minibatch labor", "sites", []int{1, 2, 4}, []string{"--method", "mini-batch", "--model", "gcn", "--batch-size",
		"16", "--fanouts", "4,3", "--sampler", "labor"}},
	{"minibatch links", "sites", []int{1, 2, 4}, []string{"--method", "mini-batch", "--model", "sage", "--batch-size",
		"1024", "--fanouts", "4,3", "--rounds", "3", "--task", "links", "--decoder", "mlp"}},
	{"minibatch rsage", "typed", []int{1, 2, 4}, []string{"--method", "mini-batch", "--model", "rsage", "--batch-size",
		"16", "--fanouts", "4,3"}},
}

// TestFrozen: a plan gives the tensors, predictions, bytes of each kind and validation figure that it gave when
// testdata/frozen.txt was written, to the bit. The plain kernels make the values, so that they are those of any
// processor. The short form takes the largest number of peers of each plan.
func TestFrozen(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the values are those of amd64")
	}
	if testing.Short() {
		t.Skip("SKIPPED: some seconds long")
	}
	t.Parallel()
	data := map[string]string{"sites": sites(t), "typed": typedSites(t), "bare": bareSites(t),
		"several": severalSites(t), "prices": filepath.Join(priceTables(t, 400), "data")}
	const file = "testdata/frozen.txt"
	want := map[string]string{}
	for line := range strings.Lines(string(contents(t, file))) {
		name, values, _ := strings.Cut(strings.TrimSpace(line), ": ")
		want[name] = values
	}
	var all []string
	for _, p := range frozenPlans {
		for _, peers := range p.peers {
			all = append(all, fmt.Sprintf("%s, %d", p.name, peers))
		}
	}
	got, every := make([]string, len(all)), *rewriteFrozen || testenv.LongForm(t)
	t.Run("plans", func(t *testing.T) {
		at := 0
		for _, p := range frozenPlans {
			for i, peers := range p.peers {
				to, name := &got[at], all[at]
				at++
				if !every && i < len(p.peers)-1 {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					*to = frozenRun(t, p.name, data[p.data], peers, p.args)
					if !*rewriteFrozen && *to != want[name] {
						t.Errorf("got  %s\nwant %s", *to, want[name])
					}
				})
			}
		}
	})
	if len(want) != len(all) && !*rewriteFrozen {
		t.Errorf("%s must have %d lines, one a plan and number of peers (got %d)", file, len(all), len(want))
	}
	if *rewriteFrozen && !t.Failed() {
		var text bytes.Buffer
		for i, name := range all {
			fmt.Fprintf(&text, "%s: %s\n", name, got[i])
		}
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// frozenRun trains and predicts by one plan and returns what it gave.
func frozenRun(t *testing.T, name, data string, peers int, settings []string) string {
	out := t.TempDir()
	plain := func(args ...string) {
		c := process(t, withoutEncoder(args)...)
		c.Env = append(c.Env, "HEDDLE_KERNELS=generic")
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
	}
	args := []string{"train", "-o", out, "--data", data, "--transport", "memory", "--policy", "random", "--peers",
		fmt.Sprint(peers)}
	switch how, _, _ := strings.Cut(name, " "); {
	case how == "frugal" || how == "auto":
		args = append(args, "-q")
	case strings.Contains(name, "paper"):
		args = append(args, "--rounds", "12", "--hidden", "16", "-q")
	default:
		args = append(args, quick...)
	}
	switch how, _, _ := strings.Cut(name, " "); {
	case how == "fullbatch":
		args = append(args, "--order", "fixed")
	case how != "minibatch" && how != "standalone" && !slices.Contains(settings, "--secure-sums"):
		args = append(args, "--secure-sums", "off")
	}
	if strings.HasPrefix(name, "retexo") {
		args = append(args, "--decay", "0.0005") // the default when the values were frozen
	}
	plain(append(args, settings...)...)
	model, r := filepath.Join(out, "model.safetensors"), figures(t, filepath.Join(out, "result.json"))
	text, val := "", "none"
	if r.Val != nil {
		val = fmt.Sprint(*r.Val)
	}
	switch {
	case slices.Contains(settings, "links"):
	case strings.Contains(name, "embedding"): // the model file lacks it
		text = fmt.Sprintf("predictions %x ", sha256.Sum256(contents(t, filepath.Join(out, "predictions.csv"))))
	default:
		predicted := filepath.Join(out, "p.csv")
		plain("predict", "--model", model, "--data", data, "-o", predicted)
		text = fmt.Sprintf("predictions %x ", sha256.Sum256(contents(t, predicted)))
	}
	if !strings.HasPrefix(name, "minibatch") { // a prefetched row may be requested twice, or be in the cache by then
		text += fmt.Sprintf("halo %d control %d ", r.Bytes.Halo, r.Bytes.Control)
	}
	return fmt.Sprintf("tensors %x %sreduce %d validation %s", hashTensors(t, model), text, r.Bytes.Reduce, val)
}

// frozenPhones is a run of phones by simulated time.
const frozenPhones = `"exchanges":12,"rounds":2,"simulated_seconds":1.878440152,"accuracy":0.8715139442231076,"late_shares":0,` +
	`"bytes":{"shares":665920,"lost":0,"sums":573760,"frames":24960,"sites":94222}`

// TestFrozenPhones: phones by simulated time give the accuracy, bytes and seconds that they gave when frozenPhones was
// written.
func TestFrozenPhones(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the values are those of amd64")
	}
	t.Parallel()
	c := process(t, "simulate", "--phones", "40", "--sites", "3", "--rounds", "2", "--all-rounds", "--least-leaves",
		"5", "--trace", "always", "--json")
	c.Env = append(c.Env, "HEDDLE_KERNELS=generic")
	text, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Compact(&got, text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.String(), frozenPhones) {
		t.Errorf("got  %s\nwant %s", got.String(), frozenPhones)
	}
}

// hashTensors returns the hash of a safetensors file's tensors: names, types, shapes and values,
// sorted by name.
func hashTensors(t *testing.T, path string) []byte {
	t.Helper()
	file := contents(t, path)
	size := binary.LittleEndian.Uint64(file)
	var head map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+size], &head); err != nil {
		t.Fatal(err)
	}
	delete(head, "__metadata__")
	type tensor struct {
		name    string
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	var all []tensor
	for name, text := range head {
		one := tensor{name: name}
		if err := json.Unmarshal(text, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b tensor) int { return cmp.Compare(a.name, b.name) })
	h := sha256.New()
	for _, one := range all {
		fmt.Fprintf(h, "%s %s %v\n", one.name, one.DType, one.Shape)
		h.Write(file[8+int(size):][one.Offsets[0]:one.Offsets[1]])
	}
	return h.Sum(nil)
}
