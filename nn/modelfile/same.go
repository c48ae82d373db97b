package modelfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-gnn/heddle/nn"
)

// SameArchitecture returns an error that names the first part in which two models differ that decides about parameters
// or what is computed of them; dropout and the labels that a step is given concern only training.
func SameArchitecture(file, plan nn.Spec) error {
	var specs [2]any
	for k, s := range []nn.Spec{plan, file} {
		s.Layers = slices.Clone(s.Layers)
		for i := range s.Layers {
			s.Layers[i].Dropout, s.Layers[i].AttentionDropout = 0, 0
		}
		s.Encoder.Dropout, s.CorrectSmooth, s.Units = 0, nil, nil // units are the units of the data at hand
		if s.Encoder.Labels > 0 {
			s.Encoder.Labels = 1
		}
		text, err := json.Marshal(s)
		if err == nil {
			err = json.Unmarshal(text, &specs[k])
		}
		if err != nil {
			return err
		}
	}
	return differ("model", specs[0], specs[1])
}

// differ returns an error that names the first place in which two values of JSON differ.
func differ(at string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		both := maps.Clone(w)
		maps.Copy(both, g)
		for _, key := range slices.Sorted(maps.Keys(both)) {
			if err := differ(at+"."+key, w[key], g[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return fmt.Errorf("%s must have %d entries (got %d)", at, len(w), len(g))
		}
		for k := range w {
			if err := differ(fmt.Sprintf("%s[%d]", at, k), w[k], g[k]); err != nil {
				return err
			}
		}
		return nil
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Errorf("%s must be %v (got %v)", at, want, got)
	}
	return nil
}

// SameClasses returns an error unless the classes of labels, if they have names, are the model's, names.
func SameClasses(names, labels []string) error {
	if len(names) == 0 || len(labels) == 0 {
		return nil
	}
	if got := len(labels); got != len(names) {
		return fmt.Errorf("labels must have %d classes, as the model has (got %d)", len(names), got)
	}
	for k, name := range names {
		if labels[k] != name {
			return fmt.Errorf("class %d must be %q, as in the model (got %q)", k, name, labels[k])
		}
	}
	return nil
}
