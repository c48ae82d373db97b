package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/leak"
	"github.com/heddle-gnn/heddle/train"
)

func TestMain(m *testing.M) { leak.Main(m) }

var about = About{Dataset: "wards", Method: "layer-wise", Model: "gcn", Sites: []string{"north", "south", "<west>"}, Rank: 1}

// start serves a page and returns its address.
func start(t *testing.T, f Flags) (*Page, string) {
	t.Helper()
	var log strings.Builder
	p, err := f.Start(about, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-p.done:
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

// file writes a file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
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

// A page that others could reach needs a token, which is not a short one.
func TestStartRefuses(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for want, f := range map[string]Flags{
		"requires --http-token-file":              {address: "0.0.0.0:0"},
		"--http :0 can be reached":                {address: ":0"},
		"it requires --http-token-file":           {address: "[::]:0"},
		"must be HOST:PORT":                       {address: "8080"},
		"requires --http":                         {token: "x"},
		"no such file":                            {address: "127.0.0.1:0", token: filepath.Join(t.TempDir(), "none")},
		"must have 16 to 4096 characters (got 5)": {address: "127.0.0.1:0", token: file(t, "short\n")},
	} {
		if p, err := f.Start(about, log); err == nil || !strings.Contains(err.Error(), want) || p != nil {
			t.Errorf("%+v must be refused by %q (got %v)", f, want, err)
		}
	}
	p, err := Flags{}.Start(about, log)
	if p != nil || err != nil {
		t.Errorf("without an address there must be no page (got %v, %v)", p, err)
	}
	seen := 0
	p.Over(func(train.Event) { seen++ })(train.Event{})
	if err := p.End(nil); err != nil || seen != 1 {
		t.Errorf("without a page events must be passed on (got %d, %v)", seen, err)
	}
}

// Only who has the token sees the page: by header, or once in the address, which a cookie replaces.
func TestToken(t *testing.T) {
	const token = "correct-horse-battery"
	_, url := start(t, Flags{address: "127.0.0.1:0", token: file(t, token+"\n")})
	for _, c := range []struct {
		path   string
		header []string
		want   int
	}{
		{"/", nil, 401}, {"/metrics", nil, 401}, {"/events", nil, 401}, {"/status", nil, 401}, {"/live.js", nil, 401},
		{"/", []string{"Authorization", "Bearer " + token}, 200}, {"/", []string{"Authorization", "Bearer " + token + "x"}, 401},
		{"/", []string{"Authorization", token}, 401}, {"/?token=" + token[1:], nil, 401}, {"/", []string{"Cookie", cookieName + "=" + token}, 401},
		{"/", []string{"Authorization", "Bearer " + token, "Host", "heddle.example"}, 200},
		{"/healthz", nil, 200}, {"/readyz", nil, 503}, {"/none", nil, 401},
	} {
		if got, body := get(t, http.DefaultClient, url+c.path, c.header...); got != c.want || got == 401 && strings.Contains(body, "wards") {
			t.Errorf("%s with %q: %d, must be %d", c.path, c.header, got, c.want)
		}
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	for _, path := range []string{"/?token=" + token, "/", "/metrics"} {
		if got, _ := get(t, browser, url+path); got != 200 {
			t.Errorf("%s of a browser: %d, must be 200", path, got)
		}
	}
}

// Without a token a page from elsewhere cannot read this one through a name that points here.
func TestHosts(t *testing.T) {
	_, url := start(t, Flags{address: "127.0.0.1:0"})
	for host, want := range map[string]int{"localhost:8080": 200, "127.0.0.1": 200, "[::1]:80": 200, "evil.example": 403, "127.0.0.1.evil.example:80": 403} {
		if got, _ := get(t, http.DefaultClient, url+"/", "Host", host); got != want {
			t.Errorf("host %s: %d, must be %d", host, got, want)
		}
	}
}

// TestStream: a browser gets all parts, then those that change, and the end.
func TestStream(t *testing.T) {
	p, url := start(t, Flags{address: "127.0.0.1:0"})
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
				var one part
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
	p, url := start(t, Flags{address: "127.0.0.1:0"})
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
	for k := range 10 * mostNotes {
		event(train.Event{Kind: train.Note, Text: fmt.Sprint("note ", k)})
	}
	p.mu.Lock()
	notes := len(p.state.notes)
	p.mu.Unlock()
	if notes > mostNotes {
		t.Errorf("%d notes are kept, must be at most %d", notes, mostNotes)
	}
	if err := p.End(nil); err != nil {
		t.Error(err)
	}
}

// More browsers than there are places for are refused, and nobody else is.
func TestStreamsAreBounded(t *testing.T) {
	p, url := start(t, Flags{address: "127.0.0.1:0"})
	for range mostStreams {
		p.streams <- struct{}{}
	}
	if got, _ := get(t, http.DefaultClient, url+"/events"); got != 503 {
		t.Errorf("one browser too many: %d, must be 503", got)
	}
	if got, _ := get(t, http.DefaultClient, url+"/"); got != 200 {
		t.Errorf("the page itself: %d, must be 200", got)
	}
}

// TestStatus: the terminal shows what the page does, without what a terminal would obey.
func TestStatus(t *testing.T) {
	token := file(t, "correct-horse-battery")
	p, url := start(t, Flags{address: "127.0.0.1:0", token: token})
	address := strings.TrimPrefix(url, "http://")
	run := func(args ...string) (string, error) {
		var out strings.Builder
		c := Command()
		c.SetArgs(args)
		c.SetOut(&out)
		c.SetErr(io.Discard)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	event := p.Over(nil)
	event(train.Event{Kind: train.Connection, Members: []int{0, 1}, Peer: -1})
	for _, e := range rounds(9) {
		event(e)
	}
	event(train.Event{Kind: train.Warning, Text: "red \x1b[31mtext\n"})
	text, err := run("--http", address, "--http-token-file", token)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"south: wards (layer-wise, gcn)\n",
		"Training layer 1: 9 of at most 9 rounds are done.", "training loss 0.2222, validation accuracy 84.44 %, sent 12.0 kB\n",
		"north   is connected\n", "south   is this site\n", "<west>  has failed or left\n", "warning: red  [31mtext\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the status has no %q:\n%s", want, text)
		}
	}
	text, err = run("--http", url+"/", "--http-token-file", token, "--json")
	var s status
	if err != nil || json.Unmarshal([]byte(text), &s) != nil || s.Done != 9 || len(s.Sites) != 3 || s.Complete || *s.Val < 0.8 {
		t.Errorf("%v: %s", err, text)
	}
	p.mu.Lock()
	p.state.last = time.Now().Add(-7 * time.Second)
	p.mu.Unlock()
	text, _ = run("--http", address, "--http-token-file", token)
	if !strings.Contains(text, "done. The last event was ") {
		t.Errorf("the status must have the age of the last event:\n%s", text)
	}
	if _, err := run("--http", address); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without the token: %v", err)
	}
	event(train.Event{Kind: train.RoundEnd, StageName: "closed form", Done: 1, Total: 3, Metric: "accuracy", Loss: math.NaN(), Val: 0.7, Sent: comm.Counts{Halo: 10}})
	if text, _ = run("--http", address, "--http-token-file", token); !strings.Contains(text, "Training closed form") || !strings.Contains(text, "\nvalidation accuracy 70.00 %, sent 10 B\n") {
		t.Errorf("after a round that is solved, without a loss:\n%s", text)
	}
	p.End(nil)
	if _, err := run("--http", address, "--http-token-file", token); err == nil || !strings.Contains(err.Error(), "no live page answers") {
		t.Errorf("after the end: %v", err)
	}
}

// TestMetrics: the names follow the rules of Prometheus, the reference page has them all, and they say what happened.
func TestMetrics(t *testing.T) {
	p, url := start(t, Flags{address: "127.0.0.1:0"})
	event := p.Over(nil)
	event(train.Event{Kind: train.Connection, Members: []int{0, 1}, Peer: -1})
	for range 2 { // each run counts its bytes from 0
		for _, e := range rounds(10) {
			event(e)
		}
	}
	problems, err := testutil.GatherAndLint(p.metrics.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	_, text := get(t, http.DefaultClient, url+"/metrics")
	for _, want := range []string{`heddle_run_info{dataset="wards",method="layer-wise",model="gcn",site="south"} 1`, `heddle_sent_bytes_total{door="halo"} 20000`,
		`heddle_sent_bytes_total{door="control"} 14`, `heddle_events_total{kind="round"} 20`, "heddle_round 9", "heddle_rounds_limit 10", "heddle_connected_sites 2",
		"heddle_sites 3", "heddle_validation_metric 0.9", "heddle_run_done 0", "go_goroutines"} {
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, want+" ") {
			t.Errorf("/metrics has no %q", want)
		}
	}
	page, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	grafana, err := os.ReadFile("../../../examples/grafana/heddle.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(grafana) {
		t.Error("examples/grafana/heddle.json must be JSON")
	}
	families, err := p.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	documented := strings.Count(string(page), "| `heddle_")
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "heddle_") {
			documented--
			if !strings.Contains(string(page), "| `"+name+"` |") {
				t.Errorf("docs/reference/metrics.md does not describe %s", name)
			}
		}
	}
	if documented != 0 {
		t.Errorf("docs/reference/metrics.md describes %d metrics too many", documented)
	}
	for expr := range strings.SplitSeq(string(grafana), `"expr": "`) {
		for word := range strings.FieldsFuncSeq(expr[:max(0, strings.Index(expr, `"`))], func(r rune) bool { return !(r >= 'a' && r <= 'z' || r == '_') }) {
			if strings.HasPrefix(word, "heddle_") && !strings.Contains(text, word) {
				t.Errorf("examples/grafana/heddle.json asks for %s, which there is not", word)
			}
		}
	}
	p.End(context.Canceled)
	if n := testutil.ToFloat64(p.metrics.failed); n != 1 {
		t.Errorf("heddle_run_failed of a failed run is %v", n)
	}
}
