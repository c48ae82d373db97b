package cli

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

// NodePredictions are a model's predictions for some nodes, with their names, splits and labels.
type NodePredictions struct {
	Site        string        // of the nodes (empty = there is one)
	IDs         []string      // the user's names of the nodes (nil = they have numbers)
	Global      []int64       // numbers in the whole graph (nil = from 0)
	Split       []graph.Split // nil = they have none
	Labels      graph.Labels
	Predictions heddle.Predictions
	Hidden      mat.Dense // the rows that they are made of (empty = nobody asked for them)
	Only        string    // type of nodes that have labels, in a data set of several types (empty = all have)

	known []float64 // [N × C] probabilities, computed once for all files (nil = on each call)
}

// probabilities returns the probabilities of node i, which the caller must not change.
func (g NodePredictions) probabilities(i int) []float64 {
	if n := g.Predictions.Logits.Cols; g.known != nil {
		return g.known[i*n : (i+1)*n : (i+1)*n]
	}
	return g.Predictions.Probabilities(i)
}

// allProbabilities returns the probabilities of all nodes, [N × C].
func (g NodePredictions) allProbabilities() []float64 {
	l := g.Predictions.Logits
	all := make([]float64, 0, l.Rows*l.Cols)
	for i := range l.Rows {
		all = append(all, g.Predictions.Probabilities(i)...)
	}
	return all
}

// guessedBy returns the predictions of the peers of this process for their own nodes, by shard; those of a peer that
// has none are left out.
func guessedBy(o *heddle.Result, shards []*shard.Shard) []NodePredictions {
	return slices.DeleteFunc(nodesOf(o, shards), func(g NodePredictions) bool { return g.Predictions.Logits.Empty() })
}

// nodesOf returns what o says of the nodes of each part.
func nodesOf(o *heddle.Result, shards []*shard.Shard) (all []NodePredictions) {
	for k, s := range shards {
		site := strconv.Itoa(s.Rank)
		if o.Members != nil {
			site = o.Members[s.Rank]
		}
		all = append(all, NodePredictions{Site: site, IDs: s.IDs, Global: s.Global, Split: s.Split, Labels: s.Labels,
			Predictions: o.Own[k], Hidden: o.Hidden[k], Only: TargetType(s.Encoding)})
	}
	return all
}

// PredictionRow is the prediction of one node, as a row of predictions.parquet.
type PredictionRow struct {
	ID          string   `parquet:"id"`
	Class       string   `parquet:"class"`
	Probability *float64 `parquet:"probability,optional"` // nil where a node may have several classes
	Split       string   `parquet:"split"`                // train, val, test, or empty
	Label       *string  `parquet:"label,optional"`       // (nil = not known)
	Site        string   `parquet:"site"`
	// by class, whose names are the value of key classes in the file
	Probabilities []float64 `parquet:"probabilities,list"`
}

var splitNames = map[graph.Split]string{graph.Train: "train", graph.Val: "val", graph.Test: "test"}

// Name returns what the user calls node i.
func (g NodePredictions) Name(i int) string {
	switch {
	case g.IDs != nil:
		return g.IDs[i]
	case g.Global != nil:
		return strconv.FormatInt(g.Global[i], 10)
	}
	return strconv.Itoa(i)
}

// number returns the number of node i in the whole graph.
func (g NodePredictions) number(i int) int64 {
	if g.Global != nil {
		return g.Global[i]
	}
	return int64(i)
}

// ordered gives the nodes of all in the order of their numbers.
func ordered(all []NodePredictions) iter.Seq2[NodePredictions, int] {
	type place struct{ of, at int }
	var list []place
	for k, g := range all {
		for i := range g.Predictions.Logits.Rows {
			list = append(list, place{k, i})
		}
	}
	slices.SortStableFunc(list, func(a, b place) int {
		return cmp.Compare(all[a.of].number(a.at), all[b.of].number(b.at))
	})
	return func(yield func(NodePredictions, int) bool) {
		for _, p := range list {
			if !yield(all[p.of], p.at) {
				return
			}
		}
	}
}

// Predicts reports whether node i is of the type that the predictions are about.
func (g NodePredictions) Predicts(i int) bool {
	return g.Only == "" || strings.HasPrefix(g.Name(i), g.Only+"/")
}

// Count returns how many nodes the predictions are about.
func (g NodePredictions) Count() (n int) {
	for i := range g.Predictions.Logits.Rows {
		if g.Predicts(i) {
			n++
		}
	}
	return n
}

// splitName is the split of node i, empty without one.
func (g NodePredictions) splitName(i int) string {
	if g.Split == nil {
		return ""
	}
	return splitNames[g.Split[i]]
}

// PredictionRows gives every node that has a class, in the order of their numbers, and the probabilities of its classes
// as text.
func PredictionRows(names []string, all []NodePredictions) iter.Seq2[PredictionRow, string] {
	return func(yield func(PredictionRow, string) bool) {
		var class, probability []string
		for g, i := range ordered(all) {
			if !g.Predicts(i) {
				continue
			}
			row := PredictionRow{ID: g.Name(i), Site: g.Site, Split: g.splitName(i),
				Probabilities: g.probabilities(i)}
			class, probability = class[:0], probability[:0]
			for _, k := range g.Predictions.Classes(i) {
				class, probability = append(class, ClassName(names, k)), append(probability,
					rounded(row.Probabilities[k]))
				if !g.Labels.Multi() {
					row.Probability = &row.Probabilities[k]
				}
			}
			row.Class = strings.Join(class, ";")
			if label, ok := LabelOf(g.Labels, i, names); ok {
				row.Label = &label
			}
			if !yield(row, strings.Join(probability, ";")) {
				return
			}
		}
	}
}

// NumbersOf returns predictions of numbers, for nodes of every type or of that which has any.
func NumbersOf(names []string, all []NodePredictions, every bool) (t NumberTable) {
	for k := range all[0].Predictions.Logits.Cols {
		t.Targets = append(t.Targets, ClassName(names, k))
	}
	for g, i := range ordered(all) {
		if !every && !g.Predicts(i) {
			continue
		}
		row := NumberRow{ID: g.Name(i), Site: g.Site, Split: g.splitName(i), Node: g.number(i)}
		for _, v := range g.Predictions.Logits.Row(i) {
			row.Prediction = append(row.Prediction, float64(v))
		}
		if l := g.Labels; l.Values != nil && l.Has(i) {
			for _, v := range l.Values[i*l.Classes : (i+1)*l.Classes] {
				row.Target = append(row.Target, float64(v))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// LabelOf returns the label of node i as text; ok is false if it is not known.
func LabelOf(l graph.Labels, i int, names []string) (text string, ok bool) {
	if l.Multi() {
		var all []string
		for k, b := range l.Bits[i*l.Classes : (i+1)*l.Classes] {
			if b != 0 {
				all = append(all, ClassName(names, k))
			}
		}
		return strings.Join(all, ";"), true
	}
	if l.Class == nil || l.Class[i] < 0 {
		return "", false
	}
	return ClassName(names, int(l.Class[i])), true
}

// ClassName is the name of class k.
func ClassName(names []string, k int) string { return graph.Labels{Names: names}.Name(k) }

// fourDigits are the texts of 0 to 1 in steps of 1/10,000: a file of predictions has one for each class of each node.
var fourDigits = sync.OnceValue(func() []string {
	all := make([]string, 1e4+1)
	for k := range all {
		all[k] = strconv.FormatFloat(float64(k)/1e4, 'f', 4, 64)
	}
	return all
})

// rounded returns p with four digits after the point.
func rounded(p float64) string {
	if p >= 0 && p <= 1 {
		return fourDigits()[int(math.RoundToEven(p*1e4))]
	}
	return strconv.FormatFloat(p, 'f', 4, 64) // of logits that are not numbers
}

// WriteCSV writes one line per node: ID, class and its probability, split and label as far as there are any, the site
// if there are several, and the probability of every class. If a node may have several classes, its class is the list
// of all with a probability above one half.
func WriteCSV(w io.Writer, names []string, all []NodePredictions) error {
	if len(all) > 0 && all[0].Predictions.Kind() == graph.Numbers {
		return NumbersOf(names, all, false).csv(w)
	}
	c, head := csv.NewWriter(w), []string{"id", "class", "probability", "split", "label"}
	sites := len(all) > 0 && all[0].Site != ""
	if sites {
		head = append(head, "site")
	}
	if len(all) > 0 {
		for k := range all[0].Predictions.Logits.Cols {
			head = append(head, plainCell("p_"+ClassName(names, k)))
		}
	}
	c.Write(head) // the first error stays
	var line []string
	for row, probability := range PredictionRows(names, all) {
		line = append(line[:0], plainCell(row.ID), plainCell(row.Class), probability, row.Split, "")
		if row.Label != nil {
			line[4] = plainCell(*row.Label)
		}
		if sites {
			line = append(line, row.Site)
		}
		for _, p := range row.Probabilities {
			line = append(line, rounded(p))
		}
		c.Write(line)
	}
	c.Flush()
	return c.Error()
}

// plainCell returns text so that a spreadsheet does not treat it as a formula: a text that begins like one and is not a
// number is prefixed with an apostrophe (OWASP, "CSV Injection").
func plainCell(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

// TargetType returns the type whose nodes have labels, "" if the encoding is not for several tables
// or no type has them.
func TargetType(text []byte) string {
	var c struct {
		Nodes []struct {
			Type     string `json:"type"`
			Encoding struct {
				Label string `json:"label"`
			} `json:"encoding"`
		} `json:"node_tables"`
	}
	if json.Unmarshal(text, &c) != nil {
		return ""
	}
	for _, n := range c.Nodes {
		if n.Encoding.Label != "" {
			return n.Type
		}
	}
	return ""
}
