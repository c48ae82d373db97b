package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// part is a piece of the page that changes at once.
type part struct {
	ID   string        `json:"id"`
	HTML template.HTML `json:"html"`
}

// line is the part as JSON.
func (p part) line() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // most of it is <, which would take six characters each
	e.Encode(p)            // two texts
	return strings.TrimSpace(b.String())
}

// render returns the parts of the page as the run is now, and the version of its state.
func (p *Page) render() ([]part, uint64, error) {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	p.mu.Lock()
	if p.state.version == p.drawn {
		p.mu.Unlock()
		return p.parts, p.drawn, nil
	}
	s := p.state.now()
	p.mu.Unlock()
	d := drawing{about: p.about, state: s}
	for _, one := range []struct {
		id   string
		draw func() error
	}{{"state", d.head}, {"facts", d.facts}, {"map", d.sites}, {"curves", d.curves}, {"sent", d.sent}, {"notes", d.notes}, {"audit", d.audit}} {
		if err := one.draw(); err != nil {
			return nil, 0, err
		}
		d.parts = append(d.parts, part{one.id, template.HTML(d.String())})
		d.Reset()
	}
	p.parts, p.drawn = d.parts, s.version
	return p.parts, p.drawn, nil
}

// drawing writes the parts of a state.
type drawing struct {
	about About
	state state
	parts []part
	bytes.Buffer
}

// sentence says what goes on.
func (s *state) sentence() string {
	text := "Training has begun."
	switch {
	case s.fault != "":
		text = "The run has failed: " + s.fault
	case s.over:
		text = "The run is complete."
	case s.waiting:
		var names []string
		for _, one := range s.sites {
			if !one.Here {
				names = append(names, one.Name)
			}
		}
		text = "Waiting for " + strings.Join(names, ", ") + "."
	case s.round.Kind != "":
		text = fmt.Sprintf("Training %s: %d of at most %d rounds are done.", s.round.StageName, s.round.Done, s.round.Total)
	}
	return text
}

// head says what goes on, and how far it is.
func (d *drawing) head() error {
	s := &d.state
	fmt.Fprintf(d, `<p class="lead">%s</p>`, template.HTMLEscapeString(s.sentence()))
	if s.round.Total > 0 {
		fmt.Fprintf(d, `<progress max="%d" value="%d" aria-label="Rounds done"></progress>`, s.round.Total, s.round.Done)
	}
	return nil
}

func (d *drawing) facts() error {
	s := &d.state
	all := []report.Fact{
		{Name: "method", Value: d.about.Method + ", " + d.about.Model},
		{Name: "began", Value: clock(s.start)},
		{Name: "last event", Value: clock(s.last)},
		{Name: "checkpoints written", Value: fmt.Sprint(s.saved)},
		{Name: "continued from checkpoints", Value: fmt.Sprint(s.restored)},
		{Name: "repaired differences in rounding", Value: fmt.Sprint(s.resyncs)},
	}
	if s.round.Kind != "" {
		if !math.IsNaN(s.round.Loss) { // what is solved has none
			all = append([]report.Fact{{Name: "training loss", Value: fmt.Sprintf("%.4f", s.round.Loss)}}, all...)
		}
		all = append([]report.Fact{
			{Name: "validation " + s.measure(), Value: report.Measure(eval.Metric(s.metric), s.lastVal())},
			{Name: "bytes sent by " + d.about.site(d.about.Rank), Value: report.Bytes(s.round.Sent.Total())},
		}, all...)
	}
	d.WriteString(`<dl class="facts">`)
	for _, f := range all {
		fmt.Fprintf(d, "<div><dt>%s</dt><dd>%s</dd></div>", template.HTMLEscapeString(f.Name), template.HTMLEscapeString(f.Value))
	}
	d.WriteString("</dl>")
	return nil
}

// lastVal is the newest figure of validation, which not every round has.
func (s *state) lastVal() float64 {
	for _, stage := range slices.Backward(s.result.Stages) {
		for _, q := range slices.Backward(stage.Curve) {
			if q.Val == q.Val {
				return q.Val
			}
		}
	}
	return s.round.Val
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }

func (d *drawing) sites() error {
	if len(d.state.sites) < 2 {
		return nil
	}
	d.WriteString("<h2>Federation</h2>")
	t := report.Table{Name: "Sites", Head: []string{"site", "state"}, Text: true}
	for _, one := range d.state.sites {
		t.Rows = append(t.Rows, []string{one.Name, one.Status})
	}
	return d.beside([]report.Chart{report.Map(d.state.sites)}, t)
}

// beside writes charts, and tables under them.
func (d *drawing) beside(charts []report.Chart, tables ...report.Table) error {
	d.WriteString(`<div class="charts">`)
	for _, c := range charts {
		if err := report.Render(d, "chart", c); err != nil {
			return err
		}
	}
	d.WriteString("</div>")
	for _, t := range tables {
		if err := report.Render(d, "table", t); err != nil {
			return err
		}
	}
	return nil
}

func (d *drawing) curves() error {
	all := report.Curves(d.state.result, d.state.metric)
	if len(all) == 0 {
		return nil
	}
	d.WriteString("<h2>Learning curves</h2>")
	return d.beside(all)
}

func (d *drawing) sent() error {
	var sum comm.Counts
	if n := len(d.state.result.Stages); n > 0 {
		last := d.state.result.Stages[n-1]
		if sum = last.Sent; !last.Ended && len(last.Curve) > 0 {
			sum = last.Curve[len(last.Curve)-1].Sent
		}
	}
	if sum.Total() == 0 {
		return nil
	}
	table, chart := report.Sent([]heddle.Traffic{{Name: d.about.site(d.about.Rank), Counts: sum}})
	for k := range table.Rows { // what the network carried is known at the end
		table.Rows[k] = table.Rows[k][:5]
	}
	table.Head = table.Head[:5]
	d.WriteString("<h2>Bytes that left, by door</h2>")
	return d.beside([]report.Chart{chart}, table)
}

func (d *drawing) notes() error {
	d.WriteString("<h2>Events</h2>")
	t := report.Table{Name: "Events, newest first", Head: []string{"time", "what happened"}, Text: true}
	for _, n := range slices.Backward(d.state.notes) {
		text := n.text
		if n.warning {
			text = "Warning: " + text
		}
		t.Rows = append(t.Rows, []string{clock(n.at), text})
	}
	if len(t.Rows) == 0 {
		d.WriteString("<p>None yet.</p>")
		return nil
	}
	return report.Render(d, "table", t)
}

func (d *drawing) audit() error {
	if d.about.Audit == "" {
		return nil
	}
	d.WriteString("<h2>Audit log</h2>")
	records, err := newest(d.about.Audit)
	if err != nil {
		fmt.Fprintf(d, "<p>It cannot be read: %s</p>", template.HTMLEscapeString(err.Error()))
		return nil
	}
	t := report.Table{Name: "Audit log, newest first", Head: []string{"time", "record"}, Text: true}
	for _, r := range slices.Backward(records) {
		text := fmt.Sprintf("%d: %s", r.Seq, r.Event)
		if r.Name != "" {
			text += " " + r.Name
		}
		if r.Door != "" {
			text += fmt.Sprintf(" by %s: %s", r.Door, report.Bytes(r.Bytes))
		}
		if r.Stage != "" {
			text += fmt.Sprintf(", %s, round %d", r.Stage, r.Round)
		}
		if r.Event == admission.Refused || r.Event == admission.Lost || r.Event == admission.Ended {
			text += ": " + r.Text
		}
		t.Rows = append(t.Rows, []string{r.Time, text})
	}
	return report.Render(d, "table", t)
}

// The newest records of a log are read from so many bytes at its end, which hold at least so many.
const tail, mostRecords = 1 << 16, 20

// newest returns the newest records of the log at path. peer audit checks that nobody changed them.
func newest(path string) (all []admission.Record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-tail)
	b, err := io.ReadAll(io.NewSectionReader(f, from, tail))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(b), "\n")
	if from > 0 {
		lines = lines[1:] // its beginning is cut off
	}
	for _, l := range lines {
		var r admission.Record
		if json.Unmarshal([]byte(l), &r) == nil { // one that is being written is not whole
			all = append(all, r)
		}
	}
	return all[max(0, len(all)-mostRecords):], nil
}
