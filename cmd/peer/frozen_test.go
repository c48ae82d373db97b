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
)

var rewriteFrozen = flag.Bool("rewrite", false, "write testdata/frozen.txt anew")

// frozenPlans train every model, mode, solver and encoder at least once.
var frozenPlans = []struct {
	name string
	data string // sites or typed
	args []string
}{
	{"retexo gcn adam pca", "sites", []string{"--peers", "3", "--lr", "0.003"}},
	{"retexo sage pca and classes", "sites", []string{"--peers", "3", "--model", "sage", "--encoder", "pca:16+classes", "--lr", "0.003"}},
	{"retexo sage adamw mlp scores", "sites", []string{"--peers", "4", "--model", "sage", "--encoder", "mlp", "--carry", "scores", "--solver", "adamw", "--residual", "--schedule", "cosine", "--warmup", "3", "--keep-last", "--lr", "0.003"}},
	{"retexo gat sgd raw", "sites", []string{"--peers", "2", "--model", "gat", "--heads", "4", "--attention-dropout", "0.2", "--encoder", "raw", "--solver", "sgd", "--momentum", "0.9", "--lr", "0.05", "--keep-last"}},
	{"retexo gin local steps", "sites", []string{"--peers", "3", "--model", "gin", "--hops", "2", "--local-steps", "3", "--balanced", "--rows", "int8", "--compress", "zstd", "--keep-last", "--lr", "0.003", "--dropout", "0.3"}},
	{"retexo sage-pool inductive", "sites", []string{"--peers", "3", "--model", "sage-pool", "--inductive", "--neighbours", "4", "--rows", "bf16", "--patience", "5", "--keep-last", "--lr", "0.003"}},
	{"retexo ridge frugal", "sites", []string{"--peers", "3", "--preset", "frugal-pca", "--exchange", "cover"}},
	{"retexo gcn secure sums", "sites", []string{"--peers", "3", "--lr", "0.003", "--secure-sums", "on"}},
	{"retexo frugal secure sums", "sites", []string{"--peers", "3", "--preset", "frugal", "--secure-sums", "on"}},
	{"standalone gat", "sites", []string{"--mode", "standalone", "--model", "gat", "--encoder", "raw", "--norm", "layer"}},
	{"standalone sign", "sites", []string{"--mode", "standalone", "--model", "sign", "--encoder", "raw", "--correct-smooth", "10"}},
	{"standalone mlp sgd", "sites", []string{"--mode", "standalone", "--model", "mlp", "--encoder", "raw", "--solver", "sgd", "--metric", "macro-f1"}},
	{"fullbatch gcn", "sites", []string{"--mode", "fullbatch", "--peers", "3", "--encoder", "raw", "--order", "fixed", "--fetch", "sar", "--label-augmentation", "0.5"}},
	{"fullbatch sage batch norm", "sites", []string{"--mode", "fullbatch", "--peers", "3", "--model", "sage", "--encoder", "raw", "--order", "fixed", "--norm", "batch", "--exchange", "cover"}},
	{"fullbatch gat", "sites", []string{"--mode", "fullbatch", "--peers", "2", "--model", "gat", "--encoder", "raw", "--order", "fixed", "--fetch", "sar"}},
	{"fullbatch gin none", "sites", []string{"--mode", "fullbatch", "--peers", "2", "--model", "gin", "--encoder", "raw", "--order", "fixed", "--boundary", "none"}},
	{"fullbatch sage-pool", "sites", []string{"--mode", "fullbatch", "--peers", "2", "--model", "sage-pool", "--encoder", "raw", "--order", "fixed", "--fetch", "oneshot"}},
	{"fullbatch gcn sampled", "sites", []string{"--mode", "fullbatch", "--peers", "3", "--encoder", "raw", "--order", "fixed", "--boundary", "sample:0.5", "--fetch", "sar"}},
	{"fullbatch appnp", "sites", []string{"--mode", "fullbatch", "--peers", "3", "--model", "appnp", "--hops", "4", "--encoder", "raw", "--order", "fixed"}},
	{"fullbatch rgcn", "typed", []string{"--mode", "fullbatch", "--peers", "3", "--model", "rgcn", "--bases", "1", "--encoder", "raw", "--order", "fixed", "--hidden", "16", "--dropout", "0", "--decay", "0"}},
}

// TestFrozen: a plan gives the tensors and the predictions that it gave when testdata/frozen.txt
// was written, to the bit. The plain kernels make the values, so that they are those of any
// processor.
func TestFrozen(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the values are those of amd64")
	}
	if testing.Short() {
		t.Skip("SKIPPED: some seconds long")
	}
	t.Parallel()
	data := map[string]string{"sites": sites(t), "typed": typedSites(t)}
	dir := t.TempDir()
	var got bytes.Buffer
	for _, p := range frozenPlans {
		out := filepath.Join(dir, p.name)
		plain := func(args ...string) {
			c := process(t, args...)
			c.Env = append(c.Env, "HEDDLE_KERNELS=generic")
			if text, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", p.name, err, text)
			}
		}
		args := slices.Concat([]string{"train", "-o", out, "--data", data[p.data], "--transport", "memory", "--policy", "random"}, quick, p.args)
		if strings.HasPrefix(p.name, "retexo") && !slices.Contains(p.args, "--secure-sums") {
			args = append(args, "--secure-sums", "off")
		}
		if strings.HasPrefix(p.name, "retexo") && !strings.Contains(p.name, "frugal") {
			args = append(args, "--decay", "0.0005") // the default when the values were frozen
		}
		if strings.Contains(p.name, "frugal") {
			args = slices.DeleteFunc(args, func(a string) bool { return slices.Contains(ofRounds, a) })
		}
		plain(args...)
		model := filepath.Join(out, "model.safetensors")
		plain("predict", "--model", model, "--data", data[p.data], "-o", filepath.Join(out, "p.csv"))
		fmt.Fprintf(&got, "%s: tensors %x predictions %x\n", p.name, hashTensors(t, model), sha256.Sum256(contents(t, filepath.Join(out, "p.csv"))))
	}
	const file = "testdata/frozen.txt"
	if *rewriteFrozen {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Split(string(contents(t, file)), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("got  %s\nwant %s", line, want[min(i, len(want)-1)])
		}
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
