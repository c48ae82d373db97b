package mobile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// Limits of a Graph: it is made for a phone's own data, not for a site's.
const (
	MaxNodes    = 100_000
	MaxEdges    = 1_000_000
	MaxFeatures = 4096
	MaxClasses  = 1000
	maxValues   = 1 << 24 // nodes times features: 64 MiB
)

// Graph is a small graph in the phone's memory, made row by row from the app's tables: contacts,
// places, sessions. It is safe for use by several threads. Its contents leave the phone only
// as the plan lists (docs/reference/what-leaves.md); names of nodes never do.
type Graph struct {
	features, classes int

	mu       sync.Mutex
	names    map[string]int32
	list     []string
	x        []float32 // a row of features for each node
	class    []int32   // (−1 = no label)
	split    []graph.Split
	given    []bool // whether the app set the split
	src, dst []int32
}

// NewGraph returns an empty graph. Each node gets features numbers (1 to MaxFeatures) and may get one of the classes
// (2 to MaxClasses). Both must be the same at all members.
func NewGraph(features, classes int) (*Graph, error) {
	if features < 1 || features > MaxFeatures {
		return nil, fmt.Errorf("features must be 1 to %d (got %d)", MaxFeatures, features)
	}
	if classes < 2 || classes > MaxClasses {
		return nil, fmt.Errorf("classes must be 2 to %d (got %d)", MaxClasses, classes)
	}
	return &Graph{features: features, classes: classes, names: map[string]int32{}}, nil
}

// AddNode adds a node under a name of the app's choice and returns its number, from 0. Its features
// are 0 and it has no label. A name is used once.
func (g *Graph) AddNode(name string) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i, ok := g.names[name]; ok {
		return 0, fmt.Errorf("node %q is there already, as number %d", name, i)
	}
	n := len(g.list)
	if n == MaxNodes || (n+1)*g.features > maxValues {
		return 0, fmt.Errorf("a graph of %d features must have at most %d nodes", g.features,
			min(MaxNodes, maxValues/g.features))
	}
	g.names[name] = int32(n)
	g.list = append(g.list, name)
	g.x = append(g.x, make([]float32, g.features)...)
	g.class, g.split, g.given = append(g.class, -1), append(g.split, graph.None), append(g.given, false)
	return n, nil
}

// Node returns the number of the node of that name, −1 if there is none.
func (g *Graph) Node(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i, ok := g.names[name]; ok {
		return int(i)
	}
	return -1
}

// Nodes returns how many nodes there are.
func (g *Graph) Nodes() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.list)
}

// AddEdge connects two nodes, in both directions. Adding an edge again changes nothing.
func (g *Graph) AddEdge(a, b int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := cmp.Or(hasNode(a, len(g.list)), hasNode(b, len(g.list))); err != nil {
		return err
	}
	if len(g.src) == MaxEdges {
		return fmt.Errorf("a graph must have at most %d edges", MaxEdges)
	}
	g.src, g.dst = append(g.src, int32(a)), append(g.dst, int32(b))
	return nil
}

// SetFeatures sets a node's features: float32 values, little endian, four bytes each. They must be
// scaled alike at all members.
func (g *Graph) SetFeatures(node int, row []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := hasNode(node, len(g.list)); err != nil {
		return err
	}
	if len(row) != 4*g.features {
		return fmt.Errorf("features of node %d must have %d bytes, four for each of %d (got %d)", node,
			4*g.features, g.features, len(row))
	}
	x := make([]float32, g.features)
	for k := range x {
		x[k] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*k:]))
		if v := float64(x[k]); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("feature %d of node %d must be a finite number (got %v)", k, node, v)
		}
	}
	copy(g.x[node*g.features:], x)
	return nil
}

// SetFeature sets one of a node's features.
func (g *Graph) SetFeature(node, feature int, value float64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := hasNode(node, len(g.list)); err != nil {
		return err
	}
	if feature < 0 || feature >= g.features {
		return fmt.Errorf("a feature must be 0 to %d (got %d)", g.features-1, feature)
	}
	if x := float64(float32(value)); math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("feature %d of node %d must be a finite number (got %v)", feature, node, value)
	}
	g.x[node*g.features+feature] = float32(value)
	return nil
}

// SetLabel sets a node's class in [0, classes), or −1 for none. Unless SetUse is called, six in ten labelled nodes
// train, two validate and two test.
func (g *Graph) SetLabel(node, class int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := hasNode(node, len(g.list)); err != nil {
		return err
	}
	if class < -1 || class >= g.classes {
		return fmt.Errorf("the class of node %d must be −1 to %d (got %d)", node, g.classes-1, class)
	}
	g.class[node] = int32(class)
	return nil
}

// SetUse sets what a node's label is used for: train, val, test or none.
func (g *Graph) SetUse(node int, use string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := hasNode(node, len(g.list)); err != nil {
		return err
	}
	at := slices.Index([]string{"none", "train", "val", "test"}, use)
	if at < 0 {
		return fmt.Errorf("the use of node %d must be train, val, test or none (got %q)", node, use)
	}
	g.split[node], g.given[node] = graph.Split(at), true
	return nil
}

// hasNode returns an error unless there is a node of that number among n.
func hasNode(node, n int) error {
	if node < 0 || node >= n {
		return fmt.Errorf("a node must be 0 to %d (got %d)", n-1, node)
	}
	return nil
}

// useKey is the seed that deals labelled nodes to training, validation and test. All devices have the same, so a graph
// that is built again is dealt alike.
const useKey = 17

// snapshot returns a copy of the graph as the trainers take it. For a single node the device's ID decides, since
// otherwise all devices would use theirs for the same purpose.
func (g *Graph) snapshot(device string) (*graph.Graph, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.list)
	if n == 0 {
		return nil, fmt.Errorf("the graph must have nodes")
	}
	adj, err := graph.FromEdges(n, g.src, g.dst, nil, graph.Build{})
	if err != nil {
		return nil, err
	}
	out := &graph.Graph{Name: "phone", Adj: adj, X: graph.Features{Dense: mat.View(n, g.features, slices.Clone(g.x))},
		Labels: graph.Labels{Classes: g.classes, Class: slices.Clone(g.class)}, Split: slices.Clone(g.split),
		IDs: slices.Clone(g.list)}
	key := rng.New(useKey)
	if n == 1 {
		key = key.FoldString(device)
	}
	for i := range out.Split {
		if g.given[i] {
			continue
		}
		switch of := key.Uint64(uint64(i)) % 10; {
		case g.class[i] < 0:
			out.Split[i] = graph.None
		case of < 6:
			out.Split[i] = graph.Train
		case of < 8:
			out.Split[i] = graph.Val
		default:
			out.Split[i] = graph.Test
		}
	}
	return out, out.Valid()
}
