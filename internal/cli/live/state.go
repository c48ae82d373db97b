package live

import (
	"fmt"
	"time"

	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// mostNotes is how many of the newest notes are kept.
const mostNotes = 40

// note is something that was reported, and when.
type note struct {
	at      time.Time
	text    string
	warning bool
}

// state is what is known of the run.
type state struct {
	version uint64 // grows with each change
	start   time.Time
	last    time.Time // of an event

	sites    []report.Place
	result   train.Result // of the run that goes on
	metric   string
	positive string      // class that the metric is of, as AP is
	round    train.Event // the last of its kind; its Kind is empty before the first

	saved, restored, resyncs int
	waiting                  bool
	notes                    []note // newest last

	over  bool
	fault string // why the run failed
}

// begun is the state before the first event.
func begun(about About) state {
	s := state{version: 1, start: time.Now(), last: time.Now(), metric: "metric"}
	for r := range about.Sites {
		one := report.Place{Name: about.site(r), Status: "is not connected yet"}
		if about.Simulated {
			one.Status, one.Here = "is simulated here", true
		} else if r == about.Rank {
			one.Status, one.Here = "is this site", true
		}
		s.sites = append(s.sites, one)
	}
	s.waiting = !about.Simulated
	return s
}

// site is the name of that rank's site.
func (a About) site(rank int) string {
	if rank < len(a.Sites) && a.Sites[rank] != "" {
		return a.Sites[rank]
	}
	return fmt.Sprintf("part %d", rank)
}

func (a About) title() string {
	if a.Simulated {
		return a.Dataset + ": a simulated run"
	}
	return a.site(a.Rank) + ": " + a.Dataset
}

// unready says why the run makes no progress; empty: it does, or has been completed.
func (s *state) unready() string {
	switch {
	case s.fault != "":
		return "the run has failed"
	case s.waiting:
		return "waiting for other sites"
	}
	return ""
}

// note adds e to the state.
func (s *state) note(e train.Event, now time.Time) {
	s.version, s.last = s.version+1, now
	if e.Kind == train.RoundEnd && s.round.Kind != "" && e.Done <= s.round.Done { // the next of several runs
		s.result = train.Result{}
	}
	s.result.Record(e)
	switch e.Kind {
	case train.RoundEnd:
		s.round, s.metric, s.positive = e, e.Metric, e.Positive
	case train.StageEnd:
		s.metric, s.positive, s.result.Ends = e.Metric, e.Positive, e.Stage
		s.say(now, false, fmt.Sprintf("%s is trained: validation %s %s", e.StageName, s.measure(),
			report.Within(eval.Metric(e.Metric), e.Val, e.ValBound)))
	case train.Connection:
		if e.Members != nil {
			s.gather(e.Members)
			s.say(now, false, fmt.Sprintf("connected: %d of %d sites", len(e.Members), len(s.sites)))
			return
		}
		s.waiting = true
		if e.Peer >= 0 && e.Peer < len(s.sites) {
			s.sites[e.Peer].Status, s.sites[e.Peer].Here = "is waited on", false
		}
		s.say(now, false, e.Text)
	case train.Saved:
		s.saved++
	case train.Restored:
		s.restored++
		s.rewind(e)
		s.say(now, false, fmt.Sprintf("continues from the checkpoint of %s, round %d", e.StageName, e.Round))
	case train.Resync:
		s.resyncs++
	case train.Note, train.Warning:
		s.say(now, e.Kind == train.Warning, e.Text)
	}
}

// measure is the metric, with the class that it is of.
func (s *state) measure() string { return report.OfClass(s.metric, eval.Metric(s.metric), s.positive) }

// rewind forgets what the run will measure again.
func (s *state) rewind(e train.Event) {
	s.result, s.round = s.result.Until(train.Position{Stage: e.Stage, Round: e.Round}), train.Event{}
}

// gather takes that those members are connected.
func (s *state) gather(members []int) {
	here := make([]bool, len(s.sites))
	for _, r := range members {
		if r >= 0 && r < len(here) {
			here[r] = true
		}
	}
	s.waiting = false
	for r := range s.sites {
		one := &s.sites[r]
		switch {
		case one.Status == "is this site" || one.Status == "is simulated here":
		case here[r]:
			one.Status, one.Here = "is connected", true
		default:
			one.Status, one.Here = "has failed or left", false
		}
	}
}

// say keeps a note; of the same text again only the newest time.
func (s *state) say(now time.Time, warning bool, text string) {
	if n := len(s.notes); n > 0 && s.notes[n-1].text == text {
		s.notes[n-1].at = now
		return
	}
	s.notes = append(s.notes, note{now, text, warning})
	if len(s.notes) > mostNotes {
		s.notes = append([]note(nil), s.notes[len(s.notes)-mostNotes:]...)
	}
}

// end takes how the run went.
func (s *state) end(run error, now time.Time) {
	s.version, s.last, s.over = s.version+1, now, true
	if run != nil {
		s.fault = run.Error()
		s.say(now, true, "the run has failed: "+s.fault)
		return
	}
	s.waiting = false
	s.say(now, false, "the run is complete")
}

// now is a copy that later events leave as it is.
func (s *state) now() state {
	c := *s
	c.sites = append([]report.Place(nil), s.sites...)
	c.result.Stages = append([]train.StageResult(nil), s.result.Stages...) // of curves, only what follows changes
	c.notes = append([]note(nil), s.notes...)
	return c
}
