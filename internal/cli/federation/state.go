package federation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// mostNotes is how many of the newest notes are kept.
const mostNotes = 40

// LiveNote is something that was reported, and when.
type LiveNote struct {
	Time    time.Time `json:"time"`
	Text    string    `json:"text"`
	Warning bool      `json:"warning"`
}

func (n LiveNote) String() string {
	if n.Warning {
		return "Warning: " + n.Text
	}
	return n.Text
}

// LiveState is what is known of the run.
type LiveState struct {
	version uint64 // grows with each change

	Began, Last time.Time // Last: of an event
	Sites       []LiveSite
	Result      train.Result // of the run that goes on
	Metric      string
	Positive    string      // class that the metric is of, as AP is
	Round       train.Event // the last of its kind; its Kind is empty before the first

	Saved, Restored, Resyncs int
	waiting                  bool
	Notes                    []LiveNote // newest last

	over  bool
	fault string // why the run failed
}

// LiveSite is a site of the run.
type LiveSite struct {
	Name      string `json:"name"`
	State     string `json:"state"` // in words
	Connected bool   `json:"connected"`
}

// begun is the state before the first event.
func begun(about About) LiveState {
	s := LiveState{version: 1, Began: time.Now(), Last: time.Now(), Metric: "metric"}
	for r := range about.Sites {
		one := LiveSite{about.Site(r), "is not connected yet", about.Simulated || r == about.Rank}
		if about.Simulated {
			one.State = "is simulated here"
		} else if r == about.Rank {
			one.State = "is this site"
		}
		s.Sites = append(s.Sites, one)
	}
	s.waiting = !about.Simulated
	return s
}

// Site is the name of that rank's site.
func (a About) Site(rank int) string {
	if rank < len(a.Sites) && a.Sites[rank] != "" {
		return a.Sites[rank]
	}
	return fmt.Sprintf("part %d", rank)
}

// Title is what the page is called.
func (a About) Title() string {
	if a.Simulated {
		return a.Dataset + ": a simulated run"
	}
	return a.Site(a.Rank) + ": " + a.Dataset
}

// unready says why the run makes no progress; empty: it does, or has been completed.
func (s *LiveState) unready() string {
	switch {
	case s.fault != "":
		return "the run has failed"
	case s.waiting:
		return "waiting for other sites"
	}
	return ""
}

// note adds e to the state.
func (s *LiveState) note(e train.Event, now time.Time) {
	s.version, s.Last = s.version+1, now
	if e.Kind == train.RoundEnd && s.Round.Kind != "" && e.Done <= s.Round.Done { // the next of several runs
		s.Result = train.Result{}
	}
	s.Result.Record(e)
	switch e.Kind {
	case train.RoundEnd:
		s.Round, s.Metric, s.Positive = e, e.Metric, e.Positive
	case train.StageEnd:
		s.Metric, s.Positive, s.Result.Ends = e.Metric, e.Positive, e.Stage
		s.say(now, false, fmt.Sprintf("%s is trained: validation %s %s", e.StageName, s.Measure(),
			cli.Within(eval.Metric(e.Metric), e.Val, e.ValBound)))
	case train.Connection:
		if e.Members != nil {
			s.gather(e.Members)
			s.say(now, false, fmt.Sprintf("connected: %d of %d sites", len(e.Members), len(s.Sites)))
			return
		}
		s.waiting = true
		if e.Peer >= 0 && e.Peer < len(s.Sites) {
			s.Sites[e.Peer].State, s.Sites[e.Peer].Connected = "is waited on", false
		}
		s.say(now, false, e.Text)
	case train.Saved:
		s.Saved++
	case train.Restored:
		s.Restored++
		// it is measured again
		s.Result, s.Round = s.Result.Until(train.Position{Stage: e.Stage, Round: e.Round}), train.Event{}
		s.say(now, false, fmt.Sprintf("continues from the checkpoint of %s, round %d", e.StageName, e.Round))
	case train.Resync:
		s.Resyncs++
	case train.Note, train.Warning:
		s.say(now, e.Kind == train.Warning, e.Text)
	}
}

// Measure is the metric, with the class that it is of.
func (s *LiveState) Measure() string { return cli.OfClass(s.Metric, eval.Metric(s.Metric), s.Positive) }

// gather takes that those members are connected.
func (s *LiveState) gather(members []int) {
	s.waiting = false
	for r := range s.Sites {
		one := &s.Sites[r]
		if one.State == "is this site" || one.State == "is simulated here" {
			continue
		}
		one.State, one.Connected = "has failed or left", slices.Contains(members, r)
		if one.Connected {
			one.State = "is connected"
		}
	}
}

// say keeps a note; of the same text again only the newest time.
func (s *LiveState) say(now time.Time, warning bool, text string) {
	if n := len(s.Notes); n > 0 && s.Notes[n-1].Text == text {
		s.Notes[n-1].Time = now
		return
	}
	s.Notes = append(s.Notes[max(0, len(s.Notes)+1-mostNotes):], LiveNote{now, text, warning})
}

// end takes how the run went.
func (s *LiveState) end(run error, now time.Time) {
	s.version, s.Last, s.over = s.version+1, now, true
	if run != nil {
		s.fault = run.Error()
		s.say(now, true, "the run has failed: "+s.fault)
		return
	}
	s.waiting = false
	s.say(now, false, "the run is complete")
}

// now is a copy that later events leave as it is.
func (s *LiveState) now() LiveState {
	c := *s
	c.Sites, c.Notes = slices.Clone(s.Sites), slices.Clone(s.Notes)
	c.Result.Stages = slices.Clone(s.Result.Stages) // of curves, only what follows changes
	return c
}

// Sentence describes the state in words.
func (s *LiveState) Sentence() string {
	switch {
	case s.fault != "":
		return "The run has failed: " + s.fault
	case s.over:
		return "The run is complete."
	case s.waiting:
		var names []string
		for _, one := range s.Sites {
			if !one.Connected {
				names = append(names, one.Name)
			}
		}
		return "Waiting for " + strings.Join(names, ", ") + "."
	case s.Round.Kind != "":
		return fmt.Sprintf("Training %s: %d of at most %d rounds are done.", s.Round.StageName, s.Round.Done,
			s.Round.Total)
	}
	return "Training has begun."
}

// LastVal is the newest figure of validation, which not every round has.
func (s *LiveState) LastVal() float64 {
	for _, stage := range slices.Backward(s.Result.Stages) {
		for _, q := range slices.Backward(stage.Curve) {
			if q.Val == q.Val {
				return q.Val
			}
		}
	}
	return s.Round.Val
}

// Clock is a time of day.
func Clock(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }
