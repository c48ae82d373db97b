package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/train"
)

// Trials tries the candidates of a contest, each of which gives an R.
type Trials[R any] struct {
	Contest *Contest
	State   string // directory in which each candidate has one of its name (StateOf); empty: nothing is kept
	OnEvent func(train.Event)

	// Do trains by candidate i until it has a model, and returns what became of it. An error for which Lost holds, or after the end of ctx, ends the contest; any other one is what became of the
	// candidate.
	Do   func(ctx context.Context, i int) (R, Verdict, error)
	Lost func(error) bool

	// Load returns what candidate i gave an earlier process.
	Load func(ctx context.Context, i int) (R, error)
}

// Run tries candidates until none is left, and returns the one that is chosen with what it gave. What was kept of a
// candidate by an earlier process stands.
func (t Trials[R]) Run(ctx context.Context) (chosen int, result R, err error) {
	c := t.Contest
	results := map[int]R{}
	for {
		i, ok := c.Next()
		if !ok {
			break
		}
		one := c.candidates[i]
		v, known, err := one.Recall(t.State)
		if err != nil {
			return 0, result, err
		}
		if known {
			c.End(i, v)
			continue
		}
		t.OnEvent(train.Event{Kind: train.CandidateBegin, Candidate: one.Name, Limit: one.Limit})
		r, v, err := t.Do(ctx, i)
		switch {
		case err == nil:
			results[i] = r
		case ctx.Err() != nil || t.Lost(err):
			return 0, result, err
		default: // how much was sent is not known
			v = Verdict{Val: math.NaN(), Sent: one.Limit, Ended: fmt.Sprintf("failed: %v", err)}
		}
		if err := one.keep(t.State, v); err != nil {
			return 0, result, err
		}
		c.End(i, v)
		v = c.Verdicts[i]
		t.OnEvent(train.Event{Kind: train.CandidateEnd, Candidate: one.Name, Limit: v.Limit, Val: v.Val, StandardError: v.Error,
			SentByAll: v.Sent, Text: v.Ended})
	}
	if chosen, err = c.Choice(); err != nil {
		return 0, result, err
	}
	result, ok := results[chosen]
	if !ok {
		result, err = t.Load(ctx, chosen)
	}
	return chosen, result, err
}

// StateOf is the directory of a candidate in state; empty where nothing is kept.
func StateOf(state, candidate string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, candidate)
}

// verdictNote is the name under which a candidate's directory keeps what became of it.
const verdictNote = "verdict"

// keptVerdict is the note.
type keptVerdict struct {
	Plan    string   `json:"plan"`
	Val     *float64 `json:"val"`                      // null: nothing was validated
	Error   float64  `json:"standard_error,omitempty"` // 0 = as Contest.End computes it
	Sent    int64    `json:"sent"`
	Seconds float64  `json:"seconds"`
	Ended   string   `json:"ended"`
}

// Recall returns what became of the candidate in an earlier process that kept it in state; ok is false where it was not
// tried to its end.
func (e Entrant) Recall(state string) (v Verdict, ok bool, err error) {
	if state == "" {
		return v, false, nil
	}
	s := &checkpoint.Store{Dir: StateOf(state, e.Name)}
	b, err := s.Note(verdictNote)
	if b == nil || err != nil {
		return v, false, err
	}
	var k keptVerdict
	if err = json.Unmarshal(b, &k); err == nil && k.Plan != e.Plan {
		err = ErrForeign
	}
	if err != nil {
		return v, false, fmt.Errorf("%s: %w: remove %s to start again", filepath.Join(s.Dir, verdictNote), err, state)
	}
	v = Verdict{Val: math.NaN(), Sent: k.Sent, Seconds: k.Seconds, Ended: k.Ended}
	if k.Val != nil {
		v.Val, v.Error = *k.Val, k.Error
	}
	return v, true, nil
}

func (e Entrant) keep(state string, v Verdict) error {
	if state == "" {
		return nil
	}
	k := keptVerdict{Plan: e.Plan, Sent: v.Sent, Seconds: v.Seconds, Ended: v.Ended}
	if v.Val == v.Val {
		k.Val, k.Error = &v.Val, v.Error
	}
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return (&checkpoint.Store{Dir: StateOf(state, e.Name)}).KeepNote(verdictNote, b)
}
