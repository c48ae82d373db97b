package joint

import (
	"context"
	"errors"
	"math"

	"github.com/heddle-gnn/heddle/train"
)

// Rounds trains from the round at hand to first + c.Rounds, or until the patience of c is used up, of total rounds of the run.
// validate keeps the best state, at last that behind the last round, and step returns the loss of a round. A round is taken whole or
// not at all: where one fails, a checkpoint of its begin is left.
func (r *Epochs) Rounds(ctx context.Context, c train.Config, first, total int, validate func(last bool) (val, loss float64, err error), step func() (float64, error)) error {
	for end := first + c.Rounds; r.At.Round < end; {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, r.Save())
		}
		e := train.Event{Kind: train.RoundEnd, Round: r.At.Round, Metric: string(c.Metric), Done: r.At.Round + 1, Total: total, Val: math.NaN(), ValLoss: math.NaN()}
		var err error
		if (r.At.Round-first)%c.EvalEvery == 0 {
			if e.Val, e.ValLoss, err = validate(false); err != nil {
				return errors.Join(err, r.Save())
			}
			if p := c.Patience; p > 0 && r.At.BestRound >= 0 && r.At.Round-r.At.BestRound >= p {
				return nil
			}
		}
		back := r.Mark()
		if e.Loss, err = step(); err != nil {
			back()
			return errors.Join(err, r.Save())
		}
		e.Sent = r.Sent()
		r.Report(e)
		r.At.Round++
		if every := c.Checkpoint; every > 0 && r.At.Round%every == 0 && r.At.Round < end {
			if err := r.Save(); err != nil {
				return err
			}
		}
	}
	_, _, err := validate(true)
	return err
}
