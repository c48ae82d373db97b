package graph

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph/section"
)

// Types are the types of the nodes of a graph, T of them. Each type's features have their own columns among the columns
// of Features: a node's row is zero in the columns of other types, which a sparse row does not store. A linear layer
// over all columns is then a projection for each type. The zero value is a graph whose nodes all have one type.
type Types struct {
	Names []string // [T]
	Of    []uint8  // [N] type of each node
	Ptr   []int64  // [T+1] type t's features are columns [Ptr[t], Ptr[t+1]) (nil = the types share all columns)
}

// maxTypes bounds T.
const maxTypes = 1 << 8

// Count returns T; 0 where nodes have no types.
func (t Types) Count() int { return len(t.Names) }

// Columns returns the columns [lo, hi) of that type, of `all` columns.
func (t Types) Columns(kind, all int) (lo, hi int) {
	if t.Ptr == nil {
		return 0, all
	}
	return int(t.Ptr[kind]), int(t.Ptr[kind+1])
}

// Nodes returns how many nodes there are of each type.
func (t Types) Nodes() []int {
	n := make([]int, len(t.Names))
	for _, kind := range t.Of {
		n[kind]++
	}
	return n
}

// Select returns the types of the given nodes.
func (t Types) Select(nodes []int32) Types {
	if t.Count() == 0 {
		return Types{}
	}
	return Types{Names: t.Names, Ptr: t.Ptr, Of: selectRows(t.Of, 1, nodes)}
}

// Valid returns an error that names the first broken invariant of the types of n nodes with
// features x, or nil.
func (t Types) Valid(n int, x Features) error {
	if t.Count() == 0 {
		if t.Of != nil || t.Ptr != nil {
			return fmt.Errorf("nodes of no type must have neither types nor columns of one (got %d and %d)",
				len(t.Of), len(t.Ptr))
		}
		return nil
	}
	if t.Count() > maxTypes || len(t.Of) != n {
		return fmt.Errorf("there must be at most %d types and one for each of %d nodes (got %d and %d)",
			maxTypes, n, t.Count(), len(t.Of))
	}
	for k, name := range t.Names {
		if name == "" || slices.Contains(t.Names[:k], name) {
			return fmt.Errorf("name of node type %d must be given and differ from the others (got %q)", k, name)
		}
	}
	for i, kind := range t.Of {
		if int(kind) >= t.Count() {
			return fmt.Errorf("type of node %d must be 0 to %d (got %d)", i, t.Count()-1, kind)
		}
	}
	if t.Ptr == nil {
		return nil
	}
	if len(t.Ptr) != t.Count()+1 || t.Ptr[0] != 0 || !slices.IsSorted(t.Ptr) || t.Ptr[t.Count()] != int64(x.Cols()) {
		return fmt.Errorf("columns of %d types must ascend from 0 to %d (got %v)", t.Count(), x.Cols(), t.Ptr)
	}
	return t.validRows(x)
}

// validRows refuses a value of a node in the columns of another type.
func (t Types) validRows(x Features) error {
	for i, kind := range t.Of {
		lo, hi := t.Columns(int(kind), x.Cols())
		fail := func(j int) error {
			return fmt.Errorf("node %d of type %s must have values in columns %d to %d only "+
				"(got one in column %d)", i, t.Names[kind], lo, hi-1, j)
		}
		if x.Sparse != nil {
			col, _ := x.Sparse.Row(i)
			for _, j := range col {
				if int(j) < lo || int(j) >= hi {
					return fail(int(j))
				}
			}
			continue
		}
		if x.Cols() == 0 {
			continue
		}
		for j, v := range x.Dense.Row(i) {
			if v != 0 && (j < lo || j >= hi) {
				return fail(j)
			}
		}
	}
	return nil
}

// Sections returns the types as sections types/…, none where nodes have none.
func (t Types) Sections() []section.Section {
	if t.Count() == 0 {
		return nil
	}
	list := []section.Section{section.Array("types/of", t.Of)}
	if t.Ptr != nil {
		list = append(list, section.Array("types/columns", t.Ptr))
	}
	return append(list, section.Strings("types/names", t.Names)...)
}

// read reads the types of n nodes with features x from a file, nothing if it has none.
func (t *Types) read(f *section.Arrays, n int, x Features) (err error) {
	*t = Types{}
	if !f.Has("types/of") {
		return nil
	}
	if t.Of, err = section.Values[uint8](f, "types/of", n); err != nil {
		return err
	}
	if t.Ptr, err = section.Optional[int64](f, "types/columns"); err != nil {
		return err
	}
	if t.Names, err = f.Strings("types/names", -1); err != nil {
		return err
	}
	if len(t.Names) < 1 || len(t.Names) > maxTypes {
		return f.Errorf("types/names/ptr", "there must be 1 to %d types (got %d)", maxTypes, len(t.Names))
	}
	if err := t.Valid(n, x); err != nil {
		return f.Errorf("types/of", "%w", err)
	}
	return nil
}
