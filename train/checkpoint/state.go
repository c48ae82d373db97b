package checkpoint

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/graph/section"
)

// State is all that a run needs to go on as if it had not stopped. What the header and the names
// mean is the trainer's business; a name is made of a-z A-Z 0-9 . _ - / and at most 250 long.
type State struct {
	Fingerprints Fingerprints
	Header       []byte // position and other small things, by habit JSON
	F32          map[string][]float32
	F64          map[string][]float64
	I64          map[string][]int64
	U8           map[string][]byte

	Seq uint64 // set by reading: the number it was saved as
}

// A state is a section file of this kind: "state" (JSON: number and fingerprints), "header", then
// the arrays, each under its type and name: "f32/layer1.nbr.weight". An f64 is kept as the bits of
// an i64.
const stateKind = "state"

type stateHead struct {
	Seq    uint64 `json:"seq"`
	Config string `json:"config"` // fingerprints in hexadecimal
	Model  string `json:"model"`
	Shard  string `json:"shard"`
}

func (st *State) write(w io.Writer, seq uint64) error {
	fp := &st.Fingerprints
	head, err := json.Marshal(stateHead{seq, hex.EncodeToString(fp.Config[:]), hex.EncodeToString(fp.Model[:]),
		hex.EncodeToString(fp.Shard[:])})
	if err != nil {
		return err
	}
	list := []section.Section{section.Array("state", head), section.Array("header", st.Header)}
	list = appendArrays(list, "f32/", st.F32)
	for _, name := range slices.Sorted(maps.Keys(st.F64)) {
		bits := make([]int64, len(st.F64[name]))
		for i, x := range st.F64[name] {
			bits[i] = int64(math.Float64bits(x))
		}
		list = append(list, section.Array("f64/"+name, bits))
	}
	list = appendArrays(list, "i64/", st.I64)
	list = appendArrays(list, "u8/", st.U8)
	return section.Encode(w, stateKind, list)
}

func appendArrays[T section.Element](list []section.Section, prefix string, arrays map[string][]T) []section.Section {
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		list = append(list, section.Array(prefix+name, arrays[name]))
	}
	return list
}

// readState reads and checks all of a state file and copies it out.
func readState(path string) (st *State, err error) {
	f, err := section.Open(path, stateKind)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	defer func() {
		if closing := f.Close(); err == nil && closing != nil {
			st, err = nil, closing
		}
	}()
	st = &State{F32: map[string][]float32{}, F64: map[string][]float64{}, I64: map[string][]int64{},
		U8: map[string][]byte{}}
	for _, array := range f.Sections() {
		kind, name, _ := strings.Cut(array.Name, "/")
		var err error
		switch {
		case array.Name == "state":
			err = st.readHead(f)
		case array.Name == "header":
			st.Header, err = copied[byte](f, array.Name)
		case kind == "f32":
			st.F32[name], err = copied[float32](f, array.Name)
		case kind == "i64":
			st.I64[name], err = copied[int64](f, array.Name)
		case kind == "u8":
			st.U8[name], err = copied[byte](f, array.Name)
		case kind == "f64":
			var bits []int64
			bits, err = section.Values[int64](f, array.Name)
			x := make([]float64, len(bits))
			for i, b := range bits {
				x[i] = math.Float64frombits(uint64(b))
			}
			st.F64[name] = x
		default:
			err = f.Errorf(array.Name, "a name must be state or header, or begin with f32/, f64/, i64/ or u8/")
		}
		if err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
	}
	if !f.Has("state") || !f.Has("header") {
		return nil, fmt.Errorf("read state: %w", f.Errorf("state", "missing, or header is"))
	}
	return st, nil
}

func copied[T section.Element](f *section.Arrays, name string) ([]T, error) {
	x, err := section.Values[T](f, name)
	return append([]T{}, x...), err
}

func (st *State) readHead(f *section.Arrays) error {
	b, err := section.Values[byte](f, "state")
	if err != nil {
		return err
	}
	var head stateHead
	if err := json.Unmarshal(b, &head); err != nil {
		return f.Errorf("state", "%w", err)
	}
	st.Seq = head.Seq
	for _, p := range []struct {
		text string
		to   *[32]byte
	}{{head.Config, &st.Fingerprints.Config}, {head.Model, &st.Fingerprints.Model},
		{head.Shard, &st.Fingerprints.Shard}} {
		raw, err := hex.DecodeString(p.text)
		if err != nil || len(raw) != len(p.to) {
			return f.Errorf("state", "a fingerprint must be 64 hexadecimal digits (got %q)", p.text)
		}
		copy(p.to[:], raw)
	}
	return nil
}
