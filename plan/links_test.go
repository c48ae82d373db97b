package plan

import (
	"strings"
	"testing"
)

// TestLinksLayerByLayer: the defaults are accepted, and settings that layer-wise training of links does not take are
// named.
func TestLinksLayerByLayer(t *testing.T) {
	read := func(settings string) error {
		p, err := Read(sections("task: links\n"+settings), nil, nil)
		if err != nil {
			return err
		}
		return p.Validate()
	}
	if err := read(""); err != nil {
		t.Fatal(err)
	}
	for settings, must := range map[string]string{
		"encoder: mlp": "encoder must be raw or pca",
		"method: class-means": "task must be auto, classification or regression with class-means " +
			"(got links)",
		"local_steps: 3":                        "local_steps must be 1",
		"updates: int8":                         "updates must be float32",
		"negatives_from: all":                   "negatives_from must be near",
		"model: gat":                            "model must be gcn",
		"layer_output: logits":                  "layer_output must be hidden",
		"link_holdout: [0.1]":                   "link_holdout must be two fractions",
		"link_holdout: [0.7, 0.7]":              "less than 1 together",
		"inductive: true":                       "inductive must be false",
		"metric: accuracy":                      "metric",
		"exchange: cover":                       "exchange must be halo or auto",
		"negatives: 0":                          "negatives",
		"link_time: a":                          "link_time",
		"keep_last: false":                      "keep_last must be true",
		"decoder: cosine":                       "decoder",
		"method: full-batch\npeers: 1\nhops: 0": "hops",
	} {
		if err := read(settings); err == nil || !strings.Contains(err.Error(), must) {
			t.Errorf("%q: the error is %v, must contain %q", settings, err, must)
		}
	}
}

// TestTaskHasRelations: a task of links may name relations, its text reads back, and any other text is refused.
func TestTaskHasRelations(t *testing.T) {
	for _, text := range []string{"auto", "links", "links:takes", "links:takes,has=of"} {
		var one Task
		if err := one.UnmarshalText([]byte(text)); err != nil || one.String() != text ||
			one.Links() != (text != "auto") {
			t.Errorf("%s is read as %+v, %v", text, one, err)
		}
	}
	for _, text := range []string{"", "nodes", "auto:takes", "links:", "links:a,"} {
		if err := new(Task).UnmarshalText([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), "must be auto, classification, regression, links or links:RELATION") {
			t.Errorf("%q: the error is %v", text, err)
		}
	}
	if _, err := Read([]byte("task: links\nlink_relations: [takes]"), nil, nil); err == nil ||
		!strings.Contains(err.Error(), "unknown field") {
		t.Errorf("link_relations must be refused as unknown (got %v)", err)
	}
}
