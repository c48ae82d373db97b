package dataset

import (
	"archive/zip"
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

type arr struct {
	shape  []int
	values any
}

// small is a valid set of 5 nodes: a path 0-1-2-3 listed with a repeat, a reverse and a loop, and
// the lone node 4.
func small() map[string]arr {
	return map[string]arr{
		"edge_index": {[]int{2, 6}, []int32{0, 1, 2, 1, 2, 2 /**/, 1, 2, 1, 2, 3, 2}},
		"x":          {[]int{5, 2}, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"y":          {[]int{5}, []int64{0, 1, 0, 1, -1}},
		"train_mask": {[]int{5, 2}, []bool{true, false, true, false, false, true, false, true, false, false}},
		"val_mask":   {[]int{5, 2}, []bool{false, true, false, false, true, false, false, false, false, false}},
		"test_mask":  {[]int{5, 2}, []bool{false, false, false, true, false, false, true, false, false, false}},
	}
}

// sparseX replaces the features by 5×3 sparse ones.
func sparseX(m map[string]arr) {
	delete(m, "x")
	m["x_indptr"] = arr{[]int{6}, []int64{0, 1, 1, 3, 3, 3}}
	m["x_indices"] = arr{[]int{3}, []int32{2, 0, 1}}
	m["x_data"] = arr{[]int{3}, []float32{1, 2, 3}}
	m["x_shape"] = arr{[]int{2}, []int64{5, 3}}
}

func pack(t testing.TB, m map[string]arr) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := npy.Write(z, name, m[name].shape, m[name].values); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// folder writes a data set and returns its directory; meta "" is no meta.json.
func folder(t testing.TB, npz []byte, meta string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, arraysFile), npz, 0o666); err != nil {
		t.Fatal(err)
	}
	if meta != "" {
		if err := os.WriteFile(filepath.Join(dir, metaFile), []byte(meta), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadSmall(t *testing.T) {
	m := small()
	m["client"] = arr{[]int{5}, []int32{1, 0, 0, 1, 1}}
	dir := folder(t, pack(t, m),
		`{"name": "five", "class_names": ["cat", "dog", "emu"], "client_names": ["north", "south"]}`)
	want := &graph.Graph{
		Name:   "five",
		Adj:    graph.CSR{NumDst: 5, NumSrc: 5, RowPtr: []int64{0, 1, 3, 5, 6, 6}, Col: []int32{1, 0, 2, 1, 3, 2}},
		X:      graph.Features{Dense: mat.View(5, 2, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		Labels: graph.Labels{Classes: 3, Class: []int32{0, 1, 0, 1, -1}, Names: []string{"cat", "dog", "emu"}},
		Split:  []graph.Split{graph.Val, graph.Test, graph.Train, graph.Train, graph.None},
		Site:   []int32{1, 0, 0, 1, 1}, Sites: []string{"north", "south"},
	}
	for _, path := range []string{dir, filepath.Join(dir, arraysFile)} {
		g, err := Read(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(g, want) {
			t.Errorf("read %+v\nwant %+v", g, want)
		}
		if err := g.Valid(); err != nil {
			t.Error(err)
		}
	}
}

// TestReadTyped: relations keep their direction, lose repeats and loops, and are followed by their
// reverses; the adjacency does not change with them.
// TestSplits: as many splits as the masks have columns, 1 where a mask is a vector.
func TestSplits(t *testing.T) {
	m := small()
	if n, err := Splits(folder(t, pack(t, m), "")); err != nil || n != 2 {
		t.Errorf("masks of 2 columns: %d splits, %v", n, err)
	}
	for _, name := range []string{"train_mask", "val_mask", "test_mask"} {
		m[name] = arr{[]int{5}, []bool{name == "train_mask", name == "val_mask", name == "test_mask", false, false}}
	}
	if n, err := Splits(folder(t, pack(t, m), "")); err != nil || n != 1 {
		t.Errorf("masks that are vectors: %d splits, %v", n, err)
	}
	if _, err := Splits(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("no such data set: %v", err)
	}
}

func TestReadTyped(t *testing.T) {
	m := small()
	untyped, err := Read(folder(t, pack(t, m), ""), 1)
	if err != nil {
		t.Fatal(err)
	}
	m["edge_type"] = arr{[]int{6}, []int32{0, 1, 1, 0, 0, 0}}
	g, err := Read(folder(t, pack(t, m), `{"relation_names": ["likes", "knows"]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g.Adj, untyped.Adj) {
		t.Errorf("adjacency %+v, without types %+v", g.Adj, untyped.Adj)
	}
	pairs := m["edge_index"].values.([]int32)
	want := make([]map[[2]int32]bool, 4)
	for r := range want {
		want[r] = make(map[[2]int32]bool)
	}
	for k, r := range m["edge_type"].values.([]int32) {
		if s, d := pairs[k], pairs[6+k]; s != d {
			want[r][[2]int32{s, d}], want[r+2][[2]int32{d, s}] = true, true
		}
	}
	if !slices.Equal(g.Typed.Names, []string{"likes", "knows", "likes (inverse)", "knows (inverse)"}) {
		t.Fatalf("relations %q", g.Typed.Names)
	}
	for r := range want {
		one := g.Typed.Adj.Relation(r, 4)
		n := 0
		for i := range one.NumDst {
			col, _ := one.Row(i)
			for _, j := range col {
				n++
				if !want[r][[2]int32{j, int32(i)}] {
					t.Errorf("relation %d has %d → %d", r, j, i)
				}
			}
		}
		if n != len(want[r]) {
			t.Errorf("relation %d has %d edges, want %d", r, n, len(want[r]))
		}
	}
	if err := g.Valid(); err != nil {
		t.Error(err)
	}
	m["edge_type"] = arr{[]int{6}, []int32{0, 1, 1, 0, 2, 0}}
	_, err = Read(folder(t, pack(t, m), `{"relation_names": ["likes", "knows"]}`), 1)
	graphtest.Refused(t, err, "edge_type", "entry 4 must be a relation, 0 to 1 (got 2)")
	m["edge_type"] = arr{[]int{5}, []int32{0, 1, 1, 0, 0}}
	_, err = Read(folder(t, pack(t, m), ""), 1)
	graphtest.Refused(t, err, "edge_type")
}

func TestReadFaults(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name  string
		edit  func(m map[string]arr)
		meta  string
		split int
		want  []string
	}{
		{"no edges", func(m map[string]arr) { delete(m, "edge_index") }, "", 0, []string{"array edge_index: missing"}},
		{"no labels", func(m map[string]arr) { delete(m, "y") }, "", 0, []string{"array y: missing"}},
		{"dtype of edges", func(m map[string]arr) { m["edge_index"] = arr{[]int{2, 1}, []float32{0, 1}} }, "", 0,
			[]string{"array edge_index", "dtype must be of whole numbers (got <f4)"}},
		{"infinite target",
			func(m map[string]arr) { m["y"] = arr{[]int{5}, []float32{1, 2, float32(math.Inf(1)), 0, 0}} }, "", 0,
			[]string{"array y", "target of node 2 in column 0 must be a finite number"}},
		{"half a target",
			func(m map[string]arr) { m["y"] = arr{[]int{5, 2}, []float32{1, 2, 3, 4, 5, nan, 0, 0, 0, 0}} }, "", 0,
			[]string{"array y", "target of node 2 in column 1 must be a finite number, or NaN in all columns"}},
		{"texts of features", func(m map[string]arr) { m["x"] = arr{[]int{5, 1}, make([]string, 5)} }, "", 0,
			[]string{"array x", "dtype must be of numbers (got <U1)"}},
		{"list of nodes as a mask", func(m map[string]arr) { m["val_mask"] = arr{[]int{3}, []int64{0, 3, 4}} }, "", 0,
			[]string{"array val_mask", "shape must be [5] (got [3])"}},
		{"number in a mask", func(m map[string]arr) { m["val_mask"] = arr{[]int{5}, []int64{0, 3, 4, 0, 0}} }, "", 0,
			[]string{"array val_mask", "node 1 must have 0 or 1 (got 3)"}},
		{"edges by row", func(m map[string]arr) { m["edge_index"] = arr{[]int{3, 2}, make([]int64, 6)} }, "", 0,
			[]string{"array edge_index", "shape must be [2, any] (got [3, 2]): transpose it"}},
		{"edges of one row", func(m map[string]arr) { m["edge_index"] = arr{[]int{1, 2}, []int32{0, 1}} }, "", 0,
			[]string{"array edge_index", "shape must be [2, any] (got [1, 2])"}},
		{"endpoint N", func(m map[string]arr) { m["edge_index"].values.([]int32)[9] = 5 }, "", 0,
			[]string{"array edge_index", "entry [1, 3] must be a node, 0 to 4 (got 5)"}},
		{"endpoint -1", func(m map[string]arr) { m["edge_index"].values.([]int32)[0] = -1 }, "", 0,
			[]string{"entry [0, 0] must be a node, 0 to 4 (got -1)"}},
		{"wide endpoint", func(m map[string]arr) { m["edge_index"] = arr{[]int{2, 1}, []int64{0, 1 << 32}} }, "", 0,
			[]string{"array edge_index", "row 1, column 0 is 4294967296, which does not fit a int32"}},
		{"weight 0", func(m map[string]arr) { m["edge_weight"] = arr{[]int{6}, []float32{1, 1, 0, 1, 1, 1}} }, "", 0,
			[]string{"array edge_weight", "entry 2 must be a finite number above 0 (got 0)"}},
		{"weights of another list", func(m map[string]arr) { m["edge_weight"] = arr{[]int{5}, make([]float32, 5)} }, "",
			0, []string{"array edge_weight", "shape must be [6] (got [5])"}},
		{"relations of another list", func(m map[string]arr) { m["edge_type"] = arr{[]int{5}, make([]int32, 5)} }, "",
			0, []string{"array edge_type", "shape must be [6] (got [5])"}},
		{"NaN", func(m map[string]arr) { m["x"].values.([]float32)[7] = nan }, "", 0,
			[]string{"array x", "row 3, column 1 must be a finite number (got NaN)"}},
		{"infinity", func(m map[string]arr) { m["x"].values.([]float32)[0] = inf }, "", 0,
			[]string{"array x", "row 0, column 0 must be a finite number (got +Inf)"}},
		{"sparse NaN", func(m map[string]arr) { sparseX(m); m["x_data"].values.([]float32)[2] = nan }, "", 0,
			[]string{"array x_data", "row 2, column 1 must be a finite number (got NaN)"}},
		{"rows of x", func(m map[string]arr) { m["x"] = arr{[]int{4, 1}, make([]float32, 4)} }, "", 0,
			[]string{"array x", "shape must be [5, any] (got [4, 1])"}},
		{"both kinds of x", func(m map[string]arr) { x := m["x"]; sparseX(m); m["x"] = x }, "", 0,
			[]string{"features must be dense or sparse (got both: x_indptr)"}},
		{"sparse without pointers", func(m map[string]arr) { sparseX(m); delete(m, "x_indptr") }, "", 0,
			[]string{"array x_indptr: missing"}},
		{"sparse without values", func(m map[string]arr) { sparseX(m); delete(m, "x_data") }, "", 0,
			[]string{"array x_data: missing"}},
		{"sparse shape", func(m map[string]arr) { sparseX(m); m["x_shape"].values.([]int64)[0] = 6 }, "", 0,
			[]string{"array x_shape", "must be [5, 0 to 16777216] (got [6 3])"}},
		{"giant sparse shape", func(m map[string]arr) { sparseX(m); m["x_shape"].values.([]int64)[1] = 1 << 40 }, "", 0,
			[]string{"array x_shape"}},
		{"sparse column", func(m map[string]arr) { sparseX(m); m["x_indices"].values.([]int32)[0] = 3 }, "", 0,
			[]string{"x_indices", "row 0 column 3"}},
		{"sparse pointers fall", func(m map[string]arr) { sparseX(m); m["x_indptr"].values.([]int64)[2] = 0 }, "", 0,
			[]string{"x_indptr", "row 1"}},
		{"sparse pointers leave", func(m map[string]arr) { sparseX(m); m["x_indptr"].values.([]int64)[2] = 1 << 60 },
			"", 0, []string{"x_indptr", "row 1"}},
		{"label -2", func(m map[string]arr) { m["y"].values.([]int64)[1] = -2 }, `{"classes": 2}`, 0,
			[]string{"array y", "label of node 1 must be 0 to 1, or -1 for none (got -2)"}},
		{"label C", nil, `{"classes": 1}`, 0,
			[]string{"array y", "label of node 1 must be 0 to 0, or -1 for none (got 1)"}},
		{"label above all", func(m map[string]arr) { m["y"].values.([]int64)[3] = 1 << 40 }, `{"classes": 2}`, 0,
			[]string{"array y", "label of node 3 must be 0 to 1, or -1 for none (got 1099511627776)"}},
		{"label of no class", func(m map[string]arr) { m["y"] = arr{[]int{5}, []string{"a", "b", "c", "a", ""}} },
			`{"class_names": ["a", "b"]}`, 0, []string{"array y", `class of node 2 must be one of a, b (got "c")`}},
		{"-1 beside two classes", func(m map[string]arr) {
			delete(m, "train_mask")
			delete(m, "val_mask")
			delete(m, "test_mask")
		}, "", 0, []string{"array y", "-1 together with 0, 1 may be a class or no label"}},
		{"names of classes", nil, `{"classes": 2, "class_names": ["a"]}`, 0,
			[]string{"array y: meta.json must have at most 1048576 classes and a name for each " +
				"(got 2 classes, 1 names)"}},
		{"nodes of meta", nil, `{"nodes": 6}`, 0, []string{"array y", "must have 6 nodes, as meta.json (got 5)"}},
		{"meta is no JSON", nil, `{"nodes": `, 0, []string{"meta.json"}},
		{"masks overlap", func(m map[string]arr) { m["val_mask"].values.([]bool)[0] = true }, "", 0,
			[]string{"array val_mask", "node 0 is in train_mask too"}},
		{"mask of a node without label", func(m map[string]arr) { m["train_mask"].values.([]bool)[8] = true },
			`{"classes": 2}`, 0, []string{"array train_mask", "node 4 has no label"}},
		{"mask too short", func(m map[string]arr) { m["test_mask"] = arr{[]int{4}, make([]bool, 4)} }, "", 0,
			[]string{"array test_mask", "shape must be [5] (got [4])"}},
		{"no such split", nil, "", 2, []string{"array train_mask", "split must be 0 to 1 (got 2)"}},
		{"negative split", nil, "", -1, []string{"split must be 0 to 1 (got -1)"}},
		{"empty training set", func(m map[string]arr) { m["train_mask"] = arr{[]int{5, 2}, make([]bool, 10)} }, "", 0,
			[]string{"array train_mask", "split 0 must mark at least one node"}},
		{"site", func(m map[string]arr) { m["client"] = arr{[]int{5}, []int32{0, 0, 2, 0, 0}} },
			`{"client_names": ["a", "b"]}`, 0, []string{"array client", "site of node 2 must be 0 to 1 (got 2)"}},
		{"sites too short", func(m map[string]arr) { m["client"] = arr{[]int{4}, make([]int32, 4)} }, "", 0,
			[]string{"array client", "shape must be [5] (got [4])"}},
		{"names leave the text", func(m map[string]arr) {
			m["ids"], m["ids_indptr"] = arr{[]int{2}, []uint8("ab")}, arr{[]int{6}, []int64{0, 9, 2, 2, 2, 2}}
		}, "", 0, []string{"array ids_indptr", "entries must ascend up to 2 (got 9 as entry 1)"}},
		{"multi-label 2", func(m map[string]arr) { m["y"] = arr{[]int{5, 2}, []uint8{0, 1, 1, 0, 2, 0, 0, 0, 0, 0}} },
			"", 0, []string{"array y", "node 2, class 0 must be 0 or 1 (got 2)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := small()
			if c.edit != nil {
				c.edit(m)
			}
			dir := folder(t, pack(t, m), c.meta)
			_, err := Read(dir, c.split)
			graphtest.Refused(t, err, append(c.want, dir)...)
		})
	}
	_, err := Read(filepath.Join(t.TempDir(), "nowhere"), 0)
	graphtest.Refused(t, err, "nowhere", "no such file")
}

// TestLabels: what y may be, and what it means.
func TestLabels(t *testing.T) {
	read := func(y any, columns int, meta string, as As) (graph.Labels, error) {
		m := small()
		for name := range m {
			if strings.HasSuffix(name, "_mask") {
				delete(m, name)
			}
		}
		shape := []int{reflect.ValueOf(y).Len()}
		if columns > 0 {
			shape = []int{shape[0] / columns, columns}
		}
		m["y"], m["edge_index"] = arr{shape, y}, arr{[]int{2, 1}, []int64{0, 1}}
		m["x"] = arr{[]int{shape[0], 1}, make([]float32, shape[0])}
		g, err := as.Read(folder(t, pack(t, m), meta), 0)
		if err != nil {
			return graph.Labels{}, err
		}
		return g.Labels, nil
	}
	nan, nan64, classify := float32(math.NaN()), math.NaN(), As{Task: "classification"}
	model := As{Classes: 3, Names: []string{"1", "2", "5"}}
	for _, c := range []struct {
		what    string
		y       any
		columns int
		meta    string
		as      As
		class   []int32
		names   []string
	}{
		{"from 0", []int64{0, 1, 2, 1}, 0, "", As{}, []int32{0, 1, 2, 1}, nil},
		{"from 1", []int32{1, 4, 3, 2}, 0, "", As{}, []int32{0, 3, 2, 1}, []string{"1", "2", "3", "4"}},
		{"gaps", []int64{10, 30, 9, 10}, 0, "", As{}, []int32{1, 2, 0, 1}, []string{"9", "10", "30"}},
		{"a column", []int64{0, 1, 2, 1}, 1, "", As{}, []int32{0, 1, 2, 1}, nil},
		{"bool", []bool{true, false, true, true}, 0, "", As{}, []int32{1, 0, 1, 1}, nil},
		{"-1 beside 0, 1, 2", []int64{0, 1, 2, -1}, 0, "", As{}, []int32{0, 1, 2, -1}, nil},
		{"-1 and 1", []int64{1, -1, -1, 1}, 0, "", As{}, []int32{1, 0, 0, 1}, []string{"-1", "1"}},
		{"-2 to 1", []int64{-2, -1, 0, 1}, 0, "", As{}, []int32{0, 1, 2, 3}, []string{"-2", "-1", "0", "1"}},
		{"-1 beside named classes", []int64{0, 1, -1, 1}, 0, `{"class_names": ["a", "b"]}`, As{}, []int32{0, 1, -1, 1},
			[]string{"a", "b"}},
		{"-1 of links", []int64{0, 1, -1, 1}, 0, "", As{Task: "links"}, []int32{0, 1, -1, 1}, nil},
		{"texts", []string{"10", " 9", "NA", "10"}, 0, "", As{}, []int32{1, 0, -1, 1}, []string{"9", "10"}},
		{"texts with an order", []string{"low", "high", "", "none"}, 0, `{"class_names": ["none", "low", "high"]}`,
			As{}, []int32{1, 2, -1, 0}, []string{"none", "low", "high"}},
		{"whole floats as classes", []float64{2, nan64, 1, 2}, 0, "", classify, []int32{1, -1, 0, 1},
			[]string{"1", "2"}},
		{"whole floats and -1", []float64{2, -1, 1, 0}, 0, "", classify, []int32{2, -1, 1, 0}, nil},
		{"fractions as classes", []float32{0.5, 1.5, nan, 0.5}, 0, "", classify, []int32{0, 1, -1, 0},
			[]string{"0.5", "1.5"}},
		{"numbers of a model", []int64{2, 1, 0, 7}, 0, "", model, []int32{1, 0, -1, -1}, model.Names},
		{"numbers of named classes", []int64{2, 1, 0, 7}, 0, "", As{Classes: 3, Names: []string{"a", "b", "c"}},
			[]int32{2, 1, 0, -1}, []string{"a", "b", "c"}},
		{"texts of a model", []string{"b", "a", "", "d"}, 0, "", As{Classes: 3, Names: []string{"b", "a", "c"}},
			[]int32{0, 1, -1, -1}, []string{"b", "a", "c"}},
	} {
		l, err := read(c.y, c.columns, c.meta, c.as)
		if err != nil || !slices.Equal(l.Class, c.class) || !slices.Equal(l.Names, c.names) {
			t.Errorf("%s: %v %q, %v, want %v %q", c.what, l.Class, l.Names, err, c.class, c.names)
		}
	}
	for what, c := range map[string]struct {
		y       any
		columns int
		as      As
		values  []float32
		bits    []uint8
	}{
		"floats":  {[]float64{0, 1, 2, 0.1}, 0, As{}, []float32{0, 1, 2, 0.1}, nil},
		"numbers": {[]int64{-1, 0, 1, 5}, 0, As{Task: "regression"}, []float32{-1, 0, 1, 5}, nil},
		"texts of numbers": {[]string{"1.5", "2", "3", "-1"}, 0, As{Task: "regression"}, []float32{1.5, 2, 3, -1},
			nil},
		"one-hot":              {[]int64{0, 1, 1, 0}, 2, As{}, nil, []uint8{0, 1, 1, 0}},
		"float one-hot":        {[]float32{0, 1, 1, 0}, 2, As{}, nil, []uint8{0, 1, 1, 0}},
		"targets of 0 and 1":   {[]float32{0, 1, 1, 0}, 2, As{Task: "regression"}, []float32{0, 1, 1, 0}, nil},
		"columns of fractions": {[]float32{0, 1, 1, 0.5}, 2, As{}, []float32{0, 1, 1, 0.5}, nil},
	} {
		l, err := read(c.y, c.columns, "", c.as)
		if err != nil || !slices.Equal(l.Values, c.values) || !slices.Equal(l.Bits, c.bits) || l.Class != nil {
			t.Errorf("%s: %+v, %v, want %v %v", what, l, err, c.values, c.bits)
		}
	}
	_, err := read([]string{"1", "b"}, 0, "", As{Task: "regression"})
	graphtest.Refused(t, err, "array y", `entry 1 must be a number for a regression (got "b")`)
	m := small() // a mask may mark a text that means missing: its node is in no split
	m["y"], m["train_mask"].values.([]bool)[8] = arr{[]int{5}, []string{"a", "b", "a", "b", "nan"}}, true
	if g, err := Read(folder(t, pack(t, m), ""), 0); err != nil || g.Split[4] != graph.None ||
		g.Split[0] != graph.Train {
		t.Errorf("%+v, %v", g, err)
	}
	// A mask that marks a node with -1 makes it a class; masks that mark none make it no label.
	for marked, class := range map[bool][]int32{true: {1, 2, 1, 2, 0}, false: {0, 1, 0, 1, -1}} {
		m := small()
		if marked {
			m["test_mask"].values.([]bool)[9] = true
		}
		g, err := Read(folder(t, pack(t, m), ""), 0)
		if err != nil || !slices.Equal(g.Labels.Class, class) {
			t.Errorf("%v: %v, %v", marked, g, err)
		}
	}
}

// TestReadTruncated cuts an archive after every byte, and flips a bit of every byte.
func TestReadTruncated(t *testing.T) {
	m := small()
	sparseX(m)
	data := pack(t, m)
	for n := range data {
		if a, err := npy.New("cut.npz", bytes.NewReader(data[:n]), int64(n)); err == nil {
			_, err = arrays{a}.graph(meta{}, 0, As{})
			t.Errorf("%d of %d bytes were opened as an archive (%v)", n, len(data), err)
		}
	}
	want, err := mustOpen(t, data).graph(meta{}, 0, As{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		bad := slices.Clone(data)
		bad[n] ^= 1 << (n % 8)
		a, err := npy.New("flipped.npz", bytes.NewReader(bad), int64(len(bad)))
		if err != nil {
			continue
		}
		if g, err := (arrays{a}).graph(meta{}, 0, As{}); err == nil && !reflect.DeepEqual(g.Labels, want.Labels) {
			t.Errorf("byte %d is damaged and the labels differ without an error", n)
		}
	}
}

func mustOpen(t testing.TB, data []byte) arrays {
	t.Helper()
	a, err := npy.New("test.npz", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return arrays{a}
}

func TestWriteRead(t *testing.T) {
	weighted := &graph.Graph{
		Name: "weighted",
		Adj: graph.CSR{NumDst: 3, NumSrc: 3, RowPtr: []int64{0, 1, 3, 4}, Col: []int32{1, 0, 2, 1},
			Weight: []float32{2, 2, 0.25, 0.25}},
		X:        graph.Features{Dense: mat.View(3, 2, []float32{1, -2, 0, 4, 5, 6})},
		Labels:   graph.Labels{Classes: 2, Bits: []uint8{1, 1, 0, 0, 0, 1}, Names: []string{"red", "b<lue"}},
		Split:    []graph.Split{graph.Train, graph.None, graph.Test},
		IDs:      []string{"ä", "", "node three"},
		Encoding: []byte(`{"id":"key","columns":[{"name":"a\u003cb"}]}`),
	}
	bare := &graph.Graph{
		Name:   "bare",
		Adj:    graph.CSR{NumDst: 2, NumSrc: 2, RowPtr: []int64{0, 0, 0}, Col: []int32{}, Weight: []float32{}},
		Labels: graph.Labels{Class: []int32{-1, -1}},
		Split:  make([]graph.Split, 2),
	}
	typed := &graph.Graph{
		Name:   "typed",
		Adj:    graph.CSR{NumDst: 3, NumSrc: 3, RowPtr: []int64{0, 1, 3, 4}, Col: []int32{1, 0, 2, 1}},
		Labels: graph.Labels{Class: []int32{-1, -1, -1}},
		Split:  make([]graph.Split, 3),
		// 1 likes 0, 1 and 2 know each other
		Typed: graph.Relations{Names: []string{"likes", "knows", "likes (inverse)"}, Adj: graph.CSR{NumDst: 9,
			NumSrc: 3, RowPtr: []int64{0, 1, 1, 1, 1, 2, 3, 3, 4, 4}, Col: []int32{1, 2, 1, 0}}},
	}
	for _, want := range []*graph.Graph{weighted, bare, typed, Sites(SitesConfig{Nodes: 200}, rng.New(3))} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		if err := Write(dir, want); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %+v\nwant %+v", want.Name, got, want)
		}
		again := filepath.Join(t.TempDir(), "again")
		if err := Write(again, got); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{arraysFile, metaFile} {
			x, _ := os.ReadFile(filepath.Join(dir, name))
			y, _ := os.ReadFile(filepath.Join(again, name))
			if len(x) == 0 || !bytes.Equal(x, y) {
				t.Errorf("%s: %s differs when written again", want.Name, name)
			}
		}
		graphtest.Refused(t, Write(dir, want), dir, "not empty")
		if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
			t.Errorf("%v is left beside the data set", left)
		}
	}
}

// TestDigest: a data set that was written here is refused after any change of a bit, and one by others has no digest.
func TestDigest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	if err := Write(dir, Sites(SitesConfig{Nodes: 200}, rng.New(3))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, arraysFile)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(good); at += 1 + at%97 {
		bad := slices.Clone(good)
		bad[at] ^= 1 << (at % 8)
		if err := os.WriteFile(file, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir, 0); err == nil {
			t.Errorf("byte %d of %d is damaged, and the set is read", at, len(good))
		}
	}
	_, err = Read(dir, 0)
	graphtest.Refused(t, err, file, "the file is damaged or changed")
}

// TestWriteFails checks that a failure leaves nothing behind.
func TestWriteFails(t *testing.T) {
	loop := &graph.Graph{Adj: graph.CSR{NumDst: 2, NumSrc: 2, RowPtr: []int64{0, 1, 1}, Col: []int32{0}},
		Split: make([]graph.Split, 2)}
	parent := t.TempDir()
	graphtest.Refused(t, Write(filepath.Join(parent, "out"), loop), "self-loops cannot be stored")
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	graphtest.Refused(t, Write(filepath.Join(file, "out"), loop), file)
	graphtest.Refused(t, Write(file, loop), file)
}

func FuzzNpz(f *testing.F) {
	f.Add(pack(f, small()), "{}", 0)
	m := small()
	sparseX(m)
	m["client"] = arr{[]int{5}, make([]int32, 5)}
	m["ids"], m["ids_indptr"] = arr{[]int{2}, []uint8("ab")}, arr{[]int{6}, []int64{0, 1, 2, 2, 2, 2}}
	m["edge_weight"] = arr{[]int{6}, []float32{1, 2, 3, 4, 5, 6}}
	m["y"] = arr{[]int{5, 2}, []uint8{0, 1, 1, 0, 1, 1, 0, 0, 0, 0}}
	f.Add(pack(f, m), `{"classes": 2, "class_names": ["a", "b"]}`, 1)
	f.Add(pack(f, twoTypes()), twoTypesMeta, 0)
	f.Fuzz(func(t *testing.T, data []byte, text string, split int) {
		if len(data) > 1<<14 { // what a deflate stream can become stays small
			return
		}
		a, err := npy.New("fuzz.npz", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		m, err := parseMeta(metaFile, []byte(text))
		if err != nil {
			return
		}
		g, err := arrays{a}.graph(m, split, As{})
		if err != nil {
			return
		}
		if err := g.Valid(); err != nil {
			t.Fatal(err)
		}
		if len(m.Relations) > 0 { // what is written also has their reverses
			return
		}
		var b bytes.Buffer
		if err := writeArrays(&b, g, false); err != nil {
			t.Fatal(err)
		}
		again, err := mustOpen(t, b.Bytes()).graph(m, 0, As{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(g.Adj, again.Adj) || !reflect.DeepEqual(g.Labels, again.Labels) ||
			!slices.Equal(g.IDs, again.IDs) {
			t.Fatalf("%+v was read again as %+v", g, again)
		}
	})
}
