package runs

import (
	"cmp"
	"encoding/csv"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/typed"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/mat"
)

// guessed are a model's predictions for some nodes, with their names, splits and labels.
type guessed struct {
	site   string        // that holds them; empty: one holds all
	ids    []string      // the user's names of the nodes; nil: they have numbers
	global []int64       // numbers in the whole graph; nil: from 0
	split  []graph.Split // nil: they have none
	labels graph.Labels
	p      heddle.Predictions
	hidden mat.Dense // the rows that they are made of; empty: nobody asked for them
	only   string    // type of nodes that have labels, in a data set of several types; empty: all have
}

// guessedBy returns the predictions of the peers of this process for their own nodes, by shard; those of a peer that has
// none are left out.
func guessedBy(o *heddle.Result, shards []*shard.Shard) []guessed {
	return slices.DeleteFunc(nodesOf(o, shards), func(g guessed) bool { return g.p.Logits.Empty() })
}

// nodesOf returns what o says of the nodes of each part.
func nodesOf(o *heddle.Result, shards []*shard.Shard) (all []guessed) {
	for k, s := range shards {
		site := strconv.Itoa(s.Rank)
		if o.Members != nil {
			site = o.Members[s.Rank]
		}
		all = append(all, guessed{site, s.IDs, s.Global, s.Split, s.Labels, o.Own[k], o.Hidden[k], typed.Target(s.Encoding)})
	}
	return all
}

// prediction of one node, as a row of predictions.parquet.
type nodePrediction struct {
	ID            string    `parquet:"id"`
	Class         string    `parquet:"class"`
	Probability   *float64  `parquet:"probability,optional"` // nil where a node may have several classes
	Split         string    `parquet:"split"`                // train, val, test, or empty
	Label         *string   `parquet:"label,optional"`       // nil: not known
	Site          string    `parquet:"site"`
	Probabilities []float64 `parquet:"probabilities,list"` // by class, whose names are the value of key classes in the file
}

var splitNames = map[graph.Split]string{graph.Train: "train", graph.Val: "val", graph.Test: "test"}

// name returns what the user calls node i.
func (g guessed) name(i int) string {
	switch {
	case g.ids != nil:
		return g.ids[i]
	case g.global != nil:
		return strconv.FormatInt(g.global[i], 10)
	}
	return strconv.Itoa(i)
}

// number returns the number of node i in the whole graph.
func (g guessed) number(i int) int64 {
	if g.global != nil {
		return g.global[i]
	}
	return int64(i)
}

// ordered gives the nodes of all in the order of their numbers.
func ordered(all []guessed) iter.Seq2[guessed, int] {
	type place struct{ of, at int }
	var list []place
	for k, g := range all {
		for i := range g.p.Logits.Rows {
			list = append(list, place{k, i})
		}
	}
	slices.SortStableFunc(list, func(a, b place) int {
		return cmp.Compare(all[a.of].number(a.at), all[b.of].number(b.at))
	})
	return func(yield func(guessed, int) bool) {
		for _, p := range list {
			if !yield(all[p.of], p.at) {
				return
			}
		}
	}
}

// tells reports whether node i is of the type that the predictions are about.
func (g guessed) tells(i int) bool { return g.only == "" || strings.HasPrefix(g.name(i), g.only+"/") }

// told returns how many nodes the predictions are about.
func (g guessed) told() (n int) {
	for i := range g.p.Logits.Rows {
		if g.tells(i) {
			n++
		}
	}
	return n
}

// each calls do with every node that has a class, in the order of their numbers.
func each(names []string, all []guessed, do func(row nodePrediction, probability string) error) error {
	for g, i := range ordered(all) {
		if !g.tells(i) {
			continue
		}
		row := nodePrediction{ID: g.name(i), Site: g.site, Probabilities: g.p.Probabilities(i)}
		var class, probability []string
		for _, k := range g.p.Classes(i) {
			class, probability = append(class, className(names, k)), append(probability, rounded(row.Probabilities[k]))
			if !g.labels.Multi() {
				row.Probability = &row.Probabilities[k]
			}
		}
		row.Class = strings.Join(class, ";")
		if g.split != nil {
			row.Split = splitNames[g.split[i]]
		}
		if label, ok := labelOf(g.labels, i, names); ok {
			row.Label = &label
		}
		if err := do(row, strings.Join(probability, ";")); err != nil {
			return err
		}
	}
	return nil
}

// numbersOf returns predictions of numbers, for nodes of every type or of that which has any.
func numbersOf(names []string, all []guessed, every bool) (t numberTable) {
	for k := range all[0].p.Logits.Cols {
		t.Targets = append(t.Targets, className(names, k))
	}
	for g, i := range ordered(all) {
		if !every && !g.tells(i) {
			continue
		}
		row := numberRow{ID: g.name(i), Site: g.site, Node: g.number(i)}
		for _, v := range g.p.Logits.Row(i) {
			row.Prediction = append(row.Prediction, float64(v))
		}
		if g.split != nil {
			row.Split = splitNames[g.split[i]]
		}
		if l := g.labels; l.Values != nil && l.Has(i) {
			for _, v := range l.Values[i*l.Classes : (i+1)*l.Classes] {
				row.Target = append(row.Target, float64(v))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// labelOf returns the label of node i as text; ok is false if it is not known.
func labelOf(l graph.Labels, i int, names []string) (text string, ok bool) {
	if l.Multi() {
		var all []string
		for k, b := range l.Bits[i*l.Classes : (i+1)*l.Classes] {
			if b != 0 {
				all = append(all, className(names, k))
			}
		}
		return strings.Join(all, ";"), true
	}
	if l.Class == nil || l.Class[i] < 0 {
		return "", false
	}
	return className(names, int(l.Class[i])), true
}

func className(names []string, k int) string { return graph.Labels{Names: names}.Name(k) }

func rounded(p float64) string { return strconv.FormatFloat(p, 'f', 4, 64) }

// writeCSV writes one line per node: ID, class and its probability, split and label as far as there are any, the site if
// there are several, and the probability of every class. If a node may have several classes, its class is the list of
// all with a probability above one half.
func writeCSV(w io.Writer, names []string, all []guessed) error {
	if len(all) > 0 && all[0].p.Kind() == target.Numbers {
		return numbersOf(names, all, false).csv(w, plainCell)
	}
	c := csv.NewWriter(w)
	head := []string{"id", "class", "probability", "split", "label"}
	sites := len(all) > 0 && all[0].site != ""
	if sites {
		head = append(head, "site")
	}
	if len(all) > 0 {
		for k := range all[0].p.Logits.Cols {
			head = append(head, plainCell("p_"+className(names, k)))
		}
	}
	if err := c.Write(head); err != nil {
		return err
	}
	err := each(names, all, func(row nodePrediction, probability string) error {
		label := ""
		if row.Label != nil {
			label = *row.Label
		}
		line := []string{plainCell(row.ID), plainCell(row.Class), probability, row.Split, plainCell(label)}
		if sites {
			line = append(line, row.Site)
		}
		for _, p := range row.Probabilities {
			line = append(line, rounded(p))
		}
		return c.Write(line)
	})
	if err != nil {
		return err
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

// writeParquet writes one row per node.
func writeParquet(w io.Writer, names []string, all []guessed) error {
	if len(all) > 0 && all[0].p.Kind() == target.Numbers {
		return numbersOf(names, all, false).parquet(w)
	}
	classes := 0
	if len(all) > 0 {
		classes = all[0].p.Logits.Cols
	}
	var list strings.Builder
	c := csv.NewWriter(&list)
	var line []string
	for k := range classes {
		line = append(line, className(names, k))
	}
	if err := c.Write(line); err != nil {
		return err
	}
	c.Flush()
	f := parquet.NewGenericWriter[nodePrediction](w, parquet.Compression(&parquet.Zstd), parquet.KeyValueMetadata("classes", strings.TrimSpace(list.String())))
	err := each(names, all, func(row nodePrediction, _ string) error {
		_, err := f.Write([]nodePrediction{row})
		return err
	})
	if err != nil {
		return err
	}
	return f.Close()
}
