package heddle

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// Initial is a model from whose parameters training starts: what a file holds whose SHA-256 Plan.Init is.
type Initial struct {
	Model *nn.Model
	Card  modelfile.Card
}

// Fingerprint returns the SHA-256 of i's file, as Plan.Init has it.
func (i *Initial) Fingerprint() (string, error) {
	print, err := modelfile.Fingerprint(i.Model, i.Card)
	return hex.EncodeToString(print[:]), err
}

// check returns why training by p over own cannot start from i, which may be nil; nil: it can, or p does not ask for it.
func (i *Initial) check(p Plan, own *shard.Shard) error {
	switch {
	case p.Init == "" && i != nil:
		return errors.New("the plan must name the model file that training starts from (init)")
	case p.Init == "":
		return nil
	case i == nil:
		return fmt.Errorf("the plan starts from a model file: the file of SHA-256 %s must be given (--init)", p.Init)
	}
	if err := i.Model.Whole(); err != nil {
		return err
	}
	print, err := i.Fingerprint()
	if err != nil {
		return err
	}
	if print != p.Init {
		return fmt.Errorf("the model file that training starts from must be that of SHA-256 %s (got %s)", p.Init, print)
	}
	return errors.Join(sameClasses(i.Card.Classes, own), modelfile.SameColumns(i.Model.Spec, i.Card.Encoding, own.Encoding))
}

// rowNorm returns the row_norm of i.
func (i *Initial) rowNorm() string {
	switch e := i.Model.Spec.Encoder; {
	case e.L1Norm:
		return "l1"
	case e.L2Norm:
		return "l2"
	}
	return "none"
}

// begin copies the parameters of i to a model that is to be trained, unless i is nil.
func (i *Initial) begin(m *nn.Model) error {
	if i == nil {
		return nil
	}
	if err := sameArchitecture(i.Model.Spec, m.Spec); err != nil {
		return fmt.Errorf("the model file that training starts from does not fit the plan: %w", err)
	}
	from := i.Model.Params()
	for k, p := range m.Params() {
		p.Value.CopyFrom(from[k].Value)
	}
	return nil
}

// sameArchitecture returns an error that names the first part in which two models differ that decides about parameters or
// what is computed of them; dropout and the labels that a step is given concern training alone.
func sameArchitecture(file, plan nn.Spec) error {
	var specs [2]any
	for k, s := range []nn.Spec{plan, file} {
		s.Layers = slices.Clone(s.Layers)
		for i := range s.Layers {
			s.Layers[i].Dropout, s.Layers[i].AttentionDropout = 0, 0
		}
		s.Encoder.Dropout, s.CorrectSmooth, s.Units = 0, nil, nil // units are those of the data at hand
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
