package closedform

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/privacy/dp"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
	"github.com/heddle-gnn/heddle/train/linear"
)

// With Labels, labels of nodes enter what other peers see, and the model, by releases alone (dp.Labels): sums of features and
// of columns over the training nodes of each class, and counts of right predictions. All else is computed from these and from
// what has no label in it: features, edges, and which nodes have a label. So a node's own row keeps its own part of the means:
// taking it out at home would need its label.

// The splits whose labels are released.
const (
	training   = "training"
	validation = "validation"
	test       = "test"
)

// What the releases of a split are of, and what share of it some have.
const (
	ofFeatures = "features"
	ofModel    = "finished model"

	featuresShare = 0.5
	manyShare     = 0.75 // of features where residuals are the target: of many labels, sums of few columns bear more noise
	modelShare    = 0.2
)

func ofRound(r int) string { return fmt.Sprintf("round %d", r+1) }

// labelReleases returns how often labels of each split are released: those of training nodes with the features, and with the
// columns of the last round or, where residuals are the target, of each; those of others with the finished model, and those
// of validation nodes once a round before.
func (c Config) labelReleases(residual bool) []dp.Release {
	rounds, features, regressions := c.Layout(residual).Rounds, featuresShare, 1
	if residual {
		features, regressions = manyShare, rounds
	}
	all := []dp.Release{{Split: training, Name: ofFeatures, Share: features}, {Split: validation, Name: ofModel, Share: modelShare},
		{Split: test, Name: ofModel, Share: 1}}
	for r := range rounds {
		if residual || r == rounds-1 {
			all = append(all, dp.Release{Split: training, Name: ofRound(r), Share: (1 - features) / float64(regressions)})
		}
		all = append(all, dp.Release{Split: validation, Name: ofRound(r), Share: (1 - modelShare) / float64(rounds)})
	}
	return all
}

// privateLabels returns what is wrong with the privacy of labels.
func (c Config) privateLabels() (errs []error) {
	if c.LabelEpsilon == 0 {
		return nil
	}
	if l, err := c.Labels(max(c.Colluding, 0)+1, true, [32]byte{}); err != nil {
		errs = append(errs, err)
	} else {
		for _, residual := range []bool{false, true} {
			errs = append(errs, l.Plan(c.labelReleases(residual)))
		}
	}
	fault := faults(&errs)
	fault(c.Task != "single", "label_epsilon must be 0 unless each node has one class (got %g)", c.LabelEpsilon)
	fault(c.Epsilon > 0, "label_epsilon must be 0 with epsilon (got %g): a run keeps labels or edges private", c.LabelEpsilon)
	fault(c.Metric != "accuracy", "metric must be accuracy with label_epsilon (got %s): right predictions are counted with noise", c.Metric)
	fault(c.RowNorm != "l2", "row_norm must be l2 with label_epsilon (got %s): what a row adds to a sum must be bounded", c.RowNorm)
	fault(c.LeaveOut == "true", "leave_one_out must be auto or false with label_epsilon (got true): a row without its own part tells its label")
	fault(c.Random > 0, "random_features must be -1 or 0 with label_epsilon (got %d)", c.Random)
	fault(c.Balanced || c.ClassWeights != nil, "balanced must be false, and no class_weights given, with label_epsilon: weights tell labels")
	fault(c.ClipMeans, "clip_means must be false with label_epsilon: every site would see the sums of each")
	return errs
}

// Labels returns the mechanism that keeps labels private at one of so many peers in one run, whose sums are secure or not;
// nil: they are not private. secret must come from crypto/rand.
func (c Config) Labels(peers int, secure bool, secret [32]byte) (*dp.Labels, error) {
	if c.LabelEpsilon == 0 {
		return nil, nil
	}
	colluding := max(peers-1, 0)
	if secure && c.Colluding > 0 {
		if c.Colluding >= peers {
			return nil, fmt.Errorf("colluding must be below the %d peers (got %d)", peers, c.Colluding)
		}
		colluding = c.Colluding
	} else if secure {
		colluding = min(max(1, (peers-1)/2), peers-1)
	}
	return dp.NewLabels(dp.Guarantee{Epsilon: c.LabelEpsilon, Delta: c.Delta}, peers, colluding, secret)
}

// releaseNote is the name under which a store keeps the releases of private labels.
const releaseNote = "labels"

// kept is what it keeps, of one plan and one shard.
type kept struct {
	Config, Partition [32]byte
	Releases          map[string][]int64
}

// saveReleases keeps the releases before one of them leaves. A checkpoint would do so at the beginning of a round alone.
func (t *Trainer) saveReleases() error {
	if t.Checkpoints == nil {
		return nil
	}
	b, err := json.Marshal(kept{t.config.Fingerprint(), t.shard.Fingerprint, t.Labels.Releases()})
	if err != nil {
		return err
	}
	return t.Checkpoints.KeepNote(releaseNote, b)
}

// restoreReleases takes up releases of an earlier process.
func (t *Trainer) restoreReleases() error {
	if t.Labels == nil || t.Checkpoints == nil {
		return nil
	}
	b, err := t.Checkpoints.Note(releaseNote)
	if b == nil || err != nil {
		return err
	}
	var k kept
	if err := json.Unmarshal(b, &k); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(t.Checkpoints.Dir, releaseNote), err)
	}
	if k.Config == t.config.Fingerprint() && k.Partition == t.shard.Fingerprint {
		for key, sums := range k.Releases {
			t.Labels.Restore(key, sums)
		}
	}
	return nil
}

// countLabelled counts the labelled nodes of all peers. Their classes are not known yet: all have as many.
func (t *Trainer) countLabelled(ctx context.Context) (labels.Counts, error) {
	own := labels.Numbers(t.whole, labels.Draw{Seed: t.config.Seed, LastRound: true})
	c := &comm.Contribution{ID: t.id("labelled nodes", 0, 0), Counts: own[len(own)-3:], CountBits: comm.CountBits(t.shard.Nodes),
		CountLimit: atMost("the number of labelled nodes", t.unknown().Rows)}
	if _, err := t.reducer.Reduce(ctx, c); err != nil {
		return labels.Counts{}, err
	}
	if all := c.Counts[0] + c.Counts[1] + c.Counts[2]; all > t.shard.Nodes {
		return labels.Counts{}, comm.Refused("the labelled nodes must be at most all %d nodes (got %d)", t.shard.Nodes, all)
	}
	sums := make([]float64, len(own))
	for k := range t.config.Classes {
		sums[k] = float64(c.Counts[0]) / float64(t.config.Classes)
	}
	for k, n := range c.Counts {
		sums[len(sums)-3+k] = float64(n)
	}
	return labels.Read(sums, t.whole.Labels.Kind(), labels.Draw{Seed: t.config.Seed, LastRound: true}), nil
}

// countWeight is the number behind each row of features whose sums count the nodes of each class: the larger, the less noise
// the counts have, and the more the sums of features.
const countWeight = 0.3

// sumLabels sums the features over the training nodes of each class, and counts these.
func (t *Trainer) sumLabels(ctx context.Context) error {
	classes, features := t.config.Classes, t.x.Cols()
	if err := t.Labels.Plan(t.config.labelReleases(t.residual)); err != nil {
		return err
	}
	longest := math.Sqrt(1 + countWeight*countWeight)
	release := t.release(training, ofFeatures)
	if err := t.enoughLabels(t.Labels.Deviation() * t.Labels.Step(release, longest)); err != nil {
		return err
	}
	own, err := t.Labels.Sums(release, t.x.Select(t.train), countWeight, t.trainLabels(), classes, longest)
	if err != nil {
		return err
	}
	if err := t.saveReleases(); err != nil {
		return err
	}
	sums, _, err := t.sumNoised(ctx, t.id("sums of features over each class", 0, 0), release, t.labels.Labelled, own, nil)
	if err != nil {
		return err
	}
	step := t.Labels.Step(release, longest)
	t.totals, t.noise = mat.New(features, classes), t.Labels.Deviation()*step
	for i := range t.totals.Data {
		t.totals.Data[i] = float32(step * float64(sums[i]))
	}
	numbers := t.labels.Sums
	counts := numbers[:classes]
	for c := range counts {
		counts[c] = step / countWeight * float64(sums[features*classes+c])
	}
	shrinkCounts(counts, t.labels.Labelled, t.Labels.Deviation()*step/countWeight)
	t.labels = labels.Read(numbers, t.whole.Labels.Kind(), labels.Draw{Seed: t.config.Seed, LastRound: true})
	return nil
}

// mostNoise is the most noise that a class mean may have, in lengths of a row. What noise costs is in
// docs/measurements/private.md.
const mostNoise = 0.02

// enoughLabels returns an error where labels are too few for noise of that deviation in a sum: before one that has labels in it
// leaves.
func (t *Trainer) enoughLabels(deviation float64) error {
	classes := float64(t.config.Classes)
	noise := deviation * classes / t.labels.Labelled
	if noise <= mostNoise {
		return nil
	}
	return fmt.Errorf("label_epsilon %g needs about %.0f labelled training nodes of %g classes (got %g): the mean of a class would have noise of %.2g of a "+
		"row's length in each number. Noise of half the bound, 0.01, has cost 8 points of accuracy; label more nodes, or take a larger label_epsilon",
		t.config.LabelEpsilon, math.Ceil(deviation*classes/mostNoise), classes, t.labels.Labelled, noise)
}

// shrunkTotals returns t.totals without most of the noise. A class differs from the mean of all nodes in frequent features more
// than in rare ones, in proportion to the sum of their squares, but the noise is the same in all: with κ for the proportion and
// σ for the noise, κs²/(κs² + σ²) of what feature s differs is kept (Wiener's filter). κ is what the sums say of it.
func (t *Trainer) shrunkTotals() mat.Dense {
	y, classes := t.totals.Clone(), t.labels.Classes
	variance, signal, weights := t.noise*t.noise, 0.0, 0.0
	for j := range y.Rows {
		s := float64(t.stats.At(j, 1))
		for c, n := range classes {
			d := float64(y.At(j, c)) - n*float64(t.means.Centre[j])
			signal += s * (d*d - variance)
			weights += s * s
		}
	}
	kappa := max(signal, 0) / max(weights, 1e-30)
	for j := range y.Rows {
		s := float64(t.stats.At(j, 1))
		keep := kappa * s / (kappa*s + variance)
		for c, n := range classes {
			usual := n * float64(t.means.Centre[j])
			y.Set(j, c, float32(usual+keep*(float64(y.At(j, c))-usual)))
		}
	}
	return y
}

// shrinkCounts makes counts, which have noise of that deviation, likely ones that add up to about all: they are drawn towards
// one another where they differ no more than noise does (James and Stein, 1961).
func shrinkCounts(counts []float64, all, deviation float64) {
	mean, square, sum := all/float64(len(counts)), 0.0, 0.0
	for _, n := range counts {
		square += (n - mean) * (n - mean)
	}
	keep := max(0, 1-deviation*deviation*float64(len(counts))/max(square, 1e-9))
	for c, n := range counts {
		counts[c] = max(mean+keep*(n-mean), 0)
		sum += counts[c]
	}
	for c := range counts {
		counts[c] = math.RoundToEven(counts[c] * all / sum)
	}
}

// trainLabels returns the class of each own training node.
func (t *Trainer) trainLabels() []int32 {
	of := make([]int32, len(t.train))
	for i, v := range t.train {
		of[i] = t.shard.Labels.Class[v]
	}
	return of
}

// sumNoised returns the sums over all peers of own, a release over so many nodes, and the Meta of each peer.
func (t *Trainer) sumNoised(ctx context.Context, id comm.ReduceID, of dp.Release, nodes float64, own []int64, meta []byte) ([]int64, [][]byte, error) {
	// Numbers that travel are not negative: each peer adds as much to all.
	above, peers := t.Labels.Most(of, int64(nodes)), int64(t.shard.Parts)
	c := &comm.Contribution{ID: id, Counts: own, CountBits: comm.CountBits(2 * above * peers), Meta: meta,
		CountLimit: atMost("a sum with noise", float64(2*above))}
	for i := range own {
		own[i] += above
	}
	reduced, err := t.reducer.Reduce(ctx, c)
	for i := range own {
		own[i] -= above * peers
	}
	return own, reduced.Meta, err
}

// noisySums is classSums of targets p that have no labels, and of the labels of training nodes, whose sums with noise it
// adds: those are the same in every round.
func (t *Trainer) noisySums(ctx context.Context, r int, p mat.Dense) (sums mat.Dense, counts []int64, without bool, err error) {
	residual := t.model.Closed.Spec.Residual
	if r == 0 && !residual { // there is nothing but labels
		sums, counts = mat.New(t.x.Cols(), p.Cols), make([]int64, p.Cols)
	} else if sums, counts, without, err = t.classSums(ctx, r, p); err != nil {
		return sums, counts, without, err
	}
	labelled := t.shrunk.ColRange(0, p.Cols).Clone()
	t.means.Scale(labelled)
	for j := range sums.Rows {
		kernels.Add(labelled.Row(j), sums.Row(j))
	}
	for c := range counts {
		if n := t.labels.Classes[c]; r > 0 || n >= t.leastClass() { // else no mean in the first round
			counts[c] += int64(n * unit)
		}
	}
	return sums, counts, without, nil
}

// regresses reports whether the columns of round r are summed over the classes, so that a regression can read them.
func (t *Trainer) regresses(r int) bool {
	spec := t.model.Spec.Closed
	return spec.Residual || r == spec.Rounds-1
}

// meansAlone returns the head that takes the columns of round r, one of each class, as they are: a node is of the class whose
// mean it is nearest to.
func (t *Trainer) meansAlone(r int) candidate {
	classes := t.config.Classes
	d := t.normal.Columns()
	columns := span(d-classes, d)
	w := mat.New(classes+1, classes)
	share := 1 / float64(classes)
	for c, j := range columns {
		mean, deviation := t.normal.Moments(j)
		f := math.Sqrt(share*(1-share)) / max(deviation, 1e-6)
		w.Set(c, c, float32(f))
		w.Set(classes, c, float32(-f*mean))
	}
	return candidate{columns: columns, weights: w}
}

// privateCandidates returns the sets of columns and the penalties of which round r validates regressions, or, without one, its
// only candidate.
func (t *Trainer) privateCandidates(r int, sets []candidate) (some []candidate, lambdas []float64, all []candidate) {
	switch {
	case t.residual:
		return sets[len(sets)-1:], noisyLambdas, nil
	case t.regresses(r):
		return sets[:1], noisyLambdas, nil
	}
	return nil, nil, []candidate{t.meansAlone(r)}
}

// release returns a release of the plan.
func (t *Trainer) release(split, name string) dp.Release {
	all := t.config.labelReleases(t.residual)
	return all[slices.IndexFunc(all, func(r dp.Release) bool { return r.Split == split && r.Name == name })]
}

// noisyLambdas are the penalties that are compared by counts with noise.
var noisyLambdas = []float64{0.01, 0.1, 1, 10}

// mostColumn is the length, in deviations a column, to which a row of columns is shortened before it is summed by class.
const mostColumn = 1.25

// withLabels returns what the equations of round r are extended by: gram, the sums of products of its columns with one
// another and those before, and the products with the labels. z are the training rows.
func (t *Trainer) withLabels(ctx context.Context, r, added int, gram []float32, z mat.Dense) ([]float32, error) {
	n, err := t.normal.Extend(gram, added, 0)
	if err != nil {
		return nil, err
	}
	classes, first := t.config.Classes, n.Columns()-added
	cross := mat.New(added, classes)
	if first == 0 { // the constant
		for c, count := range t.labels.Classes {
			cross.Set(0, c, float32(count))
		}
		first = 1
	}
	k := n.Columns() - first
	if !t.regresses(r) {
		return append(gram, cross.Data...), nil
	}
	even, moments := z.ColRange(first, n.Columns()).Clone(), make([][2]float64, k)
	for j := range k {
		mean, deviation := n.Moments(first + j)
		moments[j] = [2]float64{mean, deviation}
		f := 0.0
		if deviation > 1e-7*math.Abs(mean) {
			f = 1 / deviation
		}
		for i := range even.Rows {
			even.Set(i, j, float32((float64(even.At(i, j))-mean)*f))
		}
	}
	longest := mostColumn * math.Sqrt(float64(k))
	release := t.release(training, ofRound(r))
	own, err := t.Labels.Sums(release, graph.Features{Dense: even}, 0, t.trainLabels(), classes, longest)
	if err != nil {
		return nil, err
	}
	if err := t.saveReleases(); err != nil {
		return nil, err
	}
	sums, _, err := t.sumNoised(ctx, t.id("products with the labels", r, 0), release, t.labels.Labelled, own, nil)
	if err != nil {
		return nil, err
	}
	step := t.Labels.Step(release, longest)
	for j := range k {
		mean, deviation := moments[j][0], moments[j][1]
		for c, count := range t.labels.Classes {
			v := deviation*step*float64(sums[j*classes+c]) + float64(mean*count)
			cross.Set(added-k+j, c, float32(v))
		}
	}
	return append(gram, cross.Data...), nil
}

// validateWithNoise is validate by counts with noise.
func (t *Trainer) validateWithNoise(ctx context.Context, r int, all []candidate, columns mat.Dense) (choice, error) {
	rows := t.shard.NodesIn(graph.Val)
	of, right := columns.Select(rows), make([]int64, len(all))
	for k, one := range all {
		counts := eval.Count(t.logits(one, of), t.shard.Labels.Select(rows), nil)
		right[k] = counts.Vector()[1]
	}
	release := t.release(validation, ofRound(r))
	own, err := t.Labels.Right(release, right)
	if err != nil {
		return choice{}, err
	}
	if err := t.saveReleases(); err != nil {
		return choice{}, err
	}
	n := t.labels.Validating()
	sums, digests, err := t.sumNoised(ctx, t.id("validation", r, 0), release, n, own, digestOf(all))
	if err != nil {
		return choice{}, err
	}
	if err := t.agree(ctx, r, digests, all); err != nil {
		return choice{}, err
	}
	if n == 0 {
		return choice{all: all[len(all)/2:][:1], counts: []float64{1}, val: math.NaN(), loss: math.NaN()}, nil
	}
	best := choice{counts: []float64{1}, val: math.NaN()}
	for k := range all {
		val := float64(sums[k]) / float64(t.Labels.RightStep(release, len(all))) / n
		if val = min(max(val, 0), 1); !(val <= best.val) {
			best.all, best.val = all[k:][:1], val
		}
	}
	best.margin, best.loss = t.config.Metric.StandardError(best.val, n)/2, 1-best.val // the loss of a node has no bound
	return best, nil
}

// measureWithNoise counts right validation and test nodes with noise, and reports the end of the run.
func (t *Trainer) measureWithNoise(ctx context.Context) error {
	t.final = t.best().Clone()
	if t.KeepHidden {
		t.hidden = t.bestColumns().Clone()
	}
	e := train.Event{Kind: train.StageEnd, Round: t.at.Round, Metric: string(t.config.Metric), BestRound: t.at.BestRound,
		ValLoss: math.NaN(), TestLoss: math.NaN()}
	tested := &comm.Contribution{ID: t.id("labelled test nodes", 0, 0), CountBits: comm.CountBits(t.shard.Nodes),
		Counts: []int64{int64(t.shard.Labels.Select(t.shard.NodesIn(graph.Test)).Labelled())}, CountLimit: atMost("the number of test nodes", t.rest.Rows)}
	if _, err := t.reducer.Reduce(ctx, tested); err != nil {
		return err
	}
	for _, one := range []struct {
		split graph.Split
		name  string
		nodes float64
		to    *float64
	}{{graph.Val, validation, t.labels.Validating(), &e.Val}, {graph.Test, test, float64(tested.Counts[0]), &e.Test}} {
		rows := t.shard.NodesIn(one.split)
		counts := eval.Count(t.final.Select(rows), t.shard.Labels.Select(rows), nil)
		release := t.release(one.name, ofModel)
		own, err := t.Labels.Right(release, []int64{counts.Vector()[1]})
		if err != nil {
			return err
		}
		if err := t.saveReleases(); err != nil {
			return err
		}
		sums, _, err := t.sumNoised(ctx, t.id("finished model: "+one.name, 0, 0), release, one.nodes, own, nil)
		if err != nil {
			return err
		}
		if *one.to = math.NaN(); one.nodes > 0 {
			*one.to = min(max(float64(sums[0])/float64(t.Labels.RightStep(release, 1))/one.nodes, 0), 1)
		}
	}
	e.Sent = t.sent()
	t.report(e)
	return nil
}

// labelledRows returns what is known of a regression whose targets are not in its sums.
func (t *Trainer) labelledRows() linear.Joint {
	return linear.Joint{Rows: t.labels.Labelled, All: true, Weight: t.labels.Labelled, RestWeight: t.labels.Labelled - float64(len(t.train))}
}
