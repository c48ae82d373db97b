package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// mostClasses is up to how many classes logits are moved: validation nodes show which classes are mistaken for which.
const mostClasses = 50

var (
	// shareParts are of the move to the shares of all sites from which validation nodes choose.
	shareParts = []float64{0, 0.25, 0.5, 0.75, 1}
	// shareScales are of the moves to the shares of each site (eval.Shares).
	shareScales = []float64{0, 0.125, 0.25, 0.5, 1}
)

// ShareCounts returns the number of counts in each sum that corrects logits, and how many of the first sum are wide
// (comm.Contribution); all are 0 if logits of such labels are never moved. The first two sums are over all sites, the
// third is for several sites with their own shares. fitted reports whether the temperature of logits is fitted.
func ShareCounts(k graph.TargetKind, metric eval.Metric, classes int, fitted bool) (first, second, sites, wide int) {
	if k != graph.Single || metric != "accuracy" && metric != eval.Auto || classes < 2 || classes > mostClasses {
		return 0, 0, 0, 0
	}
	if fitted {
		_, wide = eval.Likelihoods(k, classes)
	}
	return wide + classes*(classes+1), len(shareParts) * classes, 2 * len(shareScales), wide
}

// evenly reports whether nodes were sampled by class, given how many each class has. They were if each class has some,
// and their numbers vary at most a quarter as much as in a random sample of equally frequent classes, whose Pearson's
// statistic is classes − 1 on average. This allows up to a quarter of the labels to be missing, or some sites to have
// few nodes of a class. It computes in whole numbers, so that every peer gets the same.
func evenly(nodes []float64) bool {
	all, squares, classes := 0.0, 0.0, float64(len(nodes))
	for _, n := range nodes {
		all += n
		squares += n * n
	}
	return slices.Min(nodes) > 0 && 4*(classes*squares-all*all) <= all*(classes-1)
}

// ShareMover is one peer's part in correcting the logits of a model for the shares of the classes. Training nodes that
// were sampled by class, about equally many of each, do not reveal how frequent the classes are, and a model of them
// takes all classes for equally frequent. If softmax(logits/T) are the probabilities at shares p, those at shares q
// have logits + T·log(q/p) (Saerens, Latinne and Decaestecker, Neural Computation 14, 2002). q are the shares of the
// validation nodes; if these were sampled by class too, q are the most likely shares by the model's classes of nodes
// without a label (the same; Lipton, Wang and Smola, ICML 2018), of the types that have labels. If sites differ, each
// moves its logits on to its own shares (eval.Shares). Validation nodes choose how much of either move is made.
type ShareMover struct {
	Reducer   comm.Reducer
	ID        func(kind string) comm.ReduceID
	Shard     *shard.Shard // with the split to train by
	Labels    LabelCounts
	Logits    mat.Dense // of own nodes, [Owned × C]; Find changes them
	Inductive bool      // held-out nodes reveal no shares

	// Temperature divides the logits for probabilities (0 = fitted on validation nodes).
	Temperature float64

	val, class []int32 // own validation nodes, and their classes
}

// Correction is what is done to the logits of a model.
type Correction struct {
	Bias  []float32    // is added to them, by class (nil = nothing)
	Sites *eval.Shares // what each site does after that (nil = nothing)
	Notes []string     // a text about it for the log
}

// Find finds the correction, the same at every peer, and makes it.
func (m *ShareMover) Find(ctx context.Context) (c Correction, err error) {
	drawn, t := evenly(m.Labels.Classes), m.Temperature
	if m.Labels.Validating() == 0 || !drawn && m.Shard.Parts == 1 {
		return c, nil
	}
	m.val = m.Shard.NodesIn(graph.Val)
	m.class = m.Shard.Labels.Select(m.val).Class
	if drawn || t == 0 {
		confusion, given, fitted, err := m.predicted(ctx)
		if t = fitted; err == nil && drawn {
			err = m.together(ctx, confusion, given, t, &c)
		}
		if err != nil {
			return c, err
		}
	}
	if m.Shard.Parts > 1 {
		err = m.apart(ctx, t, &c)
	}
	return c, err
}

// together finds the move to the shares of all sites, the same for all nodes.
func (m *ShareMover) together(ctx context.Context, confusion [][]float64, given []float64, t float64,
	c *Correction) error {
	classes := m.Labels.Classes
	validating := make([]float64, len(classes)) // nodes of each class
	for k, row := range confusion {
		for _, n := range row {
			validating[k] += n
		}
	}
	drawn, weight, by := evenly(validating), make([]float64, len(classes)), make([]float64, len(classes))
	shares := shifted(confusion, given)
	for k, n := range validating {
		if weight[k] = shares[k] / n; !drawn { // by class
			weight[k], shares[k] = 1, (n+1)/(m.Labels.Validating()+float64(len(classes)))
		}
		by[k] = t * math.Log(shares[k]*m.Labels.Labelled/classes[k])
	}
	right, err := m.right(ctx, "moved logits", shareParts, m.class, validating, func(part float64, logits mat.Dense) {
		addShares(eval.Move(by, part), logits)
	})
	if err != nil {
		return err
	}
	for k, n := range right[0] {
		if n != confusion[k][k] {
			return comm.Refused("the right validation nodes of class %d must be %g, as was counted before (got %g)",
				k, confusion[k][k], n)
		}
	}
	if best := choosePart(right, weight, validating, drawn); best > 0 {
		c.Bias = eval.Move(by, shareParts[best])
		addShares(c.Bias, m.Logits)
		c.Notes = append(c.Notes, fmt.Sprintf(
			"the classes have %g to %g training nodes; their shares of all nodes seem to be %.1f to %.1f %%, and %g "+
				"%% of that are in the logits",
			slices.Min(classes), slices.Max(classes), 100*slices.Min(shares), 100*slices.Max(shares),
			100*shareParts[best]))
	}
	return nil
}

// apart finds the move to the shares of each site, one that is better than none by two standard errors.
func (m *ShareMover) apart(ctx context.Context, t float64, c *Correction) error {
	before := make([]int32, len(m.class)) // 1 right without, 0 wrong, −1 no label
	for i, k := range m.class {
		if before[i] = min(k, 0); eval.ArgMax(m.Logits.Row(int(m.val[i]))) == int(k) {
			before[i] = 1
		}
	}
	most := []float64{m.Labels.Validating(), m.Labels.Validating()}
	move := func(scale float64, logits mat.Dense) {
		(&eval.Shares{Scale: scale, Temperature: t}).Apply(logits, m.class)
	}
	right, err := m.right(ctx, "moves to the shares of sites", shareScales, before, most, move)
	more := 0.0
	for p := range right {
		won, lost := right[p][0], right[0][1]-right[p][1]
		if won-lost > more && won-lost > 2*math.Sqrt(won+lost) {
			more, c.Sites = won-lost, &eval.Shares{Scale: shareScales[p], Temperature: t}
		}
	}
	if c.Sites != nil {
		c.Sites.Apply(m.Logits, graph.ClassIn(graph.Val, m.Shard.Labels, m.Shard.Split))
		c.Notes = append(c.Notes, fmt.Sprintf("sites differ in their shares of the classes: "+
			"logits move to them by %g times their logarithms, and %g more validation nodes are right",
			c.Sites.Scale, more))
	}
	return err
}

// addShares adds a move to the rows of logits.
func addShares(move []float32, logits mat.Dense) {
	for i := range logits.Rows {
		kernels.Add(move, logits.Row(i))
	}
}

// choosePart returns which part of the move is made, given how many validation nodes of each class are right after
// each, the weight of a node of each class, and how many validate. It returns the first of the best or, if last, the
// last within half a standard error of the best: validation nodes that were sampled by class include few of a frequent
// class, and cannot distinguish the parts.
func choosePart(right [][]float64, weight, validating []float64, last bool) (part int) {
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

// predicted sums which classes the model gives: to validation nodes, by their class, and to nodes without a label. t
// is the temperature of the logits.
func (m *ShareMover) predicted(ctx context.Context) (confusion [][]float64, given []float64, t float64, err error) {
	classes, s := len(m.Labels.Classes), m.Shard
	size, _, _, wide := ShareCounts(graph.Single, "accuracy", classes, m.Temperature == 0)
	c := &comm.Contribution{ID: m.ID("predicted classes"), Counts: make([]int64, size),
		CountBits: comm.CountBits(s.Nodes), Wide: func(i int) bool { return i < wide }}
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
	if wide > 0 {
		eval.WriteLikelihoods(c.Counts, m.Logits.Select(m.val), s.Labels.Select(m.val))
	}
	own, rest := slices.Clone(counts), int64(m.Labels.Validating())-int64(s.Labels.Select(m.val).Labelled())
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
		return nil, nil, 0, comm.Refused("the labelled validation nodes of the other peers must be %d, "+
			"as was counted before (got %d)", rest, n)
	}
	for row := range slices.Chunk(counts, classes) {
		confusion = append(confusion, reals(row))
	}
	if t = m.Temperature; t == 0 {
		t = eval.FitTemperatures(c.Counts[:wide], graph.Single, classes).Shared
	}
	return confusion[:classes], confusion[classes], t, nil
}

// labelledTypes returns which types of nodes have a split at this peer, nil if nodes have no types.
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

// right sums how many validation nodes of each group are right after each of the moves, given the group of each own
// one (−1: it has no label). most is how many nodes of a group validate.
func (m *ShareMover) right(ctx context.Context, kind string, moves []float64, group []int32, most []float64,
	move func(by float64, logits mat.Dense)) (all [][]float64, err error) {
	groups, others := len(most), slices.Clone(most)
	c := &comm.Contribution{ID: m.ID(kind), Counts: make([]int64, len(moves)*groups),
		CountBits: comm.CountBits(m.Shard.Nodes)}
	for p, by := range moves {
		logits := m.Logits.Select(m.val)
		move(by, logits)
		for i, g := range group {
			if g < 0 {
				continue
			}
			if p == 0 {
				others[g]--
			}
			if eval.ArgMax(logits.Row(i)) == int(m.class[i]) {
				c.Counts[p*groups+int(g)]++
			}
		}
	}
	c.CountLimit = func(i int) comm.Limit {
		return comm.Limit{What: "a count of validation nodes", Least: 0, Most: others[i%groups]}
	}
	if _, err := m.Reducer.Reduce(ctx, c); err != nil {
		return nil, err
	}
	for row := range slices.Chunk(c.Counts, groups) {
		all = append(all, reals(row))
	}
	return all, nil
}

// reals returns counts as float64.
func reals(counts []int64) []float64 {
	to := make([]float64, len(counts))
	for k, n := range counts {
		to[k] = float64(n)
	}
	return to
}

const (
	// shareSteps is how many steps of estimation are made, more than it takes.
	shareSteps = 200
	// leastPrior is the smallest fraction of the nodes without a label that counts as spread over all classes alike.
	leastPrior = 0.1
	// priorNodes over the number of validation nodes of a class is this fraction for a model without mistakes.
	priorNodes = 2
	// leastTold is how well a model is assumed to distinguish the classes at least.
	leastTold = 0.01
)

// sharePrior returns how many nodes of all classes alike are added to the unlabelled ones, as a fraction of those. The
// shares are estimated from which classes the model confuses, which few validation nodes show: the fewer they are, and
// the worse the model distinguishes the classes, the larger is the prior. How well it does is 0 for a guess and 1
// without mistakes.
func sharePrior(confusion [][]float64) float64 {
	classes := float64(len(confusion))
	right, validating := 0.0, 0.0 // parts of a class, and nodes of one, means over the classes
	for k, row := range confusion {
		n := 0.0
		for _, v := range row {
			n += v
		}
		right += row[k] / max(n, 1) / classes
		validating += n / classes
	}
	told := (right - 1/classes) / (1 - 1/classes)
	return max(leastPrior, priorNodes/(max(validating, 1)*max(told, leastTold)))
}

// shifted returns the most likely shares of the classes of nodes, given how often the model gave each class to them,
// and confusion[k], how often it gave each class to nodes of class k: by expectation and maximisation, from equal
// shares.
func shifted(confusion [][]float64, given []float64) []float64 {
	classes, nodes := len(given), 0.0
	chance := make([][]float64, classes) // of each class given to a node of class k
	for k, row := range confusion {
		n := 0.5
		for _, v := range row {
			n += v
		}
		for _, v := range row {
			chance[k] = append(chance[k], (v+0.5/float64(classes))/n)
		}
		nodes += given[k]
	}
	alike := sharePrior(confusion)
	shares := slices.Repeat([]float64{1 / float64(classes)}, classes)
	for range shareSteps {
		next := slices.Repeat([]float64{alike * nodes / float64(classes)}, classes)
		for j, n := range given {
			sum := 0.0
			for k, q := range shares {
				sum += float64(q * chance[k][j])
			}
			for k, q := range shares {
				next[k] += float64(n * q * chance[k][j] / sum)
			}
		}
		for k := range next {
			next[k] /= (1 + alike) * max(nodes, 1)
		}
		if nodes > 0 {
			shares = next
		}
	}
	return shares
}

// AddShares adds the sums that correct logits for the shares of the classes; ShareCounts returns their counts.
func (l *Messages) AddShares(first, second, sites, likelihoods int64) {
	l.Count("predicted classes", "classes that the model gives to validation nodes and to nodes without a label", 1,
		first, likelihoods)
	l.Count("moved logits", "right validation nodes of each class, after each move of the logits", 1, second, 0)
	l.Count("moves to the shares of sites", "right validation nodes after each move to the shares of each site", 1,
		sites, 0)
}
