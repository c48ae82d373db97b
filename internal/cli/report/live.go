package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// A browser's question for news is answered at once if there is some, else after at most patience; pace is between two
// looks.
const pace, patience = 500 * time.Millisecond, 15 * time.Second

// livePage is the page of a run that goes on.
type livePage struct {
	*federation.Live

	drawing sync.Mutex // of last: a state is rendered once for all who look on
	last    liveNews
}

// liveNews is the main part of the page in one version of the run's state.
type liveNews struct {
	Version uint64        `json:"version"`
	Over    bool          `json:"over"` // the run is
	Main    template.HTML `json:"main"` // empty if the browser has it
}

//go:embed live.js
var liveScript []byte

// Live implements federation.Pages.
func (Pages) Live(of *federation.Live) http.Handler {
	p := &livePage{Live: of}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { // also for browsers without scripts
		state, _ := p.Now(0)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		p.pageOf(state).Write(w)
	})
	mux.HandleFunc("GET /news", p.news)
	mux.HandleFunc("GET /live.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Write(liveScript)
	})
	return mux
}

// news answers once the state has another version than ?seen, or the run is over. Nothing waits for a slow browser,
// which misses states in between.
func (p *livePage) news(w http.ResponseWriter, r *http.Request) {
	seen, _ := strconv.ParseUint(r.FormValue("seen"), 10, 64) // a text that is no number counts as nothing seen
	tick := time.NewTicker(pace)
	defer tick.Stop()
	over := false
	for until := time.Now().Add(patience); ; {
		select {
		case <-p.Done:
			over = true // what came last is still sent
		default:
		}
		now, err := p.draw()
		if err != nil {
			p.Log.Warn("the live page cannot be made", "error", err)
			http.Error(w, "the page cannot be made", http.StatusInternalServerError)
			return
		}
		if over || now.Version != seen || time.Now().After(until) {
			if now.Over = over; now.Version == seen {
				now.Main = ""
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(now)
			return
		}
		select {
		case <-p.Done:
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// draw returns the main part of the page as the run is now.
func (p *livePage) draw() (liveNews, error) {
	p.drawing.Lock()
	defer p.drawing.Unlock()
	state, version := p.Now(p.last.Version)
	if version == p.last.Version {
		return p.last, nil
	}
	var b bytes.Buffer
	if err := layout().ExecuteTemplate(&b, "main", p.pageOf(state)); err != nil {
		return liveNews{}, err
	}
	p.last = liveNews{Version: version, Main: template.HTML(b.String())}
	return p.last, nil
}

// pageOf is the page of a state.
func (p *livePage) pageOf(s federation.LiveState) Page {
	own := p.About.Site(p.About.Rank)
	page := Page{Title: p.About.Title(), Kicker: "As of now. Without scripts, load the page again for news.",
		Live: true,
		Lead: []string{s.Sentence()}, Done: s.Round.Done, Total: s.Round.Total}
	if s.Round.Kind != "" {
		page.Facts = []Fact{{"validation " + s.Measure(), cli.Measure(eval.Metric(s.Metric), s.LastVal())},
			{"bytes sent by " + own, cli.Bytes(s.Round.Sent.Total())}}
		if !math.IsNaN(s.Round.Loss) { // what is solved has none
			page.Facts = append(page.Facts, Fact{"training loss", fmt.Sprintf("%.4f", s.Round.Loss)})
		}
	}
	page.Facts = append(page.Facts, Fact{"method", strings.TrimSuffix(p.About.Method+", "+p.About.Model, ", ")},
		Fact{"began", federation.Clock(s.Began)}, Fact{"last event", federation.Clock(s.Last)},
		Fact{"checkpoints written", fmt.Sprint(s.Saved)}, Fact{"continued from checkpoints", fmt.Sprint(s.Restored)},
		Fact{"repaired differences in rounding", fmt.Sprint(s.Resyncs)})
	if len(s.Sites) > 1 {
		t := cli.Table{Name: "Sites", Head: []string{"site", "state"}, Text: true}
		for _, one := range s.Sites {
			t.Add(one.Name, one.Row())
		}
		page.Sections = append(page.Sections, Section{Title: "Federation", Charts: siteMap(s.Sites),
			Tables: []cli.Table{t}})
	}
	if all := curves(s.Result, s.Metric); all != nil {
		page.Sections = append(page.Sections, Section{Title: "Learning curves", Charts: all})
	}
	var sent comm.Counts
	if n := len(s.Result.Stages); n > 0 {
		last := s.Result.Stages[n-1]
		if sent = last.Sent; !last.Ended && len(last.Curve) > 0 {
			sent = last.Curve[len(last.Curve)-1].Sent
		}
	}
	if sent.Total() > 0 {
		page.Sections = append(page.Sections, sentSection([]heddle.Traffic{{Name: own, Counts: sent}}))
	}
	t := cli.Table{Name: "Events, newest first", Head: []string{"time", "what happened"}, Text: true}
	for _, n := range slices.Backward(s.Notes) {
		t.Add(federation.Clock(n.Time), n.String())
	}
	page.Sections = append(page.Sections, Section{Title: "Events", Tables: []cli.Table{t}})
	if p.About.Audit != "" {
		page.Sections = append(page.Sections, auditSection(p.About.Audit))
	}
	return page
}

// The page shows at most mostRecords records, the newest. The last tail bytes of a log have at least as many.
const tail, mostRecords = 1 << 16, 20

// auditSection has the newest records of the log at path. heddle audit checks that nobody changed them.
func auditSection(path string) Section {
	s := Section{Title: "Audit log"}
	t := cli.Table{Name: "Audit log, newest first", Head: []string{"time", "record"}, Text: true}
	f, err := os.Open(path)
	var b []byte
	if err == nil {
		defer f.Close()
		var size int64
		if size, err = f.Seek(0, io.SeekEnd); err == nil {
			b, err = io.ReadAll(io.NewSectionReader(f, max(0, size-tail), tail))
		}
	}
	if err != nil {
		s.Notes = []string{"It cannot be read: " + err.Error()}
		return s
	}
	for _, line := range slices.Backward(strings.Split(string(b), "\n")) {
		var r admission.Record
		if json.Unmarshal([]byte(line), &r) == nil && len(t.Rows) < mostRecords { // the ends may be cut off
			t.Add(r.Time, federation.AuditLine(r))
		}
	}
	s.Tables = []cli.Table{t}
	return s
}
