package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Times of a stream. A browser that takes nothing for writeTime is disconnected; it comes back by itself.
const (
	pace      = 500 * time.Millisecond // between two looks for news
	beat      = 15 * time.Second       // without news, to keep the connection open
	writeTime = 10 * time.Second
)

// mostStreams is how many browsers may look on at once.
const mostStreams = 64

// livePage is the page of a run that goes on.
type livePage struct {
	*federation.Live
	streams chan struct{} // a place for each stream

	drawing sync.Mutex // of what follows: a state is drawn once for all who look on
	drawn   uint64     // version of the state
	parts   []livePart
}

//go:embed live.html
var liveText string

//go:embed live.js
var liveScript []byte

var liveLayout = template.Must(template.New("live").Parse(liveText))

// Live implements federation.Pages.
func (Pages) Live(of *federation.Live) http.Handler { return newLivePage(of).handler() }

func newLivePage(of *federation.Live) *livePage {
	return &livePage{Live: of, streams: make(chan struct{}, mostStreams)}
}

func (p *livePage) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.page)
	mux.HandleFunc("GET /events", p.stream)
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Write([]byte(Style))
	})
	mux.HandleFunc("GET /live.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Write(liveScript)
	})
	return mux
}

// page shows all parts as they are now, also to browsers without scripts.
func (p *livePage) page(w http.ResponseWriter, _ *http.Request) {
	parts, _, err := p.render()
	if err != nil {
		p.fail(w, err)
		return
	}
	shown := map[string]template.HTML{}
	for _, one := range parts {
		shown[one.ID] = one.HTML
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	liveLayout.Execute(w, struct {
		Title string
		Parts map[string]template.HTML
	}{p.About.Title(), shown})
}

func (p *livePage) fail(w http.ResponseWriter, err error) {
	p.Log.Warn("the live page cannot be drawn", "error", err)
	http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
}

// stream sends each part that has changed as a server-sent event, until the run ends or the browser leaves. It looks for
// news at its own pace: whoever reads slowly misses states in between, and nothing waits for it.
func (p *livePage) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		http.Error(w, fmt.Sprintf("at most %d browsers may look on", mostStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(text string) error {
		return errors.Join(out.SetWriteDeadline(time.Now().Add(writeTime)), writeText(w, text), out.Flush())
	}
	if send("retry: 2000\n\n") != nil {
		return
	}
	sent, seen, last := map[string]template.HTML{}, uint64(0), time.Now()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for over := false; ; {
		parts, version, err := p.render()
		if err != nil {
			p.Log.Warn("the live page cannot be drawn", "error", err)
			return
		}
		for _, one := range parts {
			if version == seen || sent[one.ID] == one.HTML {
				continue
			}
			if send("event: part\ndata: "+one.line()+"\n\n") != nil {
				return
			}
			sent[one.ID], last = one.HTML, time.Now()
		}
		seen = version
		if over {
			send("event: end\ndata: {}\n\n")
			return
		}
		if time.Since(last) > beat {
			if send(": still here\n\n") != nil {
				return
			}
			last = time.Now()
		}
		select {
		case <-p.Done:
			over = true // what came last is still sent
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func writeText(w http.ResponseWriter, text string) error {
	_, err := w.Write([]byte(text))
	return err
}

// livePart is a piece of the page that changes at once.
type livePart struct {
	ID   string        `json:"id"`
	HTML template.HTML `json:"html"`
}

// line is the part as JSON.
func (p livePart) line() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // most of it is <, which would take six characters each
	e.Encode(p)            // two texts
	return strings.TrimSpace(b.String())
}

// render returns the parts of the page as the run is now, and the version of its state.
func (p *livePage) render() ([]livePart, uint64, error) {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	s, version := p.Now(p.drawn)
	if version == p.drawn {
		return p.parts, p.drawn, nil
	}
	d := drawing{about: p.About, state: s}
	for _, one := range []struct {
		id   string
		draw func() error
	}{{"state", d.head}, {"facts", d.facts}, {"map", d.sites}, {"curves", d.curves}, {"sent", d.sent}, {"notes", d.notes}, {"audit", d.audit}} {
		if err := one.draw(); err != nil {
			return nil, 0, err
		}
		d.parts = append(d.parts, livePart{one.id, template.HTML(d.String())})
		d.Reset()
	}
	p.parts, p.drawn = d.parts, version
	return p.parts, p.drawn, nil
}

// drawing writes the parts of a state.
type drawing struct {
	about federation.About
	state federation.LiveState
	parts []livePart
	bytes.Buffer
}

// head says what goes on, and how far it is.
func (d *drawing) head() error {
	s := &d.state
	fmt.Fprintf(d, `<p class="lead">%s</p>`, template.HTMLEscapeString(s.Sentence()))
	if s.Round.Total > 0 {
		fmt.Fprintf(d, `<progress max="%d" value="%d" aria-label="Rounds done"></progress>`, s.Round.Total, s.Round.Done)
	}
	return nil
}

func (d *drawing) facts() error {
	s := &d.state
	all := []Fact{
		{Name: "method", Value: d.about.Method + ", " + d.about.Model},
		{Name: "began", Value: federation.Clock(s.Began)},
		{Name: "last event", Value: federation.Clock(s.Last)},
		{Name: "checkpoints written", Value: fmt.Sprint(s.Saved)},
		{Name: "continued from checkpoints", Value: fmt.Sprint(s.Restored)},
		{Name: "repaired differences in rounding", Value: fmt.Sprint(s.Resyncs)},
	}
	if s.Round.Kind != "" {
		if !math.IsNaN(s.Round.Loss) { // what is solved has none
			all = append([]Fact{{Name: "training loss", Value: fmt.Sprintf("%.4f", s.Round.Loss)}}, all...)
		}
		all = append([]Fact{
			{Name: "validation " + s.Measure(), Value: cli.Measure(eval.Metric(s.Metric), s.LastVal())},
			{Name: "bytes sent by " + d.about.Site(d.about.Rank), Value: cli.Bytes(s.Round.Sent.Total())},
		}, all...)
	}
	d.WriteString(`<dl class="facts">`)
	for _, f := range all {
		fmt.Fprintf(d, "<div><dt>%s</dt><dd>%s</dd></div>", template.HTMLEscapeString(f.Name), template.HTMLEscapeString(f.Value))
	}
	d.WriteString("</dl>")
	return nil
}

func (d *drawing) sites() error {
	if len(d.state.Sites) < 2 {
		return nil
	}
	d.WriteString("<h2>Federation</h2>")
	t := cli.Table{Name: "Sites", Head: []string{"site", "state"}, Text: true}
	for _, one := range d.state.Sites {
		t.Rows = append(t.Rows, []string{one.Name, one.Status})
	}
	return d.beside([]Chart{Map(d.state.Sites)}, t)
}

// beside writes charts, and tables under them.
func (d *drawing) beside(charts []Chart, tables ...cli.Table) error {
	d.WriteString(`<div class="charts">`)
	for _, c := range charts {
		if err := Render(d, "chart", c); err != nil {
			return err
		}
	}
	d.WriteString("</div>")
	for _, t := range tables {
		if err := Render(d, "table", t); err != nil {
			return err
		}
	}
	return nil
}

func (d *drawing) curves() error {
	all := Curves(d.state.Result, d.state.Metric)
	if len(all) == 0 {
		return nil
	}
	d.WriteString("<h2>Learning curves</h2>")
	return d.beside(all)
}

func (d *drawing) sent() error {
	var sum comm.Counts
	if n := len(d.state.Result.Stages); n > 0 {
		last := d.state.Result.Stages[n-1]
		if sum = last.Sent; !last.Ended && len(last.Curve) > 0 {
			sum = last.Curve[len(last.Curve)-1].Sent
		}
	}
	if sum.Total() == 0 {
		return nil
	}
	table, chart := Sent([]heddle.Traffic{{Name: d.about.Site(d.about.Rank), Counts: sum}})
	for k := range table.Rows { // what the network carried is known at the end
		table.Rows[k] = table.Rows[k][:5]
	}
	table.Head = table.Head[:5]
	d.WriteString("<h2>Bytes that left, by door</h2>")
	return d.beside([]Chart{chart}, table)
}

func (d *drawing) notes() error {
	d.WriteString("<h2>Events</h2>")
	t := cli.Table{Name: "Events, newest first", Head: []string{"time", "what happened"}, Text: true}
	for _, n := range slices.Backward(d.state.Notes) {
		text := n.Text
		if n.Warning {
			text = "Warning: " + text
		}
		t.Rows = append(t.Rows, []string{federation.Clock(n.At), text})
	}
	if len(t.Rows) == 0 {
		d.WriteString("<p>None yet.</p>")
		return nil
	}
	return Render(d, "table", t)
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
	t := cli.Table{Name: "Audit log, newest first", Head: []string{"time", "record"}, Text: true}
	for _, r := range slices.Backward(records) {
		text := fmt.Sprintf("%d: %s", r.Seq, r.Event)
		if r.Name != "" {
			text += " " + r.Name
		}
		if r.Door != "" {
			text += fmt.Sprintf(" by %s: %s", r.Door, cli.Bytes(r.Bytes))
		}
		if r.Stage != "" {
			text += fmt.Sprintf(", %s, round %d", r.Stage, r.Round)
		}
		if r.Event == admission.Refused || r.Event == admission.Lost || r.Event == admission.Ended {
			text += ": " + r.Text
		}
		t.Rows = append(t.Rows, []string{r.Time, text})
	}
	return Render(d, "table", t)
}

// The newest records of a log are read from so many bytes at its end, which hold at least so many.
const tail, mostRecords = 1 << 16, 20

// newest returns the newest records of the log at path. heddle audit checks that nobody changed them.
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
