package modelfile

import (
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/nn"
)

// TestSameColumns: columns that became other features than those of the model are named, of one table or of several
// types; those of edges where the model reads them. Columns that became none are not compared.
func TestSameColumns(t *testing.T) {
	const one = `{"columns":[{"name":"age","kind":"numeric","mean":1},{"name":"sex","kind":"categorical"}],"edge_columns":[{"name":"days","kind":"numeric"}]}`
	const typed = `{"node_tables":[{"type":"drug","encoding":{"columns":[{"name":"dose","kind":"numeric"}]}},{"type":"patient","encoding":` + one +
		`}],"edge_tables":[{"source":"patient","relation":"takes","target":"drug","encoding":{"columns":null,"edge_columns":[{"name":"amount","kind":"numeric"}]}}]}`
	reads := nn.Spec{Layers: []nn.LayerSpec{{}, {EdgeColumns: 1}}}
	for _, c := range []struct {
		spec   nn.Spec
		model  string
		change []string
		want   string
	}{
		{reads, one, nil, ""},
		{reads, typed, nil, ""},
		{reads, one, []string{`{"name":"age"`, `{"name":"note","kind":"ignored"},{"name":"age"`}, ""},
		{nn.Spec{}, one, []string{`"sex"`, `"ward"`}, `column 2 must be "sex", as in the model (got "ward")`},
		{nn.Spec{}, one, []string{`"mean":1`, `"mean":2`}, `column "age" must become features as in the model`},
		{nn.Spec{}, typed, []string{`"sex"`, `"ward"`},
			`column 3 must be "patient.sex", as in the model (got "patient.ward")`},
		{nn.Spec{}, typed, []string{`"type":"drug"`, `"type":"dose"`},
			`column 1 must be "drug.dose", as in the model (got "dose.dose")`},
		{nn.Spec{}, typed, []string{`"amount"`, `"days"`}, ""},
		{reads, typed, []string{`"amount"`, `"days"`},
			`column 4 must be "patient-takes-drug.amount", as in the model (got "patient-takes-drug.days")`},
		{reads, one, []string{`"days","kind":"numeric"`, `"days","kind":"date"`}, `column "days" must become features`},
		{nn.Spec{}, one, []string{`{`, `[`}, "encoding of columns"},
	} {
		other := c.model
		if c.change != nil {
			other = strings.Replace(c.model, c.change[0], c.change[1], 1)
		}
		err := SameColumns(c.spec, []byte(c.model), []byte(other))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: the error must contain %q (got %v)", c.change, c.want, err)
		}
	}
}
