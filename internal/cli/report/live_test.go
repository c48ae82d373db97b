package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/train"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

var about = federation.About{Dataset: "wards", Method: "layer-wise", Model: "gcn", Sites: []string{"north", "south", "<west>"}, Rank: 1}

// serve serves a page and returns its address.
func serve(t *testing.T) (*federation.Live, string) {
	t.Helper()
	var log strings.Builder
	p, err := federation.HTTP{Address: "127.0.0.1:0"}.Start(about, Pages{}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-p.Done:
		default:
			p.End(nil)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	_, rest, _ := strings.Cut(log.String(), "address=")
	return p, strings.TrimSuffix(strings.TrimSpace(rest), "/")
}

// get returns the status and the body of a page.
func get(t *testing.T, client *http.Client, url string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k := 0; k < len(header); k += 2 {
		if header[k] == "Host" {
			r.Host = header[k+1]
		}
		r.Header.Set(header[k], header[k+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// rounds are the events of so many rounds, with a stage's end.
func rounds(n int) (all []train.Event) {
	for k := range n {
		e := train.Event{Kind: train.RoundEnd, Stage: 1, StageName: "layer 1", Round: k, Done: k + 1, Total: n, Metric: "accuracy",
			Loss: 2 / float64(k+1), Val: math.NaN(), Sent: comm.Counts{Halo: int64(1000 * k), Reduce: int64(500 * k), Control: 7}}
		if k%2 == 0 {
			e.Val = 0.9 - 0.5/float64(k+1)
		}
		all = append(all, e)
	}
	return append(all, train.Event{Kind: train.StageEnd, Stage: 1, StageName: "layer 1", Metric: "accuracy", BestRound: n - 1, Val: 0.9, Test: math.NaN(),
		Sent: comm.Counts{Halo: int64(1000 * n), Reduce: int64(500 * n), Control: 7}})
}

// TestStream: a browser gets all parts, then those that change, and the end.
func TestStream(t *testing.T) {
	p, url := serve(t)
	answer, err := http.Get(url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	parts := map[string]string{}
	next := func(want func() bool) {
		t.Helper()
		for !want() {
			if !lines.Scan() {
				t.Fatalf("the stream has ended: %v; parts %v", lines.Err(), parts)
			}
			if line := lines.Text(); line == "event: end" {
				parts["end"] = "yes"
			} else if data, ok := strings.CutPrefix(line, `data: {"id"`); ok {
				var one livePart
				if err := json.Unmarshal([]byte(`{"id"`+data), &one); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				parts[one.ID] = string(one.HTML)
			}
		}
	}
	has := func(id, text string) func() bool { return func() bool { return strings.Contains(parts[id], text) } }
	next(has("state", "Waiting for north, &lt;west&gt;."))
	event := p.Over(nil)
	event(train.Event{Kind: train.Connection, Peer: 2, Text: "waiting for <west>: 5s of 10m"})
	next(has("map", "&lt;west&gt; is waited on"))
	if got, body := get(t, http.DefaultClient, url+"/readyz"); got != 503 || !strings.Contains(body, "waiting") {
		t.Errorf("while it waits: %d %s", got, body)
	}
	event(train.Event{Kind: train.Connection, Members: []int{0, 1, 2}, Peer: -1})
	for _, e := range rounds(20) {
		event(e)
	}
	next(has("sent", "20.0 kB"))
	next(has("curves", "validation accuracy by round"))
	next(has("notes", "connected: 3 of 3 sites"))
	if got, _ := get(t, http.DefaultClient, url+"/readyz"); got != 200 {
		t.Errorf("while it trains: %d", got)
	}
	for range 2 { // another seed: its curves are not those of the first
		for _, e := range rounds(3) {
			event(e)
		}
	}
	next(has("curves", "layer 1 from 2 to 0.6667"))
	if n := strings.Count(parts["curves"], "layer 1"); n != 4 { // a title and a legend in each of two charts
		t.Errorf("the curves of another run must replace those before (got %d names in\n%s)", n, parts["curves"])
	}
	for _, e := range rounds(20) {
		event(e)
	}
	event(train.Event{Kind: train.Connection, Members: []int{1, 2}, Peer: -1})
	next(has("map", "2 of 3 sites are connected"))
	event(train.Event{Kind: train.Warning, Text: "a <b>bold</b> warning"})
	next(has("notes", "Warning: a &lt;b&gt;bold"))
	if err := p.End(errors.New("a site has failed")); err != nil {
		t.Error(err)
	}
	next(has("state", "The run has failed: a site has failed"))
	next(has("end", "yes"))
}

// TestSlowBrowser: a browser that reads nothing holds nobody up, neither the run nor its end.
func TestSlowBrowser(t *testing.T) {
	p, url := serve(t)
	for range 3 {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	event := p.Over(nil)
	for range 20 {
		for _, e := range rounds(1000) {
			event(e)
		}
	}
	for k := range 400 {
		event(train.Event{Kind: train.Note, Text: fmt.Sprint("note ", k)})
	}
	if now, _ := p.Now(0); len(now.Notes) > 40 {
		t.Errorf("%d notes are kept, must be at most 40", len(now.Notes))
	}
	if err := p.End(nil); err != nil {
		t.Error(err)
	}
}

// More browsers than there are places for are refused, and nobody else is.
func TestStreamsAreBounded(t *testing.T) {
	p, _ := serve(t)
	page := newLivePage(p)
	for range mostStreams {
		page.streams <- struct{}{}
	}
	server := httptest.NewServer(page.handler())
	defer server.Close()
	if got, _ := get(t, http.DefaultClient, server.URL+"/events"); got != 503 {
		t.Errorf("one browser too many: %d, must be 503", got)
	}
	if got, _ := get(t, http.DefaultClient, server.URL+"/"); got != 200 {
		t.Errorf("the page itself: %d, must be 200", got)
	}
}
