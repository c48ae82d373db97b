package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// TestClassColumns: layers see columns of classes if the plan asks for them and the data have them. Otherwise the
// configuration states why not, and has only components.
func TestClassColumns(t *testing.T) {
	data := task{Features: 30, Classes: 4}
	several, many, numbers := data, data, data
	several.Kind, many.Classes, numbers.Kind = graph.Several, 51, graph.Numbers
	for _, c := range []struct {
		given string
		data  task
		why   string // why they are left out (empty = they are not)
	}{
		{"method: layer-wise\nencoder: pca:7+classes", data, ""},
		{"method: layer-wise\nencoder: pca:7+classes\nmodel: gat\nrows: int8\nsums: auto", data, ""},
		{"method: layer-wise\nencoder: pca:7+classes", several, "one class each"},
		{"method: layer-wise\nencoder: pca:7+classes", numbers, "one class each"},
		{"method: layer-wise\nencoder: pca:7+classes", many, "up to 50 classes (got 51)"},
		{"method: layer-wise\nencoder: pca:7+classes\ninductive: true", data, "inductive"},
	} {
		p := read(t, c.given, nil)
		with, err := p.layerwise(c.data)
		if err != nil {
			t.Fatalf("%s: %v", c.given, err)
		}
		if c.why == "" {
			if out := with.Spec.Encoder.Out; with.Classes == nil || with.WithoutClasses != "" ||
				out != 7+c.data.Classes || with.Spec.Layers[0].In != out {
				t.Errorf("%s: %d columns, left out by %q, must be 7 and %d of classes", c.given, out,
					with.WithoutClasses, c.data.Classes)
			}
			continue
		}
		p.LayerWise.Encoder.Classes = false
		without, err := p.layerwise(c.data)
		if err != nil {
			t.Fatalf("%s: %v", c.given, err)
		}
		if !strings.Contains(with.WithoutClasses, c.why) || with.Fingerprint() != without.Fingerprint() {
			t.Errorf("%s: left out by %q, must be by %q and a run of components alone", c.given, with.WithoutClasses,
				c.why)
		}
	}
}

// TestDecayOfManyLabels: the default decay with columns of classes is for few labels; any other is taken as it is.
func TestDecayOfManyLabels(t *testing.T) {
	for given, want := range map[string]int{
		"method: layer-wise\nmodel: gat":                                                                enoughLabels,
		"method: layer-wise\nencoder: pca:7+classes":                                                    enoughLabels,
		"method: layer-wise\nmodel: gat\ndecay: 0.0005":                                                 0,
		"method: layer-wise\nencoder: pca:7":                                                            0,
		"method: layer-wise\nencoder: raw":                                                              0,
		"method: layer-wise\nencoder: raw\ndecay: 0.005\nrow_norm: l1\nexchange: halo\nkeep_last: true": 0,
		// only components
		"method: layer-wise\ninductive: true":               0,
		"method: layer-wise\nencoder: pca:7+classes\nlr: 1": enoughLabels,
	} {
		c, err := read(t, given, nil).layerwise(task{Features: 30, Classes: 4})
		if err != nil {
			t.Fatalf("%s: %v", given, err)
		}
		if c.EnoughLabels != want {
			t.Errorf("%s: no weight decays from %d labels on, must be from %d", given, c.EnoughLabels, want)
		}
	}
}

// TestHalfOfColumns: components are at most half of the columns. The default keeps as many, and more that a plan names
// are refused.
func TestHalfOfColumns(t *testing.T) {
	for _, c := range []struct {
		encoder  string
		features int
		want     int // components (0 = refused)
	}{
		{"pca:128+classes", 300, 128}, {"pca:128+classes", 256, 128}, {"pca:128+classes", 255, 127},
		{"pca:128+classes", 1, 1}, {"pca:5", 10, 5}, {"pca:6", 10, 0}, {"pca:6+classes", 11, 0}, {"pca:1", 1, 1},
		{"pca:128", 200, 0},
	} {
		p, err := Read(nil, map[string]string{"method": LayerWise, "encoder": c.encoder}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.layerwise(task{Kind: graph.Single, Features: c.features, Classes: 3})
		if c.want == 0 {
			if must := fmt.Sprintf("encoder must be pca:%d or less, half of the %d columns (got %s)", c.features/2,
				c.features, c.encoder); err == nil || !strings.Contains(err.Error(), must) {
				t.Errorf("%s of %d columns: error is %v, must have %q", c.encoder, c.features, err, must)
			}
		} else if k := got.Spec.Encoder.Components(3); err != nil || k != c.want {
			t.Errorf("%s of %d columns: %d components, must be %d (%v)", c.encoder, c.features, k, c.want, err)
		}
	}
}
