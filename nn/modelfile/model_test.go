package modelfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// specs are models of every convolution, encoder and carry.
func specs(t *testing.T) map[string]nn.Spec {
	all := map[string]nn.Spec{}
	for _, conv := range []string{"gcn", "sage", "sage-pool", "gat", "gin"} {
		s, err := nn.Preset(conv, "single", 9, 3, 16, 2)
		if err != nil {
			t.Fatal(err)
		}
		all[conv] = s
	}
	all["pca, residual"] = nn.Spec{
		Task: "multi", Features: 9, Classes: 3, LayerOutput: nn.Hidden, Encoder: nn.EncoderSpec{Kind: "pca", Out: 4},
		Layers: []nn.LayerSpec{
			{Conv: "gcn", In: 4, Out: 6, Hops: 2, Norm: true, Act: "relu", Residual: true, Head: []int{5, 3}},
			{Conv: "gcn", In: 6, Out: 6, Hops: 1, Norm: true, Act: "elu", Residual: true, Head: []int{3}},
		},
	}
	all["batch norm"] = nn.Spec{
		Task: "single", Features: 9, Classes: 3, LayerOutput: nn.Hidden, Encoder: nn.EncoderSpec{Kind: "raw", Out: 9},
		Layers: []nn.LayerSpec{{Conv: "gcn", In: 9, Out: 6, Hops: 1, BatchNorm: true, Act: "relu", Head: []int{3}}},
	}
	all["mlp, scores"] = nn.Spec{
		Task: "single", Features: 9, Classes: 3, LayerOutput: "scores",
		Encoder: nn.EncoderSpec{Kind: "mlp", Out: 3, Hidden: 7, Dropout: 0.5},
		Layers:  []nn.LayerSpec{{Conv: "sage", In: 3, Out: 8, Hops: 1, Act: "relu", Head: []int{3}}},
	}
	return all
}

func exampleCard() Card {
	return Card{
		Dataset: "cora", Nodes: 2708, Edges: 10556, Method: "layer-wise", Peers: 4, Seed: 1,
		Setting: json.RawMessage(`{"rounds":200}`), Metric: "accuracy", Val: 0.1, Test: 1.0 / 3, Rounds: 400,
		Bytes:   map[string]int64{"reduce": 12, "halo": 7},
		Classes: []string{"a", "ß", "<c>"}, Encoding: []byte(`{"columns":[]}`),
	}
}

func sameParams(t *testing.T, got, want *nn.Model) {
	t.Helper()
	a, b := got.Params(), want.Params()
	if len(a) != len(b) {
		t.Fatalf("%d parameters, want %d", len(a), len(b))
	}
	for i := range a {
		if a[i].Name != b[i].Name || !sameBits(a[i].Value.Clone().Data, b[i].Value.Clone().Data) {
			t.Errorf("parameter %q differs", b[i].Name)
		}
	}
}

func TestModelRoundTrip(t *testing.T) {
	for name, spec := range specs(t) {
		t.Run(name, func(t *testing.T) {
			m, err := nn.New(spec, rng.New(5))
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range m.Params() { // biases and components are zero at first: give every value a trace
				for j := range p.Value.Data {
					p.Value.Data[j] += float32(i) + float32(j)/8
				}
			}
			path := filepath.Join(t.TempDir(), "model.safetensors")
			card := exampleCard()
			if err := Write(path, m, card); err != nil {
				t.Fatal(err)
			}
			first, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, gotCard, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(gotCard, card) {
				t.Errorf("card %+v, want %+v", gotCard, card)
			}
			if !reflect.DeepEqual(got.Spec, m.Spec) {
				t.Errorf("spec %+v, want %+v", got.Spec, m.Spec)
			}
			sameParams(t, got, m)
			if print, err := Fingerprint(got, gotCard); err != nil || print != sha256.Sum256(first) {
				t.Errorf("the fingerprint must be that of the file (%v)", err)
			}
			if err := Write(path, got, gotCard); err != nil {
				t.Fatal(err)
			}
			if second, err := os.ReadFile(path); err != nil || !bytes.Equal(first, second) {
				t.Errorf("written again to other bytes (%v)", err)
			}
		})
	}
}

// A card without optional fields comes back as it was: nil stays nil.
func TestBareCard(t *testing.T) {
	m, err := nn.New(specs(t)["gcn"], rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m")
	if err := Write(path, m, Card{}); err != nil {
		t.Fatal(err)
	}
	if _, card, err := Read(path); err != nil || !reflect.DeepEqual(card, Card{}) {
		t.Errorf("card %+v, error %v", card, err)
	}
	if _, _, err := Read(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a missing file: %v", err)
	}
}

func TestReadModelRefuses(t *testing.T) {
	m, err := nn.New(specs(t)["gcn"], rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	good, err := encodeModel(m, exampleCard())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(a *archive)
		want   string
	}{
		"nothing":         {func(*archive) {}, ""},
		"foreign":         {func(a *archive) { delete(a.meta, "heddle") }, "another program"},
		"version":         {func(a *archive) { a.meta["heddle"] = "2" }, `(got "2")`},
		"no spec":         {func(a *archive) { delete(a.meta, "spec") }, `must have the key "spec"`},
		"spec no JSON":    {func(a *archive) { a.meta["spec"] = "{" }, "spec in the metadata"},
		"two specs":       {func(a *archive) { a.meta["spec"] += "{}" }, "must be one JSON value"},
		"unknown in spec": {func(a *archive) { a.meta["spec"] = `{"tusk":1}` }, "tusk"},
		"bad spec":        {func(a *archive) { a.meta["spec"] = `{"task":"none"}` }, "task must be"},
		"classes":         {func(a *archive) { a.meta["classes"] = `["a"]` }, "class names must be 3"},
		"temperatures": {func(a *archive) { a.meta["card"] = `{"temperatures":[1,1,1]}` },
			"temperatures must be 3, one for each of several classes (got 3 in task single)"},
		"missing": {func(a *archive) { a.tensors = a.tensors[1:] }, "is missing"},
		"extra": {func(a *archive) { a.tensors = append(a.tensors, tensor{"zzz", []int{1, 1}, []float32{1}}) },
			`"zzz" is none`},
		"shape": {func(a *archive) { slices.Reverse(a.tensors[1].shape) }, "the shape of tensor"},
		"NaN":   {func(a *archive) { a.tensors[0].data[2] = float32(math.NaN()) }, "NaN at place 2"},
		"huge spec": {func(a *archive) {
			a.meta["spec"] = strings.NewReplacer(`"out":16`, `"out":16777215`, `"in":16`,
				`"in":16777215`).Replace(a.meta["spec"])
		}, "far more"},
	} {
		a, err := decode(good)
		if err != nil {
			t.Fatal(err)
		}
		c.change(&a)
		b, err := a.encode()
		if err != nil {
			t.Fatal(err)
		}
		seal(b)
		_, _, err = decodeModel(b)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: want %q in the error, got %v", name, c.want, err)
		}
	}
}

// TestDamage: a file that lost or changed a byte anywhere is refused, in one line.
func TestDamage(t *testing.T) {
	m, err := nn.New(specs(t)["gcn"], rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	good, err := encodeModel(m, exampleCard())
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, at int, b []byte) {
		if _, _, err := decodeModel(b); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("byte %d %s: %v, must be an error of one line", at, what, err)
		}
	}
	for at := range good {
		for _, flip := range []byte{1, 0x20, 0x80} {
			b := slices.Clone(good)
			b[at] ^= flip
			refused("changed", at, b)
		}
		refused("lost", at, slices.Delete(slices.Clone(good), at, at+1))
		refused("last", at, good[:at])
	}
}

// TestCardOfSeveral: a card has one temperature above 0 for each of several classes a node; without them the shared
// one.
func TestCardOfSeveral(t *testing.T) {
	spec, err := nn.Preset("gcn", "multi", 5, 3, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	for text, c := range map[string]struct {
		card Card
		want string
	}{
		"nothing is wrong": {Card{Temperature: 2, Temperatures: []float64{0.5, 1, 4}, Thresholds: []float64{0, 1, 2}},
			""},
		"of before":   {Card{Temperature: 2}, ""},
		"too few":     {Card{Temperatures: []float64{0.5, 1}}, "temperatures must be 3"},
		"not above 0": {Card{Temperatures: []float64{0.5, 0, 1}}, "the temperature of class 1 must be above 0 (got 0)"},
		"thresholds":  {Card{Thresholds: []float64{0}}, "thresholds must be 3"},
	} {
		m, err := nn.New(spec, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m")
		if err := Write(path, m, c.card); err != nil {
			t.Fatal(err)
		}
		_, card, err := Read(path)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: the error must contain %q (got %v)", text, c.want, err)
		case c.want == "" && (err != nil || !reflect.DeepEqual(card, c.card)):
			t.Errorf("%s: card %+v, error %v", text, card, err)
		case c.want == "" && card.Calibration().Of(2) != map[bool]float64{true: 4,
			false: 2}[c.card.Temperatures != nil]:
			t.Errorf("%s: class 2 has temperature %v", text, card.Calibration().Of(2))
		}
	}
}

// TestLinksHaveNoClasses: a file of a model of links that names the classes of its nodes, as programs of before wrote
// it, is read without them.
func TestLinksHaveNoClasses(t *testing.T) {
	spec, err := nn.Preset("gcn", "multi", 5, 8, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec.Task, spec.Decoder = "links", &nn.DecoderSpec{Kind: "dot", Width: 8, Relations: []string{""}}
	m, err := nn.New(spec, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m")
	if err := Write(path, m, Card{Classes: []string{"well", "ill"}}); err != nil {
		t.Fatal(err)
	}
	if _, card, err := Read(path); err != nil || card.Classes != nil {
		t.Errorf("classes %q, error %v", card.Classes, err)
	}
}

func TestWriteModelRefuses(t *testing.T) {
	m, err := nn.New(specs(t)["gcn"], rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := Write(path, m, Card{}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for want, card := range map[string]Card{"encoding": {Encoding: []byte("\xff")}, "NaN": {Val: math.NaN()}} {
		if err := Write(path, m, card); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got %v", want, err)
		}
	}
	p := m.Params()[0]
	p.Value.Data[3] = float32(math.Inf(1))
	if err := Write(path, m, Card{}); err == nil || !strings.Contains(err.Error(), p.Name) {
		t.Errorf("infinite weight: %v", err)
	}
	if err := Write(filepath.Join(path, "below"), m, Card{}); err == nil {
		t.Error("wrote below a file")
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused write changed the file (%v)", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files are left, want the model alone", len(files))
	}
}

// No bytes make reading a model panic or allocate without bound.
func FuzzDecodeModel(f *testing.F) {
	spec, err := nn.Preset("gat", "single", 4, 2, 8, 2)
	if err != nil {
		f.Fatal(err)
	}
	m, err := nn.New(spec, rng.New(1))
	if err != nil {
		f.Fatal(err)
	}
	b, err := encodeModel(m, exampleCard())
	if err != nil {
		f.Fatal(err)
	}
	card := exampleCard()
	card.Classes = card.Classes[:2]
	good, err := encodeModel(m, card)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, card, err := decodeModel(b)
		if err != nil {
			return
		}
		out, err := encodeModel(m, card)
		if err != nil {
			t.Fatalf("decoded, but does not encode: %v", err)
		}
		again, _, err := decodeModel(out)
		if err != nil {
			t.Fatalf("encoded, but does not decode: %v", err)
		}
		sameParams(t, again, m)
	})
}
