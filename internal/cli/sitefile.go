package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/yamltext"
)

// The two files of a site that takes part.
const (
	SitePath       = "site.yaml"       // what this site brings and allows
	FederationPath = "federation.yaml" // that all sites have: plan, members and signatures
)

// SiteFile is site.yaml. It replaces the flags of the steps that heddle take-part does.
type SiteFile struct {
	Site     string        `yaml:"site"`       // as the plan names it
	Identity string        `yaml:"identity"`   // key file (default: the user's)
	Host     string        `yaml:"host"`       // HOST[:PORT] at which others reach it (empty = it only dials out)
	Inviter  string        `yaml:"invited_by"` // ID of a member that federation.yaml must have (empty = any)
	Listen   []string      `yaml:"listen"`     // multiaddresses (none = the plan's)
	Wait     time.Duration `yaml:"wait"`       // for the other sites
	HTTP     string        `yaml:"http"`       // address of the live page (empty = none)
	State    string        `yaml:"state"`      // directory of parts, checkpoints and approvals
	Out      string        `yaml:"out"`        // directory of models, reports and predictions
	Part     string        `yaml:"part"`       // directory of the part that heddle join takes, without tables
	Tables   []SiteTable   `yaml:"tables"`
	Match    yaml.MapSlice `yaml:"match"`     // further flags of heddle match
	MayLeave any           `yaml:"may_leave"` // the policy, which admission.ReadPolicy reads (nil = none)
}

// SiteTable is a table of nodes or of edges.
type SiteTable struct {
	Nodes    string      `yaml:"nodes"`    // file; or
	Edges    string      `yaml:"edges"`    // file
	Type     string      `yaml:"type"`     // of the nodes, if there are several types
	Relation string      `yaml:"relation"` // of the edges, SOURCE-RELATION-TARGET
	Columns  ColumnRoles `yaml:"columns"`
}

// ColumnRoles has a role for each column of a table.
type ColumnRoles []ColumnRole

// ColumnRole is the role of a column, and its line in the file.
type ColumnRole struct {
	Column, Role string
	Line         int `yaml:"-"`
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (c *ColumnRoles) UnmarshalYAML(node ast.Node) error {
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
		*c = append(*c, ColumnRole{pair.Key.GetToken().Value, strings.TrimSpace(pair.Value.GetToken().Value),
			pair.Key.GetToken().Position.Line})
		// A quoted role or a block of text: the token is what was written, the value is what it means.
		if pair.Value.Type() == ast.StringType || pair.Value.Type() == ast.LiteralType {
			(*c)[len(*c)-1].Role = pair.Value.(ast.ScalarNode).GetValue().(string)
		}
	}
	return nil
}

// ReadSite reads site.yaml in the present folder.
func ReadSite() (*SiteFile, error) {
	const path = SitePath
	f := &SiteFile{Identity: DefaultIdentity(), Wait: 10 * time.Minute, State: "state", Out: "results", Part: "part"}
	text, err := disk.ReadStart(path, yamltext.MaxLen)
	if err != nil {
		return nil, Invalid(err)
	}
	if _, err := yamltext.Pairs(text); err != nil {
		return nil, Invalidf("%s: %w", path, err)
	}
	if err := yaml.UnmarshalWithOptions(text, f, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return nil, Invalidf("%s: %w", path, yamltext.Readable(err))
	}
	if f.Site == "" {
		return nil, Invalidf("%s must have site, the name of this site (got none)", path)
	}
	return f, nil
}

// SetFlags sets the flags of heddle join that are not given, so the same checks and error texts apply, and g as Require
// does.
func (f *SiteFile) SetFlags(flags *pflag.FlagSet, g *gate.Files) (*admission.Policy, error) {
	for name, value := range map[string]string{"shard": f.Part, "identity": f.Identity, "http": f.HTTP,
		"state": filepath.Join(f.State, "checkpoints"), "out": f.Out, "wait": f.Wait.String(),
		"listen": strings.Join(f.Listen, ",")} {
		if value != "" && !flags.Changed(name) {
			if err := flags.Set(name, value); err != nil {
				return nil, Invalidf("%s: %s: %w", SitePath, name, err)
			}
		}
	}
	if flags.Changed("policy") {
		return nil, nil
	}
	return f.Require(g)
}

// Require sets what this site and the federation ask for before a run, and returns the site's policy (nil = none).
func (f *SiteFile) Require(g *gate.Files) (*admission.Policy, error) {
	text, err := os.ReadFile(FederationPath)
	if err != nil {
		return nil, Invalid(err)
	}
	name := admission.Federation(text)
	if f.MayLeave == nil {
		if name != "" {
			return nil, Invalidf("%s must have may_leave, as %s is of federation %s (got none)", SitePath,
				FederationPath, name)
		}
		return nil, nil
	}
	rules, err := admission.ReadPolicy(SitePath)
	if err != nil {
		return nil, Invalid(err)
	}
	g.Policy = SitePath
	if name != "" {
		rules = rules.In(name)
		g.Roster, g.Approval = FederationPath, filepath.Join(f.State, "approval.json")
		g.Audit = filepath.Join(f.State, "audit.jsonl")
	}
	return &rules, nil
}

// Check checks that the plan has the member that invited this site, and names the member of this rank as the file does.
func (f *SiteFile) Check(p *heddle.Plan, rank int) error {
	if name := p.Members[rank].Name; name != f.Site {
		return Invalidf("%s: site must be %s, as %s names the member with this key (got %s)", SitePath, name,
			FederationPath, f.Site)
	}
	if f.Inviter == "" {
		return nil
	}
	if _, err := p.Rank(f.Inviter); err != nil {
		return Invalidf("%s must have the member that invited this site (%s: invited_by): %w", FederationPath, SitePath,
			err)
	}
	return nil
}

// Member is the site as an argument of heddle plan.
func (f *SiteFile) Member(id string) string {
	if f.Host == "" {
		return f.Site + "=" + id
	}
	return f.Site + "=" + id + "@" + f.Host
}

// Brings returns the settings that decide which part of a graph the site makes of its tables, without its addresses and
// waits.
func (f *SiteFile) Brings() ([]byte, error) {
	return yaml.Marshal(SiteFile{Site: f.Site, Tables: f.Tables, Match: f.Match})
}

// Names returns the files of the tables.
func (f *SiteFile) Names() (files []string) {
	for _, t := range f.Tables {
		files = append(files, t.Nodes+t.Edges)
	}
	return files
}
