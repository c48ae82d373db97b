package heddle

import (
	"encoding/hex"
	"errors"
	"fmt"

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

// checkPlan returns why training by p over own cannot start from i, which may be nil; nil: it can, or p does not ask for it.
func (i *Initial) checkPlan(p Plan, own *shard.Shard) error {
	switch {
	case p.Gradient().Init == "" && i != nil:
		return errors.New("the plan must name the model file that training starts from (init)")
	case p.Gradient().Init == "":
		return nil
	case i == nil:
		return fmt.Errorf("the plan starts from a model file: the file of SHA-256 %s must be given (--init)", p.Gradient().Init)
	}
	if err := i.Model.Whole(); err != nil {
		return err
	}
	print, err := i.Fingerprint()
	if err != nil {
		return err
	}
	if print != p.Gradient().Init {
		return fmt.Errorf("the model file that training starts from must be that of SHA-256 %s (got %s)", p.Gradient().Init, print)
	}
	return errors.Join(modelfile.SameClasses(i.Card.Classes, own.Labels.Names), modelfile.SameColumns(i.Model.Spec, i.Card.Encoding, own.Encoding))
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

// copyParams copies the parameters of i to a model that is to be trained, unless i is nil.
func (i *Initial) copyParams(m *nn.Model) error {
	if i == nil {
		return nil
	}
	if err := modelfile.SameArchitecture(i.Model.Spec, m.Spec); err != nil {
		return fmt.Errorf("the model file that training starts from does not fit the plan: %w", err)
	}
	from := i.Model.Params()
	for k, p := range m.Params() {
		p.Value.CopyFrom(from[k].Value)
	}
	return nil
}
