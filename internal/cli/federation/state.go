package federation

import (
	"cmp"
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

	Step                     string // of several (empty = there is one)
	Saved, Restored, Resyncs int    // numbers of such events so far
	waiting                  bool
	Notes                    []LiveNote // newest last

	over  bool
	fault string // why the run failed
}

// LiveSite is a site of the run.
type LiveSite struct {
	Name      string    `json:"name"`
	State     string    `json:"state"` // in words
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"` // the state is this one; none of this site
	Why       string    `json:"why,omitempty"`  // it is not connected

	ours   bool // this site, or one that is simulated here
	waited bool // it is not connected, or owes a message
}

// become changes the state of a site.
func (s *LiveSite) become(state string, connected, waited bool, why string, now time.Time) {
	if s.ours {
		return
	}
	if s.State != state && !(s.waited && waited) { // a site that is silent first, and then lost, has one such time
		s.Since = now
	}
	s.State, s.Connected, s.waited, s.Why = state, connected, waited, why
}

// Row describes the state in words: since when, and why.
func (s LiveSite) Row() string {
	text := s.State
	if !s.Since.IsZero() {
		text += " since " + Clock(s.Since)
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}

// The states of other sites.
const (
	notYet    = "has not been connected"
	connected = "is connected"
	silent    = "is connected, and has not answered"
	missing   = "is missing"
	parted    = "is not connected: the run has ended"
)

// begun is the state before the first event.
func begun(about About) LiveState {
	s := LiveState{version: 1, Began: time.Now(), Last: time.Now(), Metric: "metric"}
	for r := range about.Sites {
		one := LiveSite{Name: about.Site(r), State: notYet, ours: about.Simulated || r == about.Rank}
		one.Connected, one.waited = one.ours, !one.ours
		if about.Simulated {
			one.State = "is simulated here"
		} else if r == about.Rank {
			one.State = "is this site"
		} else {
			one.Since = s.Began
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

// unready returns why the run makes no progress (empty = it does, or has been completed).
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
		s.gather(e, now)
	case train.Waiting:
		for r := range s.Sites {
			if one := &s.Sites[r]; slices.Contains(e.Members, r) {
				one.become(silent, true, true, "", now.Add(-train.WaitNoted))
			} else if one.State == silent {
				one.become(connected, true, false, "", now)
			}
		}
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

// gather notes to whom this site is connected, and for whom it waits.
func (s *LiveState) gather(e train.Event, now time.Time) {
	s.waiting = e.Text != ""
	for r := range s.Sites {
		switch one := &s.Sites[r]; {
		case slices.Contains(e.Members, r):
			one.become(connected, true, false, "", now)
		case s.waiting && one.State == notYet:
			one.Why = cmp.Or(whyOf(e, r), one.Why)
		default:
			one.become(missing, false, s.waiting, cmp.Or(whyOf(e, r), one.Why), now)
		}
	}
	if s.waiting {
		s.say(now, false, e.Text)
		return
	}
	s.say(now, false, fmt.Sprintf("connected: %d of %d sites", len(e.Members), len(s.Sites)))
}

// whyOf is why the site of rank r is waited for, if e is about it.
func whyOf(e train.Event, r int) string {
	if e.Peer != r {
		return ""
	}
	_, why, _ := strings.Cut(e.Text, ": ")
	return why
}

// step begins a step, for which the sites connect anew.
func (s *LiveState) step(name string, now time.Time) {
	s.version, s.Last, s.Step, s.waiting = s.version+1, now, name, true
	s.Result, s.Round = train.Result{}, train.Event{}
	for r := range s.Sites {
		s.Sites[r].become(notYet, false, true, "", now)
	}
	s.say(now, false, name)
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
	for r := range s.Sites {
		s.Sites[r].become(parted, false, false, "", now)
	}
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
	if s.Step == "" || s.over {
		return s.doing()
	}
	return s.Step + ". " + s.doing()
}

// doing describes what goes on in the step.
func (s *LiveState) doing() string {
	switch {
	case s.fault != "":
		return "The run has failed: " + s.fault
	case s.over:
		return "The run is complete."
	case s.waiting:
		return cmp.Or(s.awaited("Waiting for "), "Waiting for another site.")
	case s.Round.Kind != "":
		return fmt.Sprintf("Training %s: %d of at most %d rounds are done.%s", s.Round.StageName, s.Round.Done,
			s.Round.Total, s.awaited(" Waiting for a message from "))
	}
	begun := "Training has begun."
	if s.Step != "" {
		begun = "All sites are connected."
	}
	return begun + s.awaited(" Waiting for a message from ")
}

// awaited describes, behind a verb, for whom this site waits since when (empty = for nobody).
func (s *LiveState) awaited(verb string) string {
	var names []string
	for _, one := range s.Sites {
		if one.waited {
			names = append(names, one.Name+" since "+Clock(one.Since))
		}
	}
	if names == nil {
		return ""
	}
	return verb + strings.Join(names, ", ") + "."
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
