package graphs

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
)

// guessRows is how many rows of a table roles are guessed from.
const guessRows = 100_000

// SiteWriter writes site.yaml for the tables in the present folder.
type SiteWriter struct{}

// seen is the start of a table. Only the start is read: a guess must not take as long as an import, and a person checks
// it.
type seen struct {
	file    string
	columns []string
	rows    [][]string
	values  []map[string]bool // of each column, except missing ones
	id      int               // column with another value in each row (−1 = none)
}

const siteHead = `# What this site brings and allows. heddle init wrote this file, and heddle take-part reads it.
# Read each line with a guess.

%s

# Every column has a role: id, label, labels (several, separated by ;), number (to predict), split, numeric,
# categorical, text:WIDTH, date, age:DATE, feature (detected) or ignore. Edges: source, target, source-site,
# target-site, weight, type, feature or ignore.
tables:
`

const siteTail = `
# What may leave, whatever federation.yaml has (docs/reference/policies.md). This is heddle policy hospital; bank and
# research are others. Two sites need 2 for both min_members; then each can compute the other's part of a sum.
may_leave:
  categories: [%s]  # only the texts of these columns
%s
state: state     # parts, checkpoints, the approved page
out: results     # models, reports, predictions

# identity: FILE                             # key (default: in your configuration folder)
# host: 10.0.0.3                             # where others reach this site (default: it only dials out)
# invited_by: ID                             # a member that federation.yaml must have
# listen: [/ip4/0.0.0.0/udp/4001/quic-v1]    # default: this site's address in federation.yaml
# http: 127.0.0.1:8080                       # live page
# wait: 10m                                  # for the other sites
`

var isTable = regexp.MustCompile(`\.(csv|tsv|parquet)(\.gz|\.zst)?$`)

// WriteSite implements federation.SiteWriter.
func (SiteWriter) WriteSite(of cli.SiteFile, federation string, text io.Writer) error {
	if _, err := os.Stat(cli.SitePath); err == nil {
		return cli.Invalidf("%s exists: remove it, or change it by hand", cli.SitePath)
	}
	files, err := os.ReadDir(".")
	if err != nil {
		return err
	}
	var tables []*seen
	for _, file := range files {
		if isTable.MatchString(file.Name()) {
			t, err := look(file.Name())
			if err != nil {
				return cli.Invalid(err)
			}
			tables = append(tables, t)
		}
	}
	joins := func(edges, nodes *seen) bool {
		_, target := edges.ends(nodes)
		return target >= 0
	}
	// An ID for each row does not make a table of nodes: edges may be numbered, too. So a table whose columns name
	// nodes of another one is not taken.
	at := slices.IndexFunc(tables, func(t *seen) bool {
		return t.id >= 0 && !slices.ContainsFunc(tables, func(nodes *seen) bool { return joins(t, nodes) })
	})
	if at < 0 {
		return cli.Invalidf("a table of nodes must be here, .csv, .tsv or .parquet, with a column that has another "+
			"value in each row (got %d tables)", len(tables))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, siteHead, given("site", of.Site)+given("\nhost", of.Host)+given("\nidentity", of.Identity)+
		given("\ninvited_by", of.Inviter))
	nodes := tables[at]
	texts, err := nodes.describe(&b)
	if err != nil {
		return cli.Invalid(err)
	}
	used := 1
	if k := slices.IndexFunc(tables, func(t *seen) bool { return joins(t, nodes) }); k >= 0 {
		used++
		tables[k].describeEdges(&b, nodes, of.Site)
	}
	if used < len(tables) {
		fmt.Fprintf(&b, "# There are %d more tables. Nodes of several types each have type: TYPE next to nodes:, and\n"+
			"# edges relation: SOURCE-RELATION-TARGET.\n", len(tables)-used)
	}
	rules := ""
	for line := range strings.Lines(admission.Template("hospital", federation)) {
		if federation != "" || !strings.HasPrefix(line, "federation:") {
			rules += "  " + line
		}
	}
	fmt.Fprintf(&b, siteTail, strings.Join(texts, ", "), rules)
	if err := cli.WriteText(nil, cli.SitePath, b.String()); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if role, ok := strings.CutPrefix(line, "    "); ok {
			fmt.Fprint(text, "guessed  ", role)
		}
	}
	fmt.Fprintf(text, "%s: read it and correct what is wrong; then heddle take-part\n", cli.SitePath)
	return nil
}

// given is a line of the file, or nothing.
func given(key, value string) string {
	if value == "" {
		return ""
	}
	return key + ": " + quoted(value)
}

// quoted is a text as YAML.
func quoted(text string) string {
	out, err := yaml.Marshal(text)
	if err != nil {
		panic(err) // a text always has a form
	}
	return strings.TrimSpace(string(out))
}

// look reads the start of a table.
func look(file string) (*seen, error) {
	t, err := table.Open(file, table.Format{})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s := &seen{file: file, columns: t.Columns, values: make([]map[string]bool, len(t.Columns)), id: -1}
	for len(s.rows) < guessRows {
		cells, _, err := t.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		row := make([]string, len(cells))
		for k, cell := range cells {
			row[k] = strings.Clone(strings.TrimSpace(cell))
		}
		s.rows = append(s.rows, row)
	}
	usual := t.Find(t.NameColumn())
	for k := range s.columns {
		s.values[k] = map[string]bool{}
		for _, row := range s.rows {
			if !table.Missing(row[k]) {
				s.values[k][row[k]] = true
			}
		}
		if n := len(s.values[k]); n > 0 && n == len(s.rows) && (s.id < 0 || k == usual) {
			s.id = k
		}
	}
	return s, nil
}

// ends returns the columns of s with names of nodes if it is a table of edges, else −1. Nearly all sources are here;
// targets may be at other sites. Shares of rows decide, not names of columns: more than 9 in 10 rows name a node here
// for a source, more than 1 in 10 for a target.
func (s *seen) ends(nodes *seen) (source, target int) {
	if s == nodes || nodes.id < 0 || len(s.columns) < 2 {
		return -1, -1
	}
	here, order := make([]int, len(s.columns)), make([]int, len(s.columns))
	for k := range s.columns {
		order[k] = k
		for _, row := range s.rows {
			if nodes.values[nodes.id][row[k]] {
				here[k]++
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(here[b], here[a]) })
	if 10*here[order[0]] <= 9*len(s.rows) || 10*here[order[1]] <= len(s.rows) {
		return -1, -1
	}
	return order[0], order[1]
}

// describe writes a table of nodes, and returns the columns whose texts others would get.
func (s *seen) describe(w io.Writer) (texts []string, err error) {
	p, err := dataset.ImportConfig{Nodes: s.file, ID: s.columns[s.id]}.Profile()
	if err != nil {
		return nil, err
	}
	// The last, since tables most often end with the target. A site or a code with few values fits as well, so the line
	// in the file asks.
	label := -1 // the last column of few values
	for k := range s.columns {
		if n := len(s.values[k]); k != s.id && n > 1 && n <= 20 && !s.isSplit(k) {
			label = k
		}
	}
	fmt.Fprintf(w, "- nodes: %s\n  columns:\n", quoted(s.file))
	for k, column := range s.columns {
		role, why := "feature", fmt.Sprintf("%d values", len(s.values[k]))
		at := slices.IndexFunc(p.Columns, func(c dataset.ColumnProfile) bool { return c.Name == column })
		switch {
		case k == s.id:
			role, why = "id", "another value in each row"
		case k == label:
			role, why = "label", why+"; what is to be predicted?"
		case s.isSplit(k):
			role, why = "split", "its values"
		case at >= 0 && p.Columns[at].Kind == table.Ignored:
			role, why = "ignore", p.Columns[at].Why
		case at >= 0:
			role, why = string(p.Columns[at].Kind), cmp.Or(p.Columns[at].Why, why)
		}
		if role == string(table.Categorical) {
			texts = append(texts, quoted(column))
		}
		fmt.Fprintf(w, "    %-24s  # %s\n", quoted(column)+": "+role, why)
	}
	if label < 0 {
		fmt.Fprintf(w, "    # No column looks like a label: give one the role label, if this site knows it.\n")
	}
	return texts, nil
}

// isSplit reports whether a column has the names of splits.
func (s *seen) isSplit(column int) bool {
	for value := range s.values[column] {
		if !slices.Contains([]string{"train", "val", "test", "none"}, value) {
			return false
		}
	}
	return len(s.values[column]) > 0
}

// describeEdges writes a table of edges between nodes of the site here and others.
func (s *seen) describeEdges(w io.Writer, nodes *seen, here string) {
	source, target := s.ends(nodes)
	fmt.Fprintf(w, "- edges: %s\n  columns:\n", quoted(s.file))
	for k, column := range s.columns {
		role, why, agree := "ignore", "not part of an edge", 0
		for _, row := range s.rows {
			// The column is right for a row if it names no other site just when the target is known here. 95 in 100
			// rows must agree: names may occur at two sites.
			if (table.Missing(row[k]) || row[k] == here) == nodes.values[nodes.id][row[target]] {
				agree++
			}
		}
		switch {
		case k == source:
			role, why = "source", "names of "+nodes.file
		case k == target:
			role, why = "target", "names of "+nodes.file+", or of another site"
		case len(s.values[k]) > 0 && 100*agree >= 95*len(s.rows):
			role, why = "target-site", "has a value if the target is not here"
		}
		fmt.Fprintf(w, "    %-24s  # %s\n", quoted(column)+": "+role, why)
	}
}
