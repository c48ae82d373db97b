package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/train"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

var about = federation.About{Dataset: "wards", Method: "layer-wise", Model: "gcn",
	Sites: []string{"north", "south", "<west>"}, Rank: 1}

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

// rounds are the events of several rounds, with a stage's end.
func rounds(n int) (all []train.Event) {
	for k := range n {
		e := train.Event{Kind: train.RoundEnd, Stage: 1, StageName: "layer 1", Round: k, Done: k + 1, Total: n,
			Metric: "accuracy", Loss: 2 / float64(k+1), Val: math.NaN(),
			Sent: comm.Counts{Halo: int64(1000 * k), Reduce: int64(500 * k), Control: 7}}
		if k%2 == 0 {
			e.Val = 0.9 - 0.5/float64(k+1)
		}
		all = append(all, e)
	}
	return append(all, train.Event{Kind: train.StageEnd, Stage: 1, StageName: "layer 1", Metric: "accuracy",
		BestRound: n - 1, Val: 0.9, Test: math.NaN(),
		Sent: comm.Counts{Halo: int64(1000 * n), Reduce: int64(500 * n), Control: 7}})
}

// TestNews: a browser gets the page, then each change, and the end.
func TestNews(t *testing.T) {
	t.Parallel()
	p, url := serve(t)
	var last liveNews
	next := func(text string) {
		t.Helper()
		for main := ""; !strings.Contains(main, text); main = string(last.Main) {
			status, body := get(t, http.DefaultClient, fmt.Sprintf("%s/news?seen=%d", url, last.Version))
			if err := json.Unmarshal([]byte(body), &last); err != nil || status != 200 {
				t.Fatalf("news: %d, %v: %s", status, err, body)
			}
			if last.Over && !strings.Contains(string(last.Main), text) {
				t.Fatalf("the run is over without %q: %s", text, last.Main)
			}
		}
	}
	next("Waiting for north since ")
	if status, body := get(t, http.DefaultClient, url+"/"); status != 200 ||
		!strings.Contains(body, string(last.Main)) {
		t.Errorf("the page without scripts must have the same main part (got %d, %s)", status, body)
	}
	event := p.Over(nil)
	event(train.Event{Kind: train.Connection, Peer: 2, Members: []int{0, 1},
		Text: "waiting for <west>, at most 10m: no route"})
	if next("&lt;west&gt; has not been connected"); !strings.Contains(string(last.Main), " UTC: no route") {
		t.Errorf("the page must have why <west> is not connected (got %s)", last.Main)
	}
	if got, body := get(t, http.DefaultClient, url+"/readyz"); got != 503 || !strings.Contains(body, "waiting") {
		t.Errorf("while it waits: %d %s", got, body)
	}
	event(train.Event{Kind: train.Connection, Members: []int{0, 1, 2}, Peer: -1})
	for _, e := range rounds(20) {
		event(e)
	}
	for _, text := range []string{"20.0 kB", "validation accuracy by round", "connected: 3 of 3 sites",
		"3 of 3 sites are connected"} {
		if next(text); !strings.Contains(string(last.Main), text) {
			t.Errorf("the page has no %q", text)
		}
		last = liveNews{}
	}
	if got, _ := get(t, http.DefaultClient, url+"/readyz"); got != 200 {
		t.Errorf("while it trains: %d", got)
	}
	for range 2 { // another seed: its curves are not those of the first
		for _, e := range rounds(3) {
			event(e)
		}
	}
	next("layer 1 from 2 to 0.6667")
	if n := strings.Count(string(last.Main), ">layer 1<") + strings.Count(string(last.Main), ": layer 1 from"); n != 4 {
		t.Errorf("the curves of another run must replace those before (got %d names in\n%s)", n, last.Main)
	}
	event(train.Event{Kind: train.Connection, Members: []int{1, 2}, Peer: -1})
	next("2 of 3 sites are connected")
	event(train.Event{Kind: train.Warning, Text: "a <b>bold</b> warning"})
	next("Warning: a &lt;b&gt;bold")
	waited := make(chan string)
	go func() { // is asking when the run ends
		_, body := get(t, http.DefaultClient, fmt.Sprintf("%s/news?seen=%d", url, last.Version))
		waited <- body
	}()
	time.Sleep(50 * time.Millisecond)
	if err := p.End(errors.New("a site has failed")); err != nil {
		t.Error(err)
	}
	if body := <-waited; !strings.Contains(body, "The run has failed: a site has failed") {
		t.Errorf("a browser that waits must get the end: %s", body)
	}
}

// TestSlowBrowser: a browser that reads nothing delays neither the run nor its end.
func TestSlowBrowser(t *testing.T) {
	t.Parallel()
	p, url := serve(t)
	for range 3 {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET /news HTTP/1.1\r\nHost: localhost\r\n\r\n")
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
