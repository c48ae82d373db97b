package dgl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

const (
	defaultNode = "_N"
	defaultEdge = "_N:_E:_N"
	maxConfig   = 1 << 26 // bytes of NAME.json
	maxParts    = 1 << 16
	maxTypes    = 1 << 15 // DGL stores the type of a node in 16 bits
)

// Range is a run of IDs, [0] up to [1].
type Range [2]int64

func (r Range) len() int64 { return r[1] - r[0] }

// config is NAME.json.
type config struct {
	Name      string          `json:"graph_name"`
	Parts     int             `json:"num_parts"`
	Nodes     int64           `json:"num_nodes"`
	Edges     int64           `json:"num_edges"`
	Method    string          `json:"part_method"`
	NodeMap   json.RawMessage `json:"node_map"`
	EdgeMap   json.RawMessage `json:"edge_map"`
	NodeTypes map[string]int  `json:"ntypes"`
	EdgeTypes map[string]int  `json:"etypes"`

	nodes, edges types   // by type, then part
	files        []files // of each part
}

// types are the kinds of nodes or edges in the order of their numbers, with each part's run of IDs.
type types struct {
	names  []string
	ranges [][]Range // [type][part]
}

type files struct {
	Nodes     string `json:"node_feats"`
	Edges     string `json:"edge_feats"`
	Graph     string `json:"part_graph"`
	Graphbolt string `json:"part_graph_graphbolt"`
}

// parseConfig reads NAME.json, as DGL 1.0 and later write it and as versions before did: relations
// without the types of their ends, maps that are lists of ends, one map if there are no types.
func parseConfig(path string, b []byte) (*config, error) {
	c := &config{}
	fail := func(format string, args ...any) (*config, error) {
		return nil, fmt.Errorf("%s: %w", path, fmt.Errorf(format, args...))
	}
	if err := json.Unmarshal(b, c); err != nil {
		return fail("%w", err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return fail("%w", err)
	}
	if c.Parts < 1 || c.Parts > maxParts {
		return fail("num_parts must be 1 to %d (got %d)", maxParts, c.Parts)
	}
	if c.Nodes < 0 || c.Nodes > math.MaxInt32 || c.Edges < 0 {
		return fail("num_nodes must be 0 to %d and num_edges 0 or more (got %d and %d)", math.MaxInt32, c.Nodes,
			c.Edges)
	}
	for p := range c.Parts {
		key := fmt.Sprintf("part-%d", p)
		var f files
		if parts[key] == nil {
			return fail("%s is missing: there must be num_parts = %d of them", key, c.Parts)
		}
		if err := json.Unmarshal(parts[key], &f); err != nil {
			return fail("%s: %w", key, err)
		}
		if f.Graph == "" && f.Graphbolt != "" {
			return fail("%s: a partition for GraphBolt (part_graph_graphbolt), whose graphs are pickled Python "+
				"objects: write it with partition_graph(…, use_graphbolt=False)", key)
		}
		for name, file := range map[string]string{"part_graph": f.Graph, "node_feats": f.Nodes, "edge_feats": f.Edges} {
			if !filepath.IsLocal(filepath.FromSlash(file)) {
				return fail("%s: %s must be a path below the folder of this file (got %q)", key, name, file)
			}
		}
		c.files = append(c.files, f)
	}
	var err error
	if c.nodes, err = parseTypes(c.NodeTypes, c.NodeMap, defaultNode, c.Parts, c.Nodes); err != nil {
		return fail("node_map: %w", err)
	}
	if c.edges, err = parseTypes(c.EdgeTypes, c.EdgeMap, defaultEdge, c.Parts, c.Edges); err != nil {
		return fail("edge_map: %w", err)
	}
	return c, nil
}

// parseTypes puts the map of one kind of thing into the order of the types' numbers, and checks
// that the runs follow on each other by part, then by type, from 0 to total.
func parseTypes(ids map[string]int, text json.RawMessage, standard string, parts int,
	total int64) (t types, err error) {
	text = bytes.TrimSpace(text)
	listed := map[string]json.RawMessage{}
	switch {
	case len(text) == 0:
		return t, errors.New("missing")
	case text[0] == '"':
		return t, errors.New("must be a map of ranges (got the name of a file of owners, which DGL does not read " +
			"either: write it with reshuffle=True)")
	case text[0] == '[':
		listed[standard] = text
	default:
		if err := json.Unmarshal(text, &listed); err != nil {
			return t, err
		}
	}
	if ids == nil {
		ids = map[string]int{standard: 0}
		if len(listed) == 1 { // its one type may be called otherwise
			for name := range listed {
				ids = map[string]int{name: 0}
			}
		}
	}
	if len(ids) == 0 || len(ids) > maxTypes || len(ids) != len(listed) {
		return t, fmt.Errorf("the map and the numbers must have the same 1 to %d types (got %d and %d)", maxTypes,
			len(listed), len(ids))
	}
	t.names, t.ranges = make([]string, len(ids)), make([][]Range, len(ids))
	for _, name := range slices.Sorted(maps.Keys(ids)) { // so that a fault is named alike each time
		id := ids[name]
		if id < 0 || id >= len(ids) || t.ranges[id] != nil {
			return t, fmt.Errorf("number of type %q must be one of 0 to %d that no other type has (got %d)", name,
				len(ids)-1, id)
		}
		if listed[name] == nil {
			return t, fmt.Errorf("type %q is missing", name)
		}
		t.names[id] = name
		if t.ranges[id], err = parseRanges(listed[name], parts); err != nil {
			return t, fmt.Errorf("type %q: %w", name, err)
		}
	}
	at := int64(0)
	for p := range parts {
		for k, ranges := range t.ranges {
			if ranges[p][0] != at || ranges[p][1] < at {
				return t, fmt.Errorf("range of type %q in part %d must begin at %d (got %v)", t.names[k], p, at,
					ranges[p])
			}
			at = ranges[p][1]
		}
	}
	if at != total {
		return t, fmt.Errorf("ranges must end at the total, %d (got %d)", total, at)
	}
	return t, nil
}

// parseRanges reads a range for each part, or the old list of their ends.
func parseRanges(text json.RawMessage, parts int) ([]Range, error) {
	var ranges []Range
	var ends []int64
	if err := json.Unmarshal(text, &ends); err == nil {
		start := int64(0)
		for _, end := range ends {
			ranges = append(ranges, Range{start, end})
			start = end
		}
	} else {
		var pairs [][]int64
		if err := json.Unmarshal(text, &pairs); err != nil {
			return nil, fmt.Errorf("must be [start, end] for each part, or the ends: %w", err)
		}
		for p, pair := range pairs {
			if len(pair) != 2 {
				return nil, fmt.Errorf("part %d must have [start, end] (got %d numbers)", p, len(pair))
			}
			ranges = append(ranges, Range(pair))
		}
	}
	if len(ranges) != parts {
		return nil, fmt.Errorf("there must be %d parts (got %d)", parts, len(ranges))
	}
	return ranges, nil
}

// of returns the run of part p over all types.
func (t types) of(p int) Range { return Range{t.ranges[0][p][0], t.ranges[len(t.ranges)-1][p][1]} }

// find returns the number of the type of that name: of an edge, the whole name or, as old files have it, only the
// relation. It is −1 if there is none, or more than one.
func (t types) find(name string) int {
	found := -1
	for k, have := range t.names {
		if have == name {
			return k
		}
		if f := strings.Split(have, ":"); len(f) == 3 && f[1] == name {
			if found >= 0 {
				return -1
			}
			found = k
		}
	}
	return found
}
