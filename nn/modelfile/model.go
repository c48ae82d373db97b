// Package modelfile stores a trained model with its card as one safetensors file.
package modelfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// Card describes where a model comes from and what it can do. It has no date and no machine in it:
// the same training writes the same file.
type Card struct {
	Dataset string          `json:"dataset,omitempty"`
	Nodes   int64           `json:"nodes,omitempty"`  // of the whole training graph
	Edges   int64           `json:"edges,omitempty"`  // directed
	Method  string          `json:"method,omitempty"` // class-means, layer-wise, full-batch or mini-batch
	Peers   int             `json:"peers,omitempty"`
	Seed    uint64          `json:"seed"`
	Setting json.RawMessage `json:"setting,omitempty"` // the trainer's config
	Sums    string          `json:"sums,omitempty"`    // who can see which sums over the peers
	Privacy json.RawMessage `json:"privacy,omitempty"` // a train.Privacy, if the run kept something private
	Metric  string          `json:"metric,omitempty"`  // what Val and Test are: an eval.Metric
	Val     float64         `json:"val"`               // in [0, 1]
	Test    float64         `json:"test"`              // in [0, 1]
	Rounds  int             `json:"rounds,omitempty"`

	Temperature float64 `json:"temperature,omitempty"` // divides logits for probabilities (0 = 1)
	// of several classes a node, [C]: one per class (nil = Temperature)
	Temperatures []float64 `json:"temperatures,omitempty"`
	// of two classes, the one that figures of one class are of (empty = the second)
	Positive string `json:"positive,omitempty"`
	// log-odds, at the temperature, from which on class 1, of two, is predicted (nil = 0)
	Threshold  *float64  `json:"threshold,omitempty"`
	Thresholds []float64 `json:"thresholds,omitempty"` // of several classes a node, [C]: one per class (nil = 0)
	Goal       string    `json:"goal,omitempty"`       // what thresholds were chosen for
	// classes are in order: the median of the probabilities is predicted
	Ordered bool `json:"ordered,omitempty"`

	Bytes map[string]int64 `json:"bytes,omitempty"` // sent, by kind: "halo", "reduce", "control"

	// What prediction needs besides the model; both stand in the file outside the card.
	Classes  []string `json:"-"` // [C] names, or nil
	Encoding []byte   `json:"-"` // graph.Graph.Encoding: how a table's columns became features; UTF-8, or nil
}

// Calibration returns the card's temperatures.
func (c Card) Calibration() eval.Temperatures {
	return eval.Temperatures{Shared: c.Temperature, Classes: c.Temperatures}
}

// First reports whether the first of two classes is the positive one.
func (c Card) First() bool {
	return c.Positive != "" && c.Positive == graph.Labels{Names: c.Classes}.Name(0)
}

// Cuts returns the card's thresholds.
func (c Card) Cuts() eval.Cuts {
	if c.Threshold != nil {
		return eval.Cuts{*c.Threshold}
	}
	return c.Thresholds
}

// formatVersion is what this package writes and the only one it reads; docs/reference/model-file.md
// has its history.
const formatVersion = "1"

// Write writes m and its card to path as one safetensors file, durably: after a failure path has
// either the complete file or its former content. The tensors are m.Params by name; the metadata has
// "heddle" (the version), "digest", "spec", "card", "classes" and "encoding". A value that is not
// finite is refused.
func Write(path string, m *nn.Model, card Card) error {
	b, err := encodeModel(m, card)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return disk.WriteFile(disk.OS{}, path, 0o600, b)
}

// Fingerprint returns the SHA-256 of the file that Write writes of m and its card. Peers compare it to check that
// they have the same one.
func Fingerprint(m *nn.Model, card Card) ([32]byte, error) {
	b, err := encodeModel(m, card)
	if err != nil {
		return [32]byte{}, err
	}
	return sha256.Sum256(b), nil
}

// Read makes the model of a file of Write again. The error names the tensor that is missing,
// superfluous or of another shape than the Spec asks for.
func Read(path string) (*nn.Model, Card, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, Card{}, err
	}
	m, card, err := decodeModel(b)
	if err != nil {
		return nil, Card{}, fmt.Errorf("%s: %w", path, err)
	}
	return m, card, nil
}

// encodeModel returns the bytes of a model file, with its digest. A layer that no reader could make again is refused.
func encodeModel(m *nn.Model, card Card) ([]byte, error) {
	if err := m.Registered(); err != nil {
		return nil, err
	}
	a := archive{meta: map[string]string{"heddle": formatVersion, "digest": noDigest}}
	for key, v := range map[string]any{"spec": m.Spec, "card": card} {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		a.meta[key] = string(b)
	}
	if card.Classes != nil {
		b, err := json.Marshal(card.Classes)
		if err != nil {
			return nil, fmt.Errorf("classes: %w", err)
		}
		a.meta["classes"] = string(b)
	}
	if card.Encoding != nil {
		a.meta["encoding"] = string(card.Encoding)
	}
	for _, p := range m.Params() {
		t := tensor{name: p.Name, shape: []int{p.Value.Rows, p.Value.Cols}, data: p.Value.Clone().Data}
		if err := finite(t); err != nil {
			return nil, err
		}
		a.tensors = append(a.tensors, t)
	}
	file, err := a.encode()
	if err == nil {
		seal(file)
	}
	return file, err
}

// The digest is the SHA-256, in hexadecimal digits, of the whole file with zeros in its place.
const (
	digestMark = `"digest":"` // before it, once in a header: texts of JSON escape their quotes
	noDigest   = "0000000000000000000000000000000000000000000000000000000000000000"
)

// digest returns the digest that a file must have, and its place (0 = none).
func digest(file []byte) (at int, sum string) {
	at = bytes.Index(file, []byte(digestMark)) + len(digestMark)
	if at < len(digestMark) || at+len(noDigest) > len(file) {
		return 0, ""
	}
	h := sha256.New()
	h.Write(file[:at])
	h.Write([]byte(noDigest))
	h.Write(file[at+len(noDigest):])
	return at, hex.EncodeToString(h.Sum(nil))
}

// seal writes the digest of a file into it.
func seal(file []byte) {
	at, sum := digest(file)
	copy(file[at:], sum)
}

// decodeModel makes the model and the card of a file's bytes, after checking their digest.
func decodeModel(file []byte) (*nn.Model, Card, error) {
	a, err := decode(file)
	if err != nil {
		return nil, Card{}, err
	}
	if v, ok := a.meta["heddle"]; !ok {
		return nil, Card{}, ErrForeign
	} else if v != formatVersion {
		return nil, Card{}, fmt.Errorf("the format version must be %q (got %q)", formatVersion, v)
	}
	if at, sum := digest(file); at == 0 || string(file[at:at+len(sum)]) != sum {
		return nil, Card{}, fmt.Errorf("the file is damaged or changed: its digest must be %q (got %q)",
			sum, a.meta["digest"])
	}
	var spec nn.Spec
	var card Card
	if err := parse(a.meta, "spec", &spec, true); err != nil {
		return nil, Card{}, err
	}
	if err := spec.Validate(); err != nil {
		return nil, Card{}, err
	}
	if err := parse(a.meta, "card", &card, false); err != nil {
		return nil, Card{}, err
	}
	if err := card.check(spec); err != nil {
		return nil, Card{}, err
	}
	if _, ok := a.meta["classes"]; ok && spec.Kind() != graph.Links { // older files may name the classes of the nodes
		if err := parse(a.meta, "classes", &card.Classes, true); err != nil {
			return nil, Card{}, err
		}
		if len(card.Classes) != spec.Classes {
			return nil, Card{}, fmt.Errorf("class names must be %d, one for each class (got %d)",
				spec.Classes, len(card.Classes))
		}
	}
	if e, ok := a.meta["encoding"]; ok {
		card.Encoding = []byte(e)
	}
	stored := int64(0)
	for _, t := range a.tensors {
		stored += int64(len(t.data))
	}
	if limit := stored + unstored; values(spec, limit) > limit {
		return nil, Card{}, fmt.Errorf("the spec asks for far more than the %d values of the tensors", stored)
	}
	m, err := nn.New(spec, rng.New(0))
	if err != nil {
		return nil, Card{}, err
	}
	return m, card, fill(m.Params(), a.tensors)
}

// check returns an error if a model of spec cannot predict as its card states.
func (c Card) check(spec nn.Spec) error {
	for _, list := range []struct {
		name string
		n    int
	}{{"thresholds", len(c.Thresholds)}, {"temperatures", len(c.Temperatures)}} {
		if list.n > 0 && (list.n != spec.Classes || spec.Kind() != graph.Several) {
			return fmt.Errorf("%s must be %d, one for each of several classes (got %d in task %s)", list.name,
				spec.Classes, list.n, spec.Task)
		}
	}
	for k, t := range c.Temperatures {
		if !(t > 0) {
			return fmt.Errorf("the temperature of class %d must be above 0 (got %v)", k, t)
		}
	}
	return nil
}

// parse reads the JSON of one key of the metadata into v.
func parse(meta map[string]string, key string, v any, strict bool) error {
	s, ok := meta[key]
	if !ok {
		return fmt.Errorf("the metadata must have the key %q", key)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	if strict { // a part of the spec that this program does not know would make it another model
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s in the metadata: %w", key, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%s in the metadata must be one JSON value", key)
	}
	return nil
}

// fill copies each tensor into the parameter of its name.
func fill(params []*tape.Param, tensors []tensor) error {
	left := map[string]tensor{}
	for _, t := range tensors {
		left[t.name] = t
	}
	for _, p := range params {
		t, ok := left[p.Name]
		if want := []int{p.Value.Rows, p.Value.Cols}; !ok {
			return fmt.Errorf("tensor %q is missing", p.Name)
		} else if !slices.Equal(t.shape, want) {
			return fmt.Errorf("the shape of tensor %q must be %v (got %v)", p.Name, want, t.shape)
		}
		if err := finite(t); err != nil {
			return err
		}
		p.Value.CopyFrom(mat.View(p.Value.Rows, p.Value.Cols, t.data))
		delete(left, p.Name)
	}
	for _, t := range tensors {
		if _, extra := left[t.name]; extra {
			return fmt.Errorf("tensor %q is none of the spec's", t.name)
		}
	}
	return nil
}

// finite returns an error that names the first value of a tensor that is not finite.
func finite(t tensor) error {
	for i, x := range t.data {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("tensor %q has %v at place %d: training diverged or the file is damaged", t.name, x, i)
		}
	}
	return nil
}

// unstored bounds the values of heads that training used and inference does not read, which a file
// therefore lacks.
const unstored = 1 << 24

// values returns about how many values the matrices of spec have, all heads included, or a number
// above limit. The need of a file is compared with its content before anything is allocated.
func values(spec nn.Spec, limit int64) int64 {
	var n int64
	matrix := func(in, out int) {
		if n <= limit { // widths are below 2²⁴: no overflow
			n += int64(in) * int64(out)
		}
	}
	switch e := spec.Encoder; e.Kind {
	case "pca":
		matrix(spec.Features, e.Components(spec.Classes))
		if e.Classes != nil {
			e.Classes.Weights(spec.Features, spec.Classes, matrix)
		}
	case "embedding":
		matrix(spec.Features, e.Hidden)
	case "mlp":
		matrix(spec.Features, e.Hidden)
		matrix(e.Hidden, spec.Classes)
	}
	for _, l := range spec.Layers {
		l.Weights(matrix)
	}
	if c := spec.Closed; c != nil {
		c.Weights(spec.Features, spec.Classes, matrix)
	}
	return n
}
