package graphs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/yamltext"
)

// SitePath is the file of what one site brings and allows.
const SitePath = "site.yaml"

// SiteFile is site.yaml. It replaces the flags of the steps that heddle take-part does.
type SiteFile struct {
	Site     string        `yaml:"site"`     // as the plan names it
	Identity string        `yaml:"identity"` // key file (empty = the user's)
	Listen   []string      `yaml:"listen"`   // multiaddresses (none = the plan's)
	Wait     time.Duration `yaml:"wait"`     // for the other sites
	HTTP     string        `yaml:"http"`     // address of the live page (empty = none)
	State    string        `yaml:"state"`    // directory of parts, checkpoints and approvals
	Out      string        `yaml:"out"`      // directory of models, reports and predictions
	Tables   []siteTable   `yaml:"tables"`
	Match    yaml.MapSlice `yaml:"match"`     // further flags of heddle match
	MayLeave any           `yaml:"may_leave"` // the policy, which admission.ReadPolicy reads (nil = none)
}

// siteTable is a table of nodes or of edges.
type siteTable struct {
	Nodes    string      `yaml:"nodes"` // file; or
	Edges    string      `yaml:"edges"`
	Type     string      `yaml:"type"`     // of the nodes, if there are several types
	Relation string      `yaml:"relation"` // of the edges, SOURCE-RELATION-TARGET
	Columns  columnRoles `yaml:"columns"`
}

// columnRoles has a role for each column of a table.
type columnRoles []columnRole

type columnRole struct {
	column, role string
	line         int
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (c *columnRoles) UnmarshalYAML(node ast.Node) error {
	var pairs []*ast.MappingValueNode
	switch of := node.(type) {
	case *ast.MappingNode:
		pairs = of.Values
	case *ast.MappingValueNode:
		pairs = append(pairs, of)
	default:
		return fmt.Errorf("columns must have a line \"column: role\" each (got %.40q)", node)
	}
	for _, pair := range pairs {
		*c = append(*c, columnRole{pair.Key.GetToken().Value, strings.TrimSpace(pair.Value.GetToken().Value),
			pair.Key.GetToken().Position.Line})
		// A quoted role or a block of text: the token is what was written, the value is what it means.
		if pair.Value.Type() == ast.StringType || pair.Value.Type() == ast.LiteralType {
			(*c)[len(*c)-1].role = pair.Value.(ast.ScalarNode).GetValue().(string)
		}
	}
	return nil
}

// Roles of columns and the flags of heddle match that give them.
var (
	nodeRoles = map[string]string{"id": "id-column", "label": "label-column", "labels": "label-column",
		"number": "label-column", "split": "split-column", "site": "site-column", "numeric": "numeric",
		"categorical": "categorical", "text": "text", "date": "date", "age": "age", "ignore": "ignore", "feature": ""}
	edgeRoles = map[string]string{"source": "source-column", "target": "target-column", "weight": "weight-column",
		"source-site": "source-site-column", "target-site": "target-site-column", "type": "relation-column",
		"feature": "edge-columns", "ignore": ""}
)

// ReadSite reads the file at path.
func ReadSite(path string) (*SiteFile, error) {
	f := &SiteFile{Wait: 10 * time.Minute, State: "state", Out: "results"}
	text, err := cli.ReadStart(path, yamltext.MaxLen)
	if err != nil {
		return nil, cli.Invalid(err)
	}
	if _, err := yamltext.Pairs(text); err != nil {
		return nil, cli.Invalidf("%s: %w", path, err)
	}
	if err := yaml.UnmarshalWithOptions(text, f, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return nil, cli.Invalidf("%s: %w", path, yamltext.Readable(err))
	}
	if f.Site == "" || len(f.Tables) == 0 {
		return nil, cli.Invalidf("%s must have site, the name of this site, and tables (got %q and %d tables)", path,
			f.Site, len(f.Tables))
	}
	return f, nil
}

// Matching returns heddle match with what the file at path sets instead of flags. It sets flags rather than fields, so
// that the checks and error texts of the command apply, and a flag that is added there can be set here.
func (f *SiteFile) Matching(path string) (*Matching, error) {
	m := new(Matching)
	flags := m.command().Flags()
	m.Site.Network.Listen, m.Site.Wait = f.Listen, f.Wait
	if f.Identity != "" {
		m.Identity = f.Identity
	}
	for _, one := range f.Match {
		values, list := one.Value.([]any)
		if !list {
			values = []any{one.Value}
		}
		for _, v := range values {
			if err := setFlag(flags, strings.ReplaceAll(fmt.Sprint(one.Key), "_", "-"), fmt.Sprint(v)); err != nil {
				return nil, cli.Invalidf("%s: match: %w", path, err)
			}
		}
	}
	for _, t := range f.Tables {
		if err := t.set(flags, m.tables.Format); err != nil {
			return nil, cli.Invalidf("%s: %w", path, err)
		}
	}
	return m, nil
}

// setFlag sets a flag, or adds to its list.
func setFlag(flags *pflag.FlagSet, name, value string) error {
	flag := flags.Lookup(name)
	if flag == nil {
		return fmt.Errorf("%s must be a flag of heddle match", name)
	}
	if list, ok := flag.Value.(pflag.SliceValue); ok { // one column may have a comma in its name
		return list.Append(value)
	}
	if flag.Changed && flag.Value.String() != value {
		return fmt.Errorf("only one column may be --%s (got %s and %s)", name, flag.Value, value)
	}
	return flags.Set(name, value)
}

// set sets the flags of the table, which must have these columns and no others: a new one must not leave this site
// before a person has given it a role.
func (t siteTable) set(flags *pflag.FlagSet, format table.Format) error {
	file, kind, flag, roles := t.Nodes, t.Type, "nodes", nodeRoles
	if t.Edges != "" {
		file, kind, flag, roles = t.Edges, t.Relation, "edges", edgeRoles
	}
	if (t.Nodes == "") == (t.Edges == "") {
		return fmt.Errorf("each of tables must have nodes or edges, a file (got %q and %q)", t.Nodes, t.Edges)
	}
	format.Edges = t.Edges != ""
	of, err := table.Open(file, format)
	if err != nil {
		return err
	}
	defer of.Close()
	listed := map[string]bool{}
	prefix := ""
	if kind != "" {
		prefix, file = kind+".", kind+"="+file
	}
	if err := setFlag(flags, flag, file); err != nil {
		return err
	}
	for _, c := range t.Columns {
		at, err := of.Column(c.column, "tables, columns")
		if err != nil {
			return fmt.Errorf("line %d: %w", c.line, err)
		}
		listed[of.Columns[at]] = true
		role, more, with := strings.Cut(c.role, ":")
		flag, known := roles[role]
		if !known {
			return fmt.Errorf("line %d: role of column %s must be one of %s (got %q)", c.line, c.column,
				strings.Join(slices.Sorted(maps.Keys(roles)), ", "), c.role)
		}
		name := prefix + c.column
		if with {
			name += ":" + more
		}
		if also := map[string]string{"labels": "multi", "number": "regression"}[role]; also != "" {
			err = setFlag(flags, also, "true")
		}
		if err == nil && flag != "" {
			err = setFlag(flags, flag, name)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", c.line, err)
		}
	}
	// An export that gains a column, as a name or an address, must stop here and not become a feature that leaves.
	for _, name := range of.Columns {
		if !listed[name] {
			return fmt.Errorf("%s: line 1: column %q has no role: add it to the columns of this table, if need be as "+
				"%s: ignore", of.Path, name, name)
		}
	}
	return nil
}

// Names returns the files of the tables.
func (f *SiteFile) Names() (files []string) {
	for _, t := range f.Tables {
		files = append(files, t.Nodes+t.Edges)
	}
	return files
}
