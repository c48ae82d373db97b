package shard

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

type fataler interface{ Fatal(...any) }

func encode(t fataler, list []section.Section) []byte {
	var b bytes.Buffer
	if err := section.Encode(&b, kind, list); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(b []byte) (*Shard, error) {
	f, err := section.Decode("part-0", kind, b)
	if err != nil {
		return nil, err
	}
	return fromSections(f)
}

func TestShardRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, _, shards := drawCut(t)
		for _, s := range shards {
			b := encode(t, s.sections())
			got, err := decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if s.Adj.Weight != nil && got.Adj.Weight == nil {
				t.Fatal("the weights are lost")
			}
			if !reflect.DeepEqual(got, s) {
				t.Fatalf("got  %+v\nwant %+v", got, s)
			}
			if !bytes.Equal(encode(t, got.sections()), b) {
				t.Fatal("encoded again, the part differs")
			}
		}
	})
}

func cutPath(t fataler, n, parts int) []*Shard {
	g := graphtest.Path(n)
	g.IDs = strings.Split(strings.Repeat("x,", n-1)+"y", ",")
	g.Adj.Weight = slices.Repeat([]float32{2}, g.Adj.NumEdges())
	owner := make([]int32, n)
	for i := range owner {
		owner[i] = int32(i * parts / n)
	}
	shards, err := Cut(g, owner, parts)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// Files whose checksums are right and whose content is not.
func TestShardRefusesForged(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		edit func(*Shard)
		want string
	}{
		{"rank", func(s *Shard) { s.Rank = 9 }, "part 9 of 3"},
		{"nodes", func(s *Shard) { s.Nodes = 2 }, "graph of 2 nodes"},
		{"negative nodes", func(s *Shard) { s.Nodes = -1 }, "graph of -1 nodes"},
		{"owned", func(s *Shard) { s.Owned++ }, `section "split"`},
		{"parts", func(s *Shard) { s.Parts++; s.HaloPtr = append(s.HaloPtr, 5) }, `section "boundary/ptr"`},
		{"owned twice", func(s *Shard) { s.Global[0] = s.Global[1] }, "node 5 is a source twice"},
		{"ID past the graph", func(s *Shard) { s.Global[len(s.Global)-1] = 10 }, "out of [0, 10)"},
		{"negative ID", func(s *Shard) { s.Global[0] = -1 }, "source 0 has global ID -1"},
		{"owned and halo", func(s *Shard) { s.Global[len(s.Global)-1] = 4 }, "node 4 is a source twice"},
		{"halo pointers descend", func(s *Shard) { s.HaloPtr[1] = 1 << 40 }, `section "halo_ptr": pointer 1`},
		{"halo begins late", func(s *Shard) { s.HaloPtr[0]++ }, "halo pointers"},
		{"halo of its own", func(s *Shard) { s.HaloPtr[1], s.HaloPtr[2] = 3, 5 }, "halo rows of the part itself"},
		{"boundary", func(s *Shard) { s.Boundary[0][0] = 3 }, "boundary node 0 towards part 0 is 3"},
		{"negative boundary", func(s *Shard) { s.Boundary[2][0] = -1 }, "towards part 2 is -1"},
		{"boundary of its own", func(s *Shard) { s.Boundary[1] = []int32{0} }, "none for itself"},
		{"column", func(s *Shard) { s.Adj.Col[1] = 5 }, `section "adj/0/col"`},
		{"row pointers", func(s *Shard) { s.Adj.RowPtr[1] = 99 }, "ends at edge 99"},
		{"weight", func(s *Shard) { s.Adj.Weight[0] = nan },
			`section "adj/0/weight": weight of edge 0 must be a finite number, 0 or more (got NaN)`},
		{"fewer weights", func(s *Shard) { s.Adj.Weight = s.Adj.Weight[1:] }, `section "adj/0/weight"`},
		{"feature", func(s *Shard) { s.X.Dense.Set(1, 1, nan) },
			`section "x/dense": feature at row 1, column 1`},
		{"rows", func(s *Shard) { s.X.Dense = s.X.Dense.RowRange(0, 2) }, `section "x/dense"`},
		{"label", func(s *Shard) { s.Labels.Class[0] = 2 },
			`section "y/class": label of node 0 must be -1 (none) or a class in [0, 2) (got 2)`},
		{"classes", func(s *Shard) { s.Labels.Classes = -3 }, `section "y/classes"`},
		{"split", func(s *Shard) { s.Split[2] = 8 }, "node 2: split must be 0 (none) to 3 (test) (got 8)"},
		{"names", func(s *Shard) { s.IDs = s.IDs[1:] }, `section "ids/ptr"`},
	} {
		s := cutPath(t, 10, 3)[1]
		c.edit(s)
		_, err := decode(encode(t, s.sections()))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, must be %q", c.name, err, c.want)
		}
	}
}

func TestShardRefusesOtherSections(t *testing.T) {
	s := cutPath(t, 10, 3)[1]
	optional := []string{"x/dense", "y/class", "adj/0/weight"} // there are graphs without
	for k, one := range s.sections() {
		without := slices.Delete(s.sections(), k, k+1)
		if _, err := decode(encode(t, without)); (err == nil) != slices.Contains(optional, one.Name) {
			t.Errorf("a part without section %q: %v", one.Name, err)
		}
		double := s.sections()
		double[k] = section.Array(one.Name, make([]int64, 1), 1, 1, 1)
		if _, err := decode(encode(t, double)); err == nil || !strings.Contains(err.Error(), one.Name) {
			t.Errorf("section %q of another type and shape: %v", one.Name, err)
		}
	}
	more := append(s.sections(), section.Array("adj/1/col", []int32{}))
	if _, err := decode(encode(t, more)); err == nil ||
		!strings.Contains(err.Error(), `section "adj/1/col": not a section of this version`) {
		t.Error(err)
	}
	old := s.sections()
	at := slices.IndexFunc(old, func(one section.Section) bool { return one.Name == "halo_ptr" })
	old = slices.Insert(old, at, section.Array("degree", make([]float32, len(s.Global))))
	if got, err := decode(encode(t, old)); err != nil || !reflect.DeepEqual(got.Global, s.Global) {
		t.Errorf("a part with the degrees of all sources, as they once were: %v", err)
	}
	turned := s.sections()
	slices.Reverse(turned)
	if _, err := decode(encode(t, turned)); err == nil || !strings.Contains(err.Error(), "not in its place") {
		t.Error(err)
	}
}

func TestWriteReadDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shards")
	shards := cutPath(t, 10, 3)
	m, err := WriteDir(dir, shards, Meta{Policy: "contiguous", Seed: math.MaxUint64})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(Incomplete(dir)); err == nil {
		t.Error("the mark is left")
	}
	if again, err := ReadManifest(dir); err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("manifest %+v, must be %+v, %v", again, m, err)
	}
	got, closer, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got {
		s.Forget() // its arrays are read again
		s.file = nil
	}
	if !reflect.DeepEqual(got, shards) {
		t.Error("the parts read are not the parts written")
	}
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	s, one, err := ReadShard(filepath.Join(dir, "part-2"))
	if err != nil {
		t.Fatal(err)
	}
	s.file = nil
	if !reflect.DeepEqual(s, shards[2]) {
		t.Error("the part read is not the part written")
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if _, err := WriteDir(dir, shards, Meta{}); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Error(err)
	}
}

func TestWriteDirLeavesNothingHalf(t *testing.T) {
	shards := cutPath(t, 10, 3)
	bad := cutPath(t, 10, 3)
	bad[2].X.Dense.Set(0, 0, float32(math.Inf(1)))
	root := t.TempDir()
	dir := filepath.Join(root, "shards")
	for _, list := range [][]*Shard{bad, shards[:2], {shards[0], shards[2], shards[1]}, {}} {
		if _, err := WriteDir(dir, list, Meta{}); err == nil {
			t.Fatal("wrote what is no partition")
		}
	}
	// found out after the parts are written
	if _, err := WriteDir(dir, shards, Meta{Sites: []string{"one"}}); err == nil {
		t.Fatal("wrote one site's name for three parts")
	}
	if list, _ := os.ReadDir(root); len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
	// What an interrupted run left is replaced; what it cannot have left is not touched.
	if err := os.MkdirAll(Incomplete(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(Incomplete(dir), "thesis.tex")
	for _, name := range []string{mine, filepath.Join(Incomplete(dir), "part-7"),
		filepath.Join(Incomplete(dir), ".part-0.123")} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := ReadShard(filepath.Join(Incomplete(dir), "part-7")); err == nil ||
		!strings.Contains(err.Error(), "manifest.json is missing") {
		t.Error(err)
	}
	if _, err := WriteDir(dir, shards, Meta{}); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Error(err)
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal("the user's file is gone")
	}
	if _, err := WriteDir(dir, shards, Meta{}); err != nil {
		t.Error(err)
	}
	blocked := filepath.Join(root, "file")
	if err := os.WriteFile(blocked, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteDir(filepath.Join(blocked, "shards"), shards, Meta{}); err == nil {
		t.Error("wrote below a file")
	}
}

func TestReadShardAgainstManifest(t *testing.T) {
	root := t.TempDir()
	write := func(name string, shards []*Shard) string {
		if _, err := WriteDir(filepath.Join(root, name), shards, Meta{Policy: "test"}); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(root, name)
	}
	file := func(parts ...string) []byte {
		b, err := os.ReadFile(filepath.Join(parts...))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	other := file(write("other", cutPath(t, 12, 3)), "part-0")
	edit := func(from, to string) func(string) {
		return func(dir string) {
			b := file(dir, manifestName)
			if !bytes.Contains(b, []byte(from)) {
				t.Fatalf("no %q in %s", from, b)
			}
			put(t, filepath.Join(dir, manifestName), bytes.Replace(b, []byte(from), []byte(to), 1))
		}
	}
	for k, c := range []struct {
		want string
		do   func(dir string)
	}{
		{"a part of another partition", func(dir string) { put(t, filepath.Join(dir, "part-0"), other) }},
		{"the file of part 1 must be named part-1",
			func(dir string) { put(t, filepath.Join(dir, "part-0"), file(dir, "part-1")) }},
		{"truncated", func(dir string) {
			b := file(dir, "part-0")
			put(t, filepath.Join(dir, "part-0"), b[:len(b)-1])
		}},
		{"header of 64 bytes", func(dir string) { put(t, filepath.Join(dir, "part-0"), nil) }},
		{"checksum", func(dir string) {
			b := file(dir, "part-0")
			b[len(b)-1]++
			put(t, filepath.Join(dir, "part-0"), b)
		}},
		{"as in manifest.json", func(dir string) { // the same partition, other data
			s := cutPath(t, 10, 3)
			s[0].X.Dense.Set(0, 0, 5)
			put(t, filepath.Join(dir, "part-0"), encode(t, s[0].sections()))
		}},
		{"must send 0 rows to part 1 (got 1)", func(dir string) {
			b := file(dir, manifestName)
			m, err := decodeManifest(b)
			if err != nil {
				t.Fatal(err)
			}
			m.Parts[1].Halo[0] = 0
			b, _ = m.encode()
			put(t, filepath.Join(dir, manifestName), b)
		}},
		{"is missing", func(dir string) { os.Remove(filepath.Join(dir, manifestName)) }},
		{"no such file", func(dir string) { os.Remove(filepath.Join(dir, "part-0")) }},
		{"format must be 1 (got 2)", edit(`"format": 1`, `"format": 2`)},
		{"unknown field", edit(`"format"`, `"formats"`)},
		{"fingerprint", edit(`"fingerprint": "`, `"fingerprint": "0`)},
		{"the graph 11 and", edit(`"nodes": 10`, `"nodes": 11`)},
	} {
		dir := write(string(rune('a'+k)), cutPath(t, 10, 3))
		c.do(dir)
		path := filepath.Join(dir, "part-0")
		if _, _, err := ReadShard(path); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%v, must be %q and the path", err, c.want)
		}
		if _, _, err := ReadDir(dir); err == nil {
			t.Errorf("%s: ReadDir accepts it", c.want)
		}
	}
}

func put(t fataler, path string, b []byte) {
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func FuzzShard(f *testing.F) {
	for _, s := range cutPath(f, 10, 3) {
		f.Add(encode(f, s.sections()))
	}
	g := graphtest.Path(4)
	g.X, g.Labels = graph.Identity(4), graph.Labels{Classes: 2, Bits: make([]uint8, 8)}
	f.Add(encode(f, Whole(g).sections()))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		graphtest.Reseal(b)
		s, err := decode(b)
		if err != nil {
			return
		}
		if err := s.Valid(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encode(t, s.sections()), b) {
			t.Fatal("encoded again, the part differs")
		}
	})
}

func FuzzManifest(f *testing.F) {
	b, err := Describe(cutPath(f, 10, 3), Meta{Policy: "contiguous", Sites: []string{"a", "b", "c"}}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":1,"fingerprint":"` + strings.Repeat("0", 64) + `","parts":[{"halo":[0]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest(b)
		if err != nil {
			return
		}
		once, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeManifest(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice, _ := again.encode(); !bytes.Equal(once, twice) {
			t.Fatalf("%s\nthen\n%s", once, twice)
		}
		if !json.Valid(once) {
			t.Fatal("no JSON")
		}
	})
}
