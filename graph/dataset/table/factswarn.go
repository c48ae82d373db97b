package table

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Bounds of the warnings.
const (
	manyClasses  = 20   // from this number of classes on, with few nodes each, they look like a regression target
	fewEach      = 20   // nodes of a class on average
	fewNodes     = 10   // few nodes of one class
	leastAvoided = 0.95 // fraction of the majority's errors that a single column avoids
	leastNodes   = 20   // labelled nodes that a column needs to be judged
	columnBins   = 32   // bins of a numeric column, with equally many nodes
)

// Warn adds warnings of likely mistakes. class is each class's number of nodes over all sites.
func (f *Facts) Warn() {
	n := 0
	for _, c := range f.Classes {
		n += c.Nodes
	}
	switch k := len(f.Classes); {
	case n == 0: // labels are elsewhere: this site lacks the labelled type of nodes
	case k >= manyClasses && n < fewEach*k:
		f.warn("column %s has %d classes for %d nodes: it looks like a regression target "+
			"(option regression predicts it as a number)", f.Label, k, n)
	default:
		for _, c := range f.Classes {
			if c.Nodes < fewNodes {
				f.warn("class %s has %s, fewer than %d: hardly anything can be learned or measured of it", c.Name,
					plural(c.Nodes, "node"), fewNodes)
			}
		}
	}
	for _, c := range f.Classes {
		if slices.Contains(unknownClasses, strings.ToLower(strings.TrimSpace(c.Name))) {
			f.warn("class %s looks like a label that is not known: option missing %q leaves its %s without one", c.Name,
				c.Name, plural(c.Nodes, "node"))
		}
	}
	for _, text := range f.spelled {
		f.warn("%s", text)
	}
	for _, c := range f.Columns {
		if c.Kind == Dropped && c.Why != "" {
			f.warn("column %s is dropped: %s%s", c.Name, c.Why, c.Hint)
		}
	}
	for _, c := range f.Columns {
		if c.Unknown > 0 && c.Kind != Dropped {
			f.warn("column %s: a category without its own feature in %s, such as %q", c.Name,
				plural(c.Unknown, "cell"), c.Example)
		}
	}
	if e := f.Edges; e.Repeated > 0 && e.Merge == "" {
		f.warn("%s listed again: each edge counts once, with its largest weight (option merge changes this)",
			plural(e.Repeated, "edge"))
	}
	if f.Nodes > 0 && f.Isolated == f.Nodes {
		f.warn("no node has an edge: a model sees each node's own features only")
	}
	for _, t := range f.Tables {
		if t.Skipped > t.Rows {
			f.warn("%s of %d in %s skipped: look at skipped.csv before anything else", plural(t.Skipped, "row"),
				t.Rows+t.Skipped, t.File)
		}
		if t.Encoding == "latin1" || t.Encoding == "windows-1252" {
			f.warn("%s is not UTF-8 and was read as %s", t.File, t.Encoding)
		}
	}
}

// mostCells bounds the features that Warnings checks column by column.
const mostCells = 10_000_000

// Warnings returns likely mistakes in the data set or partition at path: those found when its tables were read, else
// those that its arrays g show for that task. g may be nil.
func Warnings(path string, g *graph.Graph, task string) ([]string, error) {
	if filepath.Base(path) == "graph.npz" {
		path = filepath.Dir(path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if f, err := ReadFacts(path); f != nil {
			return f.Warnings, nil
		} else if err != nil {
			return nil, err
		}
	}
	if g == nil {
		return nil, nil
	}
	f, l := &Facts{Label: "y", Nodes: len(g.Split)}, g.Labels
	f.addLabels(l)
	switch {
	case l.Multi():
		f.checkOneHot(l)
	case l.Values != nil && l.Classes == 1 && task != "regression":
		values, whole := map[float32]bool{}, true
		for _, v := range l.Values {
			if v == v {
				values[v], whole = true, whole && v == float32(int64(v))
			}
		}
		if k := len(values); whole && k <= manyClasses && f.Nodes-f.Unlabelled >= 3*k {
			f.warn("y has floats, which make a regression, but only %d whole numbers: task classification makes "+
				"them classes", k)
		}
	case l.Class != nil:
		f.checkNumbers(l, task)
		if x := g.X; x.Rows()*x.Cols() <= mostCells {
			for k := range x.Cols() {
				f.Columns = append(f.Columns, ColumnFacts{Name: fmt.Sprintf("%d of x", k), Kind: "numeric", Features: 1,
					Hint: ": leave it out"})
			}
			f.CheckDisguise(x, l)
		}
	}
	return f.Warnings, nil
}

// checkOneHot warns if a node may have several classes but each node has one.
func (f *Facts) checkOneHot(l graph.Labels) {
	for i := range f.Nodes {
		sum := 0
		for _, b := range l.Bits[i*l.Classes : (i+1)*l.Classes] {
			sum += int(b)
		}
		if sum != 1 {
			return
		}
	}
	if l.Classes > 1 {
		f.warn("y has %d columns for any number of classes a node, but each node has one class: give y.argmax(axis=1)",
			l.Classes)
	}
}

// checkNumbers warns of classes that are numbers and have gaps, include -1, or look like a target.
func (f *Facts) checkNumbers(l graph.Labels, task string) {
	n, k := f.Nodes-f.Unlabelled, l.Classes
	var gaps []string
	last := 0
	for c, name := range l.Names {
		v, err := strconv.Atoi(name)
		if err != nil {
			return
		}
		if c > 0 && v == last+2 {
			gaps = append(gaps, strconv.Itoa(last+1))
		} else if c > 0 && v > last+1 {
			gaps = append(gaps, fmt.Sprintf("%d to %d", last+1, v-1))
		}
		last = v
	}
	if gaps != nil && l.Names[0] != "-1" {
		f.warn("y has gaps in its class numbers, no node has %s: its %d classes are %s",
			strings.Join(gaps[:min(len(gaps), 5)], ", "), k,
			strings.Join(l.Names[:min(k, mostShown)], ", "))
	}
	if slices.Contains(l.Names, "-1") {
		f.warn("y has -1, which is a class here: an empty text, or NaN with task classification, is no label")
	}
	if k >= manyClasses && n < fewEach*k && task != "classification" {
		f.warn("y has %d classes for %d nodes: it looks like a regression target (task regression predicts it "+
			"as a number)", k, n)
	}
}

// unknownClasses are names of classes, in lower case, that look like unknown labels.
var unknownClasses = strings.Split("unknown|unk|unkn|not known|missing|undefined|unspecified|not specified|"+
	"not available|not applicable|unlabeled|unlabelled|empty|-|--|??|unbekannt|k.a.|k. "+
	"a.|keine angabe|fehlt|inconnu|desconocido", "|")

// AddSpelled makes Warn report values of a column with several spellings, as Unite writes them, and values here whose
// spelling differs from the one of all sites.
func (f *Facts) AddSpelled(column string, several, here, all []string) {
	spelled := NewSpellings(all)
	for _, text := range here {
		if other := spelled.Find(text); other != text {
			several = append(several, fmt.Sprintf("%.40q, which is here %.40q", other, text))
		}
	}
	for _, text := range several {
		f.spelled = append(f.spelled, fmt.Sprintf("column %s: one value is written in several ways: %s", column, text))
	}
}

// AddTable adds the warnings of one table of several.
func (f *Facts) AddTable(name string, one *Facts) {
	for _, text := range one.spelled {
		f.spelled = append(f.spelled, name+": "+text)
	}
}

// plural writes a count of things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// warn adds a warning.
func (f *Facts) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// CheckDisguise warns of single columns that predict the label: their features avoid nearly all errors of always
// choosing the most frequent class. A numeric column is judged by one threshold and by bins with equally many nodes, a
// categorical one by its categories, a text by its best word. It takes time linear in the features.
func (f *Facts) CheckDisguise(x graph.Features, l graph.Labels) {
	if l.Multi() || l.Class == nil || l.Classes < 2 {
		return
	}
	total := make([]int, l.Classes)
	n := 0
	for _, c := range l.Class {
		if c >= 0 {
			total[c]++
			n++
		}
	}
	errors := n - slices.Max(total)
	if n < leastNodes || errors == 0 {
		return
	}
	j := labelJudge{class: l.Class, classes: l.Classes, labelled: n}
	first := 0
	values := newFeatureColumns(x)
	for _, c := range f.Columns {
		wrong := n
		switch c.Kind {
		case "numeric", "date", "age":
			wrong = j.numbers(values.next(first))
		case "text":
			for k := range c.Features {
				wrong = min(wrong, j.word(values.next(first+k)))
			}
		case "categorical":
			if c.Values*5 > n {
				break // with this number of categories it fits any label
			}
			wrong = j.categories(values, first, c.Features)
		}
		if float64(wrong) <= (1-leastAvoided)*float64(errors) {
			f.warn("column %s alone predicts %s for %s %% of the nodes: it may be the label in disguise%s",
				c.Name, f.Label,
				strconv.FormatFloat(100*float64(n-wrong)/float64(n), 'f', 1, 64),
				cmp.Or(c.Hint, fmt.Sprintf(" (option ignore %s)", c.Name)))
		}
		first += c.Features
	}
}

// labelJudge counts the errors of single columns that predict the label.
type labelJudge struct {
	class             []int32
	classes, labelled int
}

// featureColumns returns the features column by column.
type featureColumns struct {
	dense   mat.Dense
	columns *mat.Sparse // the transpose of sparse features (nil = dense)
	full    []float32
}

func newFeatureColumns(x graph.Features) *featureColumns {
	c := &featureColumns{dense: x.Dense, full: make([]float32, x.Rows())}
	if x.Sparse != nil {
		c.columns = x.Sparse.Transpose(nil)
	}
	return c
}

// next returns a column, valid until the next call.
func (c *featureColumns) next(j int) []float32 {
	if c.columns != nil {
		c.columns.Spread(c.full, j)
		return c.full
	}
	for i := range c.full {
		c.full[i] = c.dense.Row(i)[j]
	}
	return c.full
}

// categories returns the errors of the most frequent class of each category, and of the nodes without
// one.
func (j labelJudge) categories(values *featureColumns, first, width int) (wrong int) {
	has, without := make([]bool, len(j.class)), make([]int, j.classes)
	for k := range width {
		count := make([]int, j.classes)
		for i, v := range values.next(first + k) {
			if c := j.class[i]; v != 0 && c >= 0 {
				count[c]++
				has[i] = true
			}
		}
		wrong += errorsOf(count)
	}
	for i, c := range j.class {
		if c >= 0 && !has[i] {
			without[c]++
		}
	}
	return wrong + errorsOf(without)
}

// word returns the errors of choosing a class for each of three groups: the nodes with a word, with its opposite and
// without both.
func (j labelJudge) word(x []float32) (wrong int) {
	count := make([]int, 3*j.classes)
	for i, v := range x {
		if c := int(j.class[i]); c >= 0 {
			count[(1+cmp.Compare(v, 0))*j.classes+c]++
		}
	}
	for k := range 3 {
		wrong += errorsOf(count[k*j.classes : (k+1)*j.classes])
	}
	return wrong
}

// errorsOf returns how many nodes of a group do not have its most frequent class.
func errorsOf(count []int) (wrong int) {
	for _, n := range count {
		wrong += n
	}
	return wrong - slices.Max(count)
}

// numbers returns the errors of the better of two rules: one class below a threshold and one above it, or a class for
// each bin.
func (j labelJudge) numbers(x []float32) int {
	order := make([]int32, 0, j.labelled)
	for i, c := range j.class {
		if c >= 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(x[a], x[b]) })
	return min(j.threshold(x, order), j.binned(x, order))
}

// threshold returns the errors of the best threshold; order has the nodes by their numbers x.
func (j labelJudge) threshold(x []float32, order []int32) int {
	n := len(order)
	right := make([]int, n+1) // nodes from k on that have the most frequent class among these
	count, most := make([]int, j.classes), 0
	for k := n - 1; k >= 0; k-- {
		c := j.class[order[k]]
		count[c]++
		most = max(most, count[c])
		right[k] = most
	}
	clear(count)
	most = 0
	best := right[0]
	for k := range n {
		if k > 0 && x[order[k]] != x[order[k-1]] {
			best = max(best, most+right[k])
		}
		c := j.class[order[k]]
		count[c]++
		most = max(most, count[c])
	}
	return n - best
}

// binned returns the errors of choosing a class for each bin; order has the nodes by their numbers x.
func (j labelJudge) binned(x []float32, order []int32) (wrong int) {
	size := max(len(order)/columnBins, leastNodes/2)
	for at := 0; at < len(order); {
		end := min(at+size, len(order))
		for end < len(order) && x[order[end]] == x[order[end-1]] {
			end++
		}
		count := make([]int, j.classes)
		for _, i := range order[at:end] {
			count[j.class[i]]++
		}
		wrong += end - at - slices.Max(count)
		at = end
	}
	return wrong
}
