package train

import (
	"errors"
	"fmt"
)

// LinkTask lists which links are held out and what a model learns from.
type LinkTask struct {
	// whose edges are links, each as NAME or NAME=REVERSE (empty = all, if edges have no types)
	Relations []string   `json:"relations,omitempty"`
	HeldOut   [2]float64 `json:"held_out"` // fractions that validate and test, unless a time decides
	Time      *LinkTime  `json:"time,omitempty"`
	Negatives int        `json:"negatives"`      // random pairs for each link of a step; at least 1
	Near      bool       `json:"near,omitempty"` // pairs are among own nodes and the halo: no other rows are sent
}

// Validate returns what is wrong with c, or nil.
func (c LinkTask) Validate() error {
	v, t := c.HeldOut[0], c.HeldOut[1]
	switch {
	case !(v > 0 && t > 0 && v+t < 1):
		return fmt.Errorf("link_holdout must be two fractions above 0, less than 1 together (got %g and %g)", v, t)
	case c.Negatives < 1 || c.Negatives > 1000:
		return fmt.Errorf("negatives must be 1 to 1000 (got %d)", c.Negatives)
	}
	return nil
}

// Check returns what of a trainer's configuration c does not fit, or nil; c may be nil.
func (c *LinkTask) Check(of Config) error {
	var errs ConfigFaults
	fault := errs.If
	fault((c != nil) != (of.Spec.Decoder != nil), "links and a decoder must be given together (got %t and %t)",
		c != nil, of.Spec.Decoder != nil)
	if c != nil {
		errs = append(errs, c.Validate())
		fault(of.Inductive, "inductive must be false for the links task (got true): edges are held out, not nodes")
		fault(of.Balanced, "balanced must be false for the links task (got true): links have no classes")
	}
	return errors.Join(errs...)
}

// LinkTime splits links by a column of the edges: those before the first time train, those before the second validate,
// and the others test. An edge whose time is missing trains.
type LinkTime struct {
	Column string     `json:"column"` // its name, or its number from 0 where the columns of the edges have no names
	Until  [2]float64 `json:"until"`  // numbers, or years since 2000
	Dates  bool       `json:"dates,omitempty"`
}
