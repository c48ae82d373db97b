package table

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// graphMLSuffix is that of GraphML (graphml.graphdrawing.org), which networkx, igraph, Gephi and yEd
// write.
const graphMLSuffix = ".graphml"

// Holds reports whether a file of that name has a table of nodes and one of edges.
func Holds(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst"), graphMLSuffix)
}

// graphML reads the nodes or the edges of a GraphML file.
type graphML struct {
	t       *Table
	in      *xml.Decoder
	element string         // node or edge
	own     []string       // attributes of the element that are columns
	place   map[string]int // of each key
	preset  []string       // cells of a row that says nothing
	ready   *xml.StartElement
}

// openGraphML reads the keys, which come before the graph. Columns are the nodes' id, or the edges'
// source and target, and an attribute for each key; one that has the name of these is called
// attribute.NAME. Directions are not kept, a graph within a node is a part of the one around it, and
// a hyperedge is refused.
func (t *Table) openGraphML() error {
	g := &graphML{t: t, element: "node", own: []string{"id"}, place: map[string]int{}}
	if t.format.Edges {
		g.element, g.own = "edge", []string{"source", "target"}
	}
	t.Columns, t.Unit = slices.Clone(g.own), "line"
	g.preset = make([]string, len(g.own))
	g.in = xml.NewDecoder(&counted{r: t.Reader, watch: t.format.Watch})
	g.in.CharsetReader = func(label string, r io.Reader) (io.Reader, error) {
		switch strings.ToLower(label) {
		case "iso-8859-1":
			label = "latin1"
		}
		if c := charsets[strings.ToLower(label)]; c != nil {
			return c.NewDecoder().Reader(r), nil
		}
		return nil, fmt.Errorf("encoding must be utf-8, iso-8859-1 or windows-1252 (got %.20q)", label)
	}
	for g.ready == nil {
		start, err := g.start()
		if err == io.EOF {
			return errors.New("the file has no <graph>")
		}
		if err != nil {
			return err
		}
		switch start.Name.Local {
		case "key":
			if err := g.key(start); err != nil {
				return err
			}
		case "graph":
			g.ready = start
		}
	}
	t.Read = g.read
	return nil
}

// start returns the next element that begins.
func (g *graphML) start() (*xml.StartElement, error) {
	for {
		token, err := g.in.Token()
		if err != nil {
			return nil, err
		}
		if start, ok := token.(xml.StartElement); ok {
			return &start, nil
		}
	}
}

func attribute(e *xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// key adds the column of a key, if it is of the elements that are read.
func (g *graphML) key(e *xml.StartElement) error {
	var inner struct {
		Default string `xml:"default"`
	}
	if err := g.in.DecodeElement(&inner, e); err != nil {
		return err
	}
	id, of := attribute(e, "id"), attribute(e, "for")
	if of != g.element && of != "all" && of != "" {
		return nil
	}
	name := attribute(e, "attr.name")
	if name == "" {
		name = id
	}
	if slices.Contains(g.own, name) {
		name = "attribute." + name
	}
	g.place[id] = len(g.t.Columns)
	g.t.Columns, g.preset = append(g.t.Columns, name), append(g.preset, strings.TrimSpace(inner.Default))
	return nil
}

// read returns the next node or edge.
func (g *graphML) read() ([]string, int, error) {
	for {
		start, err := g.start()
		if err == io.EOF {
			return nil, 0, io.EOF
		}
		line, _ := g.in.InputPos()
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("line %d: %w", line, err)
		case start.Name.Local == "hyperedge":
			return nil, 0, fmt.Errorf("line %d: an edge must join two nodes (got a hyperedge)", line)
		case start.Name.Local == g.element:
			cells, err := g.row(start)
			if err != nil {
				return nil, 0, fmt.Errorf("line %d: %w", line, err)
			}
			return cells, line, nil
		}
	}
}

// row reads the data of an element up to its end, or to the graph within it.
func (g *graphML) row(e *xml.StartElement) ([]string, error) {
	cells := slices.Clone(g.preset)
	for k, name := range g.own {
		cells[k] = attribute(e, name)
	}
	for {
		token, err := g.in.Token()
		if err != nil {
			return nil, Ended(err)
		}
		switch x := token.(type) {
		case xml.EndElement:
			if x.Name.Local == e.Name.Local {
				return cells, nil
			}
		case xml.StartElement:
			if x.Name.Local == "graph" {
				return cells, nil
			}
			if x.Name.Local != "data" {
				if err := g.in.Skip(); err != nil {
					return nil, Ended(err)
				}
				continue
			}
			var text string
			if err := g.in.DecodeElement(&text, &x); err != nil {
				return nil, Ended(err)
			}
			if at, ok := g.place[attribute(&x, "key")]; ok {
				cells[at] = strings.TrimSpace(text)
			}
		}
	}
}
