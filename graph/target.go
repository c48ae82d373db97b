package graph

import "github.com/heddle-gnn/heddle/mat"

// A TargetKind is the kind of the nodes' targets.
type TargetKind uint8

// The kinds, and the names of their tasks.
const (
	Single  TargetKind = iota // "single": one class a node
	Several                   // "multi": any number of classes
	Numbers                   // "regression": real numbers
	Links                     // "links": no node has any; edges are predicted
)

var kindNames = [...]string{"single", "multi", "regression", "links"}

func (k TargetKind) String() string { return kindNames[k] }

// KindNamed returns the kind whose task has that name.
func KindNamed(task string) (k TargetKind, ok bool) {
	for i, name := range kindNames {
		if name == task {
			return TargetKind(i), true
		}
	}
	return 0, false
}

// A Unit is a column's scale of standardised numbers: v represents Mean + Deviation·v.
type Unit struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"` // above 0
}

// Restored converts rows of standardised numbers to the units of the data; without units it returns rows.
func Restored(rows mat.Dense, units []Unit) mat.Dense {
	if units == nil {
		return rows
	}
	out := rows.Clone()
	for i := range out.Rows {
		row := out.Row(i)
		for c, u := range units {
			row[c] = float32(u.Mean + u.Deviation*float64(row[c]))
		}
	}
	return out
}
