package graphs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/cli"
)

// Roles of columns and the flags of heddle match that give them.
var (
	nodeRoles = map[string]string{"id": "id-column", "label": "label-column", "labels": "label-column",
		"number": "label-column", "split": "split-column", "site": "site-column", "numeric": "numeric",
		"categorical": "categorical", "text": "text", "date": "date", "age": "age", "ignore": "ignore", "feature": ""}
	edgeRoles = map[string]string{"source": "source-column", "target": "target-column", "weight": "weight-column",
		"source-site": "source-site-column", "target-site": "target-site-column", "type": "relation-column",
		"feature": "edge-columns", "ignore": ""}
)

// SiteMatching returns heddle match with what site.yaml sets instead of flags. It sets flags rather than fields, so
// that the checks and error texts of the command apply, and a flag that is added there can be set here.
func SiteMatching(f *cli.SiteFile) (*Matching, error) {
	const path = cli.SitePath
	m := new(Matching)
	flags := m.command().Flags()
	m.Site.Network.Listen, m.Site.Wait = f.Listen, f.Wait
	m.Identity = f.Identity
	if len(f.Tables) == 0 {
		return nil, cli.Invalidf("%s must have tables (got none)", path)
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
		if err := setTable(t, flags, m.tables.Format); err != nil {
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

// setTable sets the flags of the table, which must have these columns and no others: a new one must not leave this site
// before a person has given it a role.
func setTable(t cli.SiteTable, flags *pflag.FlagSet, format table.Format) error {
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
		at, err := of.Column(c.Column, "tables, columns")
		if err != nil {
			return fmt.Errorf("line %d: %w", c.Line, err)
		}
		listed[of.Columns[at]] = true
		role, more, with := strings.Cut(c.Role, ":")
		flag, known := roles[role]
		if !known {
			return fmt.Errorf("line %d: role of column %s must be one of %s (got %q)", c.Line, c.Column,
				strings.Join(slices.Sorted(maps.Keys(roles)), ", "), c.Role)
		}
		name := prefix + c.Column
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
			return fmt.Errorf("line %d: %w", c.Line, err)
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
