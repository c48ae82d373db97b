// Package predict predicts single nodes of a graph that changes. A Predictor keeps the rows of nodes after each layer
// of a model, but no predictions: they are computed on request from the rows of the node's neighbours. Added nodes and
// edges and changed features invalidate the rows that depend on them, and a row is computed again when a prediction
// needs it. Each prediction equals the prediction over the whole graph (heddle.Predict) to the bit.
//
// The package opens no connection, and a program that imports it links no network code.
package predict

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// Prediction is what a model predicts for a node.
type Prediction struct {
	Logits        []float32 // [C]; for regression the numbers, in the units of the data
	Probabilities []float64 // [C] calibrated by the model's card; nil for numbers
	Classes       []int     // the class, or all classes if a node may have several; nil for numbers
}

// A Predictor applies one model to the nodes of one graph. Its methods may be called at the same time.
type Predictor struct {
	// Readers share the lock while every row that they need is valid; a call that computes rows or changes the graph
	// locks it exclusively.
	lock sync.RWMutex
	of   *rows
	card modelfile.Card
	// A call has scratch memory that two goroutines must not share, so each prediction borrows one.
	calls sync.Pool // of *call
	took  time.Duration
	bytes int64
}

// Load returns a Predictor of the model in a file for the nodes of g.
func Load(path string, g *graph.Graph) (*Predictor, error) {
	m, card, err := modelfile.Read(path)
	if err != nil {
		return nil, err
	}
	p, err := New(m, card, g)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// New returns a Predictor of m for the nodes of g; card is the rest of the model's file. It checks that model and data
// fit and computes the rows of all nodes. Neither m nor g may change afterwards; the Predictor does not change them.
func New(m *nn.Model, card modelfile.Card, g *graph.Graph) (*Predictor, error) {
	began := time.Now()
	if g == nil {
		return nil, errors.New("there must be a graph (got nil)")
	}
	// A shallow copy: its split is set, and the caller's graph does not change.
	whole := *g
	if whole.Split == nil { // a graph that was not used for training
		whole.Split = make([]graph.Split, g.N())
	}
	if err := fits(m, card, &whole); err != nil {
		return nil, err
	}
	// Nodes without features are identified by number, as in training. The owners of the nodes keep the rows that
	// encoder embedding learns for the numbers. They are not in the file, so NoRows refuses such a model.
	g = whole.Numbered()
	if err := infer.NoRows(m, g.X); err != nil {
		return nil, err
	}
	s, labelled, err := infer.Nodes(m, g)
	if err != nil {
		return nil, fmt.Errorf("the model does not fit %s: %w", g.Name, err)
	}
	p := &Predictor{of: newRows(m, s, labelled > 0), card: card}
	p.calls.New = func() any { return &call{rows: p.of} }
	if err := p.of.build(); err != nil {
		return nil, err
	}
	p.took, p.bytes = time.Since(began), p.of.size()
	return p, nil
}

// fits returns why there is no Predictor of m for g. It refuses models whose predictions, or the rounding of whose
// sums, depend on all nodes at once. Computed from a few neighbours they would differ from the whole graph's, but the
// package promises the same bits.
func fits(m *nn.Model, card modelfile.Card, g *graph.Graph) error {
	if err := m.Whole(); err != nil {
		return err
	}
	refuse := func(what, instead string) error {
		return fmt.Errorf("a predictor cannot serve %s: %s", what, instead)
	}
	const whole = "apply it to the whole graph (heddle predict)"
	switch {
	case m.Decoder != nil:
		return refuse("a model of links", "heddle recommend finds links")
	case m.Spec.CorrectSmooth != nil:
		return refuse("correct_smooth: the errors at all training nodes move every prediction", whole)
	case m.Spec.Closed != nil && m.Spec.Closed.Adjacent > 0:
		return refuse("class means of nodes without features, which know a fixed set of nodes", whole)
	case m.Spec.Encoder.Kind == "sign" && g.X.Sparse != nil:
		return refuse("sign on sparse features, whose sums are sparse or dense by what all nodes have", whole)
	}
	if err := modelfile.SameColumns(m.Spec, card.Encoding, g.Encoding); err != nil {
		return err
	}
	return g.Valid()
}

// Nodes returns the number of nodes.
func (p *Predictor) Nodes() int {
	p.lock.RLock()
	defer p.lock.RUnlock()
	return p.of.nodes()
}

// Reach returns the greatest distance, in hops, of a node whose features affect a prediction.
func (p *Predictor) Reach() int { return p.of.last.reach }

// Built returns how long New took, and the bytes of the rows that the Predictor keeps, without the graph.
func (p *Predictor) Built() (time.Duration, int64) { return p.took, p.bytes }

// Predict returns the predictions for the given nodes, in their order. After a change it first computes the rows that
// it needs and that the change invalidated.
func (p *Predictor) Predict(nodes ...int) ([]Prediction, error) {
	// First without writing, so that calls with valid rows run at the same time. The rows may change between the two
	// locks: the second try reads everything again.
	if all, err := p.kept(nodes); !errors.Is(err, errInvalid) {
		return all, err
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.read(nodes, true)
}

// kept is Predict if all rows that it needs are valid, else errInvalid.
func (p *Predictor) kept(nodes []int) ([]Prediction, error) {
	p.lock.RLock()
	defer p.lock.RUnlock()
	return p.read(nodes, false)
}

// read returns predictions; it computes invalid rows if write is true.
func (p *Predictor) read(nodes []int, write bool) ([]Prediction, error) {
	c := p.calls.Get().(*call)
	c.write = write
	logits, err := c.logits(nodes)
	p.calls.Put(c) // not after a panic, which may leave marks
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	of := PredictionsOf(p.of.model, logits).By(p.card)
	all := make([]Prediction, len(nodes))
	for k := range all {
		all[k].Logits = of.Logits.Row(k)
		if of.Kind() != graph.Numbers {
			all[k].Probabilities, all[k].Classes = of.Probabilities(k), of.Classes(k)
		}
	}
	return all, nil
}

// Edge is an edge to add. If each edge of the graph has its reverse, the reverse is added, too, unless OneWay is set.
type Edge struct {
	From, To int
	Weight   float32   // (0 = 1)
	Relation string    // for a graph with edge types
	Columns  []float32 // for a graph with edge columns
	OneWay   bool      // node To reads node From; no other node's prediction changes if none reads To
}

// AddNode adds a node with a row of features, without edges and label, and returns its number.
func (p *Predictor) AddNode(features []float32) (node int, err error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.of.addNode(features)
}

// AddEdge adds an edge between two nodes that have none.
func (p *Predictor) AddEdge(e Edge) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.of.addEdge(e)
}

// SetRow replaces a node's features.
func (p *Predictor) SetRow(node int, features []float32) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.of.setRow(node, features)
}

// Update makes all changes of do or, if it returns an error, none. If keep is false, the graph is restored afterwards:
// Change.Predict returns the predictions that the changes would give. Other calls wait meanwhile. do must use only its
// Change: the Predictor's own methods wait for the lock that Update has, for ever. Numbers of removed nodes are given
// to the next new nodes.
func (p *Predictor) Update(keep bool, do func(*Change) error) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	// Not nil even if it stays empty, since nil marks that no Update is running and no change has to be recorded.
	p.of.undo = make([]func(), 0, 64)
	done := false
	defer func() { // also if do panics
		if !done || !keep {
			// Last first: a list may have been replaced twice, and the oldest one must remain.
			for k := len(p.of.undo) - 1; k >= 0; k-- {
				p.of.undo[k]()
			}
		}
		p.of.undo = nil
	}()
	err := do(&Change{p})
	done = err == nil
	return err
}

// Change makes the changes of an Update.
type Change struct{ p *Predictor }

// AddNode is Predictor.AddNode.
func (c *Change) AddNode(features []float32) (node int, err error) { return c.p.of.addNode(features) }

// AddEdge is Predictor.AddEdge.
func (c *Change) AddEdge(e Edge) error { return c.p.of.addEdge(e) }

// SetRow is Predictor.SetRow.
func (c *Change) SetRow(node int, features []float32) error { return c.p.of.setRow(node, features) }

// Predict is Predictor.Predict after the changes so far.
func (c *Change) Predict(nodes ...int) ([]Prediction, error) { return c.p.read(nodes, true) }
