// Package shares moves the logits of a model to the shares of the classes. Training nodes that were drawn by class, about as
// many of each, do not tell how frequent the classes are, and a model of them takes all for equally frequent. With
// softmax(logits/T) as probabilities of classes of shares p, those of shares q have logits + T·log(q/p) (Saerens, Latinne and
// Decaestecker, Neural Computation 14, 2002). The shares are those of the validation nodes; where these were drawn by class,
// too, they are the most likely ones by the classes that the model gives to nodes without a label (the same; Lipton, Wang
// and Smola, ICML 2018), of the types that have labels. Validation nodes choose how much of the move is made.
package shares

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train/labels"
)

// mostClasses is up to how many classes logits are moved: validation nodes say which classes are mistaken for which.
const mostClasses = 50

// parts are those of the whole move from which validation nodes choose.
var parts = []float64{0, 0.25, 0.5, 0.75, 1}

// Counts returns how many counts the two sums have by which logits are moved, and how many of the first are wide
// (comm.Contribution); 0: logits of such labels are never moved. fitted says that their temperature is.
func Counts(k target.Kind, metric eval.Metric, classes int, fitted bool) (first, second, wide int) {
	if k != target.Single || metric != "accuracy" || classes < 2 || classes > mostClasses {
		return 0, 0, 0
	}
	if fitted {
		_, wide = eval.Likelihoods(k, classes)
	}
	return wide + classes*(classes+1), len(parts) * classes, wide
}

// DrawnByClass reports whether training nodes were drawn by class, and nodes validate that can choose a move.
func DrawnByClass(c labels.Counts) bool {
	return c.Validating() > 0 && even(c.Classes)
}

// even reports whether nodes were drawn by class, given how many each class has: each has some, and their
// numbers differ at most a quarter as much as those of equally frequent classes do where nodes are drawn at random,
// whose Pearson's statistic is classes − 1 on average. So it is where up to a quarter of the labels are missing, or
// some sites have few nodes of a class. In whole numbers, so that every peer computes the same.
func even(nodes []float64) bool {
	all, squares, classes := 0.0, 0.0, float64(len(nodes))
	for _, n := range nodes {
		all += n
		squares += n * n
	}
	return slices.Min(nodes) > 0 && 4*(classes*squares-all*all) <= all*(classes-1)
}

// Mover is one peer's part in finding a move.
type Mover struct {
	Reducer   comm.Reducer
	ID        func(kind string) comm.ReduceID
	Shard     *shard.Shard // with the split to train by
	Labels    labels.Counts
	Logits    mat.Dense // of own nodes, [Owned × C]
	Inductive bool      // held-out nodes tell no shares

	// Temperature divides the logits for probabilities; 0: it is fitted on validation nodes. Of the parts of the move the least that
	// validates best is made. Where it is fitted and validation nodes were drawn by class, it is the largest within half a
	// standard error of that: they are few of a frequent class, and cannot tell them apart.
	Temperature float64
}

// Move is what is added to logits.
type Move struct {
	By   []float32 // of each class; nil: nothing
	Text string    // what there is to say of it
}

// Add adds the move to the rows of logits.
func (m Move) Add(logits mat.Dense) {
	if m.By == nil {
		return
	}
	for i := range logits.Rows {
		kernels.Add(m.By, logits.Row(i))
	}
}

// Find returns the move, the same at every peer.
func (m *Mover) Find(ctx context.Context) (Move, error) {
	confusion, given, t, err := m.predicted(ctx)
	if err != nil {
		return Move{}, err
	}
	classes := m.Labels.Classes
	validating := make([]float64, len(classes)) // nodes of each class
	all := 0.0
	for k, row := range confusion {
		for _, n := range row {
			validating[k] += n
			all += n
		}
	}
	shares, weight := slices.Clone(validating), slices.Repeat([]float64{1}, len(classes))
	drawn := even(validating) // by class
	if drawn {
		shares = shifted(confusion, given)
		for k, q := range shares {
			weight[k] = q / validating[k]
		}
	} else {
		for k, n := range validating {
			shares[k] = (n + 1) / (all + float64(len(classes)))
		}
	}
	by := make([]float64, len(classes))
	for k, q := range shares {
		by[k] = t * math.Log(q*m.Labels.Labelled/classes[k])
	}
	right, err := m.right(ctx, by, confusion)
	if err != nil {
		return Move{}, err
	}
	best := choose(right, weight, validating, drawn && m.Temperature == 0)
	if best == 0 {
		return Move{}, nil
	}
	return Move{By: closed.Move(by, parts[best]), Text: fmt.Sprintf(
		"the classes have %s training nodes; their shares of all nodes seem to be %.1f to %.1f %%, and %g %% of that are in the logits",
		fromTo(classes), 100*slices.Min(shares), 100*slices.Max(shares), 100*parts[best])}, nil
}

// fromTo writes the least and the largest of nodes.
func fromTo(nodes []float64) string {
	least, most := slices.Min(nodes), slices.Max(nodes)
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%g to %g", least, most)
}

// choose returns which part of the move is made, given how many validation nodes of each class are right after each, what
// a node of each class counts, and how many validate: the first of the best, or the last within half a standard error of it.
func choose(right [][]float64, weight, validating []float64, last bool) (part int) {
	sums, whole, squares := make([]float64, len(right)), 0.0, 0.0
	for k, w := range weight {
		for i := range right {
			sums[i] += float64(w * right[i][k])
		}
		whole += float64(w * validating[k])
		squares += float64(w * w * validating[k])
	}
	most := slices.Max(sums)
	least := most * (1 - 1e-9)
	if !last {
		return slices.IndexFunc(sums, func(sum float64) bool { return sum >= least })
	}
	hit := most / whole
	least -= math.Sqrt(hit*(1-hit)*squares) / 2
	for i, sum := range sums {
		if sum >= least {
			part = i
		}
	}
	return part
}

// predicted sums which classes the model gives: to validation nodes, by their class, and to nodes without a label. t is the
// temperature of the logits.
func (m *Mover) predicted(ctx context.Context) (confusion [][]float64, given []float64, t float64, err error) {
	classes, s := len(m.Labels.Classes), m.Shard
	size, _, wide := Counts(target.Single, "accuracy", classes, m.Temperature == 0)
	c := &comm.Contribution{ID: m.ID("predicted classes"), Counts: make([]int64, size), CountBits: comm.CountBits(s.Nodes),
		Wide: func(i int) bool { return i < wide }}
	counts, labelled := c.Counts[wide:], labelledTypes(s)
	for i, split := range s.Split {
		class := m.Logits.Row(i)
		switch k := s.Labels.Class[i]; {
		case split == graph.Val && k >= 0:
			counts[int(k)*classes+eval.ArgMax(class)]++
		case split == graph.Val, split == graph.Train && k >= 0, split == graph.Test && m.Inductive:
		case labelled != nil && !labelled[s.Types.Of[i]]: // a label would mean nothing there
		default:
			counts[classes*classes+eval.ArgMax(class)]++
		}
	}
	val := s.NodesIn(graph.Val)
	if wide > 0 {
		eval.WriteLikelihoods(c.Counts, m.Logits.Select(val), s.Labels.Select(val))
	}
	own, rest := slices.Clone(counts), int64(m.Labels.Validating())-int64(s.Labels.Select(val).Labelled())
	c.CountLimit = func(i int) comm.Limit {
		switch {
		case i < wide:
			return comm.Limit{What: "a likelihood of validation nodes", Least: 0, Most: 1 << 62}
		case i < wide+classes*classes:
			return comm.Limit{What: "a count of validation nodes", Least: 0, Most: float64(rest)}
		}
		return comm.Limit{What: "a count of nodes without a label", Least: 0, Most: float64(s.Nodes - int64(s.Owned))}
	}
	if _, err := m.Reducer.Reduce(ctx, c); err != nil {
		return nil, nil, 0, err
	}
	n := int64(0)
	for i, all := range counts[:classes*classes] {
		n += all - own[i]
	}
	if n != rest {
		return nil, nil, 0, comm.Refused("the labelled validation nodes of the other peers must be %d, as was counted before (got %d)", rest, n)
	}
	for k := range classes + 1 {
		row := make([]float64, classes)
		for j, n := range counts[k*classes : (k+1)*classes] {
			row[j] = float64(n)
		}
		confusion = append(confusion, row)
	}
	if t = m.Temperature; t == 0 {
		t = eval.FitTemperatures(c.Counts[:wide], target.Single, classes).Shared
	}
	return confusion[:classes], confusion[classes], t, nil
}

// labelledTypes returns which types of nodes have a split at this peer; nil: nodes have no types.
func labelledTypes(s *shard.Shard) []bool {
	if s.Types.Count() == 0 {
		return nil
	}
	types := make([]bool, s.Types.Count())
	for i, split := range s.Split {
		types[s.Types.Of[i]] = types[s.Types.Of[i]] || split != graph.None
	}
	return types
}

// right sums how many validation nodes of each class are right after each of the moves by a part of by.
func (m *Mover) right(ctx context.Context, by []float64, confusion [][]float64) (all [][]float64, err error) {
	classes, s := len(by), m.Shard
	c := &comm.Contribution{ID: m.ID("moved logits"), Counts: make([]int64, len(parts)*classes), CountBits: comm.CountBits(s.Nodes)}
	own, row := make([]float64, classes), make([]float32, classes)
	for _, i := range s.NodesIn(graph.Val) {
		k := s.Labels.Class[i]
		if k < 0 {
			continue
		}
		own[k]++
		for p, part := range parts {
			copy(row, m.Logits.Row(int(i)))
			kernels.Add(closed.Move(by, part), row)
			if eval.ArgMax(row) == int(k) {
				c.Counts[p*classes+int(k)]++
			}
		}
	}
	c.CountLimit = func(i int) comm.Limit {
		k, n := i%classes, 0.0
		for _, v := range confusion[k] {
			n += v
		}
		return comm.Limit{What: "a count of validation nodes", Least: 0, Most: n - own[k]}
	}
	if _, err := m.Reducer.Reduce(ctx, c); err != nil {
		return nil, err
	}
	for p := range parts {
		counts := make([]float64, classes)
		for k, n := range c.Counts[p*classes : (p+1)*classes] {
			counts[k] = float64(n)
			if p == 0 && counts[k] != confusion[k][k] {
				return nil, comm.Refused("the right validation nodes of class %d must be %g, as was counted before (got %d)", k, confusion[k][k], n)
			}
		}
		all = append(all, counts)
	}
	return all, nil
}
