package typed

import "github.com/heddle-gnn/heddle/graph/dataset"

// SiteTables are one site's tables of a graph of several types that several sites hold together (package
// align). Their roles are known, and none is read yet.
type SiteTables struct {
	Encoding *Encoding              // names of types and relations, without Of
	Nodes    []dataset.ImportConfig // of each of Encoding.Nodes
	Edges    []EdgeTable            // of each of Encoding.Edges
}

// EdgeTable is a table of edges, some of which may end at nodes of other sites.
type EdgeTable struct {
	dataset.ImportConfig
	SourceSite, TargetSite string // columns with the sites of the ends ("" = all are here)
}

// Site finds the tables of one site, which may lack types that other sites have, even if its
// edges end at them. If Tables.Like is a model's encoding, all must be of its types and relations.
// sourceSite and targetSite are columns, as COLUMN or SOURCE-RELATION-TARGET.COLUMN.
func (c Config) Site(sourceSite, targetSite string) (*SiteTables, error) {
	r := &tablesReader{config: c}
	r.Part = true
	if _, err := r.begin(); err != nil {
		return nil, err
	}
	columns, target, err := r.roles()
	if err != nil {
		return nil, err
	}
	t := &SiteTables{Encoding: &r.Encoding}
	for k := range r.Encoding.Nodes {
		t.Nodes = append(t.Nodes, r.nodeConfig(k, columns[r.Encoding.Nodes[k].Type], k == target))
	}
	for k := range r.Encoding.Edges {
		name := r.Encoding.Edges[k].Name()
		t.Edges = append(t.Edges, EdgeTable{r.edgeConfig(k, columns[name]),
			r.one(sourceSite, name, columns[name]), r.one(targetSite, name, columns[name])})
	}
	return t, nil
}
