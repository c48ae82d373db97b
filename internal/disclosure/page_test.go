package disclosure

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// pageHead is the page before its tables, pageTail after them; ~ stands for a backquote.
const (
	pageHead = `# What leaves a site

<!-- generated: HEDDLE_WRITE=1 go test -run TestWhatLeavesPage ./internal/disclosure -->

~heddle check~ and ~peer approve~ show these lists for your plan. A site refuses to send a sum or row that its list does
not have, or that is wider, in another format or more frequent. With ~leaf_edges~, and for links by mini-batch without
~round_steps~, the list is shown and not enforced.

## Who receives what

- **Rows**: each site with an edge from a node receives the node's row. With mini-batch, and for links with
  ~negatives_from: all~, any site can read any row. A site may request sums of several rows instead; two sums that
  differ by a node reveal its row.
- **Sums**: every site receives the total. Secure sums, the default for 3 to 64 sites, hide each site's part unless all
  others pool what they know. Clear sums show it to another site. With two sites the total less one part is the other.
- **Control**: every site receives fingerprints, positions, digests and timings; parameters or plans if these differ.
- The network sees addresses, times and sizes.

Names are not sent in a run. Labels are sent only by ~label_inputs~ and ~correct_smooth~. Some rows have logits, and so
predictions. After a failure the same numbers may be sent twice.

## Before a run

~heddle partition~ needs all data on one machine. With ~heddle match~ each site makes its own part. It first prints what
it sends (~--dry-run~ stops there). To all sites it sends

- names and kinds of columns, classes and relations, and **texts of categories that 10 of its nodes have**
  (~min_text_count~);
- numbers of nodes, edges, splits and halo rows, and a digest;
- sums over each column; for a type that only this site has, they are **its own figures**.

To the owner of the other end of each edge it sends **the name of that end**, later the edge. It learns which of these
names the owner has. Above ten unknown names (~--max-unknown~) the owner refuses. ~--ignore~ leaves out columns.

## What messages reveal

| word | what a receiver can conclude |
|---|---|
| – | nothing about a node |
| counts | how many nodes of each class a site has, exactly with two sites |
| fit | how well the model fits a site, class by class |
| means | the mean of each class at a site; if it has one node, the node's features |
| moments | second moments; **all columns of a node** that is the only one of its site |
| row | how likely each class is, and features: a mix of up to 64, all with ~raw~, **often all** with ~pca:K~ |
| neighbours | weighted sums of neighbours' rows. **A receiver that knows all but one learns that one** |
| update | rows and labels of few training nodes; ~encoder: mlp~: **also from secure sums** |
| links | which nodes are linked |
| self | what the message's name lists, of one node |

[Privacy](../explanation/privacy.md) has results of attacks.

## The lists

One of three sites with 5 classes and 100 features sends these, with the size of a message and how often it is sent at
most (×). Rows are in *italics*. A numeric target has sums of targets instead of label counts.
`
	pageTail = `
## Other messages

- ~heddle predict --plan~ sends rows once more, label counts if the model reads labels, and counts of the test metric.
- With ~phones~ all totals go to the phones, too. With ~leaf_edges~ sites and phones get sums of the rows of their
  nodes' neighbours.
- With ~figures_by~ a site adds to two more sums, in every method: whether it has test nodes of each value of the
  column, and how many of them are right.
- With ~site_figures~ a site publishes its own rounded test metric.

## What stays

Every site has the model file and can query it ([what stays](../explanation/privacy.md#what-stays-afterwards)). If nodes
have no features, class means in the file show how many training nodes of each class are near each node. With the edges
they reveal labels.
`
)

// listed are the runs that the page lists, by method. A message is listed for the first run that sends it.
var listed = []struct {
	title, intro string
	runs         []listedRun
}{
	{"Class means", "Sparse rows are rounded (`coarse_rows`). Class means and maps of numbers exclude a node's own " +
		"label, residuals do not.", []listedRun{
		{"", "method: class-means", 100, 0.1},
		{"a fifth labelled", "method: class-means", 100, 0.5},
		{"to 64 features", "method: class-means", 40, 0.1},
		{"`inductive`", "method: class-means\ninductive: true", 100, 0.1},
		{"`epsilon`", "method: class-means\nepsilon: 4", 100, 0.1},
	}},
	{"Layer-wise", "By default the messages of class means come first (`encoder: pca:K+classes`). " +
		"With gcn a row's size reveals the degree.", []listedRun{
		{"", "method: layer-wise\nencoder: pca:16", 100, 0.1},
		{"`encoder: mlp`", "method: layer-wise\nencoder: mlp", 100, 0.1},
		{"`encoder: raw`", "method: layer-wise\nencoder: raw\nmodel: gcn", 100, 0.1},
		{"`hops: 2`", "method: layer-wise\nencoder: pca:16\nhops: 2", 100, 0.1},
		{"`local_steps: 4`", "method: layer-wise\nencoder: pca:16\nlocal_steps: 4", 100, 0.1},
		{"`inductive`", "method: layer-wise\nencoder: pca:16\ninductive: true", 100, 0.1},
		{"links", "method: layer-wise\ntask: links\nmodel: sage", 100, 0.1},
	}},
	{"Full batch", "For data of one owner: features are sent, sums are in the clear.",
		[]listedRun{
			{"", "method: full-batch", 100, 0.1},
			{"`memory`", "method: full-batch\nmodel: gat\nmemory: 1MiB", 100, 0.1},
			{"`norm: batch`", "method: full-batch\nmodel: gin", 100, 0.1},
			{"sign", "method: full-batch\nmodel: sign", 100, 0.1},
			{"`correct_smooth`", "method: full-batch\ncorrect_smooth: 5", 100, 0.1},
			{"`inductive`", "method: full-batch\ninductive: true", 100, 0.1},
			{"links", "method: full-batch\ntask: links", 100, 0.1},
		}},
	{"Mini-batch", "For data of one owner: any site can learn any node's features and edges. " +
		"The list can be a hundred times what is sent.", []listedRun{
		{"", "method: mini-batch", 100, 0.1},
		{"`inductive`", "method: mini-batch\ninductive: true", 100, 0.1},
		{"links", "method: mini-batch\ntask: links\nround_steps: 3", 100, 0.1},
	}},
}

type listedRun struct {
	when, plan string
	columns    int
	labelled   float64
}

// revealed has what messages reveal: a word of the page for the first expression that matches their names. One that
// none matches has no place on the page yet.
var revealed = []struct {
	word string
	name *regexp.Regexp
}{
	{"–",
		regexp.MustCompile(`^(keys|agreement|largest magnitudes|workers|edges of the rows|latency|sums that a site)`)},
	{"neighbours", regexp.MustCompile(`aggregate|sums of features over hops|with noise|smoothed`)},
	{"counts", regexp.MustCompile(`^label counts$|counts of links|^nodes with|classes that the model gives`)},
	{"means", regexp.MustCompile(`of each feature|over each class|weighted by|each hidden column`)},
	{"moments", regexp.MustCompile(`^products|Zᵀ|Xᵀ|second moments`)},
	{"update", regexp.MustCompile(`^gradients of (a layer|all layers|encoder)|^changes of`)},
	{"links", regexp.MustCompile(`ends of links|sampled neighbours|are wanted`)},
	{"neighbours", regexp.MustCompile(`^gradients of others`)},
	{"self", regexp.MustCompile(`degrees|is held out|ID and type|^type`)},
	{"fit",
		regexp.MustCompile(
			`validation|sum and sum of squares of each column|scale of the errors|held out|losses|bytes sent|figures of`)},
	{"row", regexp.MustCompile(`^(columns of the node|logits|features|input of|rows of)`)},
}

// listedMessage is a row of a table.
type listedMessage struct {
	train.Message
	least, most int64
	when        string
}

var hops, layers = regexp.MustCompile(`over \d+ (hop|step)s?`), regexp.MustCompile(`\blayer ?\d+`)

// messagesOf returns what a run sends, in order; messages that differ only by layer or hop are one.
func messagesOf(t *testing.T, run listedRun) (all []listedMessage) {
	t.Helper()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 3000, Sites: 3, Classes: 5, Words: 8, Columns: run.columns,
		Train: run.labelled, Val: 0.1}, rng.New(2))
	policy, err := partition.ParsePolicy("by-column")
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g, policy, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := sent(read(t, run.plan), shards[1])
	if err != nil {
		t.Fatalf("%s: %v", run.plan, err)
	}
	for k, l := range lists {
		before := len(all)
		for _, m := range l.List {
			m.What = layers.ReplaceAllString(hops.ReplaceAllString(m.What, "over ${1}s"), "a layer")
			n := m.Numbers + m.Counts
			j := slices.IndexFunc(all, listedMessage{Message: m}.alike)
			switch {
			case j < 0:
				all = append(all, listedMessage{m, n, n, run.when})
			case k == 0 || j >= before: // lists are alternatives
				h := &all[j]
				h.Times, h.least, h.most = h.Times+m.Times, min(h.least, n), max(h.most, n)
				if n == 0 { // a part of it
					h.least = h.most
				}
			}
		}
	}
	return all
}

// TestWhatLeavesPage keeps docs/reference/what-leaves.md equal to the lists of messages. HEDDLE_WRITE=1 writes it.
func TestWhatLeavesPage(t *testing.T) {
	tables, senders := make([][]listedMessage, len(listed)), map[string][]string{} // "L links": method and when
	for k, section := range listed {
		for _, run := range section.runs {
			for _, m := range messagesOf(t, run) {
				if !slices.ContainsFunc(tables[k], m.alike) {
					tables[k] = append(tables[k], m)
					senders[m.key()] = append(senders[m.key()], section.title[:1]+" "+m.when)
				}
			}
		}
	}
	b := bytes.NewBufferString(strings.ReplaceAll(pageHead, "~", "`"))
	b.WriteString("\n### Several methods\n\nClass means (C), layer-wise (L), full batch (F) and mini-batch (M) " +
		"send these; sizes are of the first.\n\n" +
		"| reveals | by | messages |\n|---|---|---|\n")
	var shared messageRows
	known := map[string]bool{}
	for _, table := range tables {
		for _, m := range table {
			all := senders[m.key()]
			if len(all) < 2 || known[m.key()] {
				continue
			}
			known[m.key()] = true
			alike := !slices.ContainsFunc(all, func(s string) bool { return s[1:] != all[0][1:] })
			by := ""
			for _, s := range all {
				if by += s[:1]; !alike && s[2:] != "" {
					by += " (" + s[2:] + ") "
				}
			}
			if !alike {
				m.when = ""
			} else if len(all) == len(listed) {
				by = "all"
			}
			shared.add(m.reveals(t)+" | "+strings.TrimSpace(by), m.name()+m.size())
		}
	}
	shared.write(b)
	for k, section := range listed {
		fmt.Fprintf(b, "\n### %s\n\n%s\n\n| reveals | messages |\n|---|---|\n", section.title,
			section.intro)
		var own messageRows
		for _, m := range tables[k] {
			if !known[m.key()] {
				own.add(m.reveals(t), m.name()+m.size())
			}
		}
		own.write(b)
	}
	b.WriteString(strings.ReplaceAll(pageTail, "~", "`"))
	const page = "../../docs/reference/what-leaves.md"
	if os.Getenv("HEDDLE_WRITE") != "" {
		if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if held, err := os.ReadFile(page); err != nil || !bytes.Equal(held, b.Bytes()) {
		t.Errorf("%s must have the lists: HEDDLE_WRITE=1 go test -run TestWhatLeavesPage ./internal/disclosure (%v)",
			page, err)
	}
}

// messageRows are the rows of a table: messages behind what they have in common, in the order of the first ones.
type messageRows []struct {
	common   string
	messages []string
}

func (r *messageRows) add(common, message string) {
	for k := range *r {
		if (*r)[k].common == common {
			(*r)[k].messages = append((*r)[k].messages, message)
			return
		}
	}
	*r = append(*r, struct {
		common   string
		messages []string
	}{common, []string{message}})
}

func (r messageRows) write(b *bytes.Buffer) {
	for _, row := range r {
		fmt.Fprintf(b, "| %s | %s |\n", row.common, strings.Join(row.messages, ";<br> "))
	}
}

// key is what m has in common with messages that differ only by run.
func (m listedMessage) key() string { return string(m.Kind) + m.What }

func (m listedMessage) alike(other listedMessage) bool { return m.key() == other.key() }

// name is the name on the page, with the run that sends m.
func (m listedMessage) name() string {
	name := m.What
	if m.when != "" {
		name += " (" + m.when + ")"
	}
	if m.Kind != train.Sums {
		return "*" + name + "*"
	}
	return name
}

// size returns the count and format of numbers in a message, and how often it is sent if more than once.
func (m listedMessage) size() (text string) {
	switch {
	case m.most == 0:
		return ""
	case m.least < m.most:
		text = fmt.Sprintf(": %d–%d %s", m.least, m.most, m.Format)
	default:
		text = fmt.Sprintf(": %d %s", m.most, m.Format)
	}
	if m.Times > 1 {
		text += fmt.Sprintf(" × %d", m.Times)
	}
	return text
}

// reveals returns the page's word for what m reveals.
func (m listedMessage) reveals(t *testing.T) string {
	for _, r := range revealed {
		if r.name.MatchString(m.What) {
			return r.word
		}
	}
	t.Errorf("revealed must have an expression for the message %q", m.What)
	return ""
}
