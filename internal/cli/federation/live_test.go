package federation

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/train"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // most tests wait for peers and limits
	testenv.MainWithoutLeaks(m)
}

var about = About{Dataset: "wards", Method: "layer-wise", Model: "gcn", Sites: []string{"north", "south", "<west>"},
	Rank: 1}

// serve serves a page and returns its address.
func serve(t *testing.T, f HTTP) (*Live, string) {
	t.Helper()
	var log strings.Builder
	p, err := f.Start(about, nil, slog.New(slog.NewTextHandler(&log, nil)))
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

// file writes a file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
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

// A page that others could reach needs a token, which is not a short one.
func TestStartRefuses(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for want, f := range map[string]HTTP{
		"requires --http-token-file":              {Address: "0.0.0.0:0"},
		"--http :0 can be reached":                {Address: ":0"},
		"it requires --http-token-file":           {Address: "[::]:0"},
		"must be HOST:PORT":                       {Address: "8080"},
		"requires --http":                         {Token: "x"},
		"no such file":                            {Address: "127.0.0.1:0", Token: filepath.Join(t.TempDir(), "none")},
		"must have 16 to 4096 characters (got 5)": {Address: "127.0.0.1:0", Token: file(t, "short\n")},
	} {
		if p, err := f.Start(about, nil, log); err == nil || !strings.Contains(err.Error(), want) || p != nil {
			t.Errorf("%+v must be refused by %q (got %v)", f, want, err)
		}
	}
	p, err := HTTP{}.Start(about, nil, log)
	if p != nil || err != nil {
		t.Errorf("without an address there must be no page (got %v, %v)", p, err)
	}
	seen := 0
	p.Over(func(train.Event) { seen++ })(train.Event{})
	if err := p.End(nil); err != nil || seen != 1 {
		t.Errorf("without a page events must be passed on (got %d, %v)", seen, err)
	}
}

// Only requests with the token get the page: in a header, or once in the address, which a cookie replaces.
func TestToken(t *testing.T) {
	t.Parallel()
	const token = "correct-horse-battery"
	_, url := serve(t, HTTP{Address: "127.0.0.1:0", Token: file(t, token+"\n")})
	for _, c := range []struct {
		path   string
		header []string
		want   int
	}{
		{"/", nil, 401}, {"/metrics", nil, 401}, {"/news", nil, 401}, {"/status", nil, 401}, {"/live.js", nil, 401},
		{"/", []string{"Authorization", "Bearer " + token}, 200},
		{"/", []string{"Authorization", "Bearer " + token + "x"}, 401}, {"/", []string{"Authorization", token}, 401},
		{"/?token=" + token[1:], nil, 401}, {"/", []string{"Cookie", cookieName + "=" + token}, 401},
		{"/", []string{"Authorization", "Bearer " + token, "Host", "heddle.example"}, 200},
		{"/healthz", nil, 200}, {"/readyz", nil, 503}, {"/none", nil, 401},
	} {
		if got, body := get(t, http.DefaultClient, url+c.path, c.header...); got != c.want ||
			got == 401 && strings.Contains(body, "wards") {
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
	t.Parallel()
	_, url := serve(t, HTTP{Address: "127.0.0.1:0"})
	for host, want := range map[string]int{"localhost:8080": 200, "127.0.0.1": 200, "[::1]:80": 200,
		"evil.example": 403, "127.0.0.1.evil.example:80": 403} {
		if got, _ := get(t, http.DefaultClient, url+"/", "Host", host); got != want {
			t.Errorf("host %s: %d, must be %d", host, got, want)
		}
	}
}

// TestStatus: the terminal shows what the page does, without what a terminal would obey.
func TestStatus(t *testing.T) {
	t.Parallel()
	token := file(t, "correct-horse-battery")
	p, url := serve(t, HTTP{Address: "127.0.0.1:0", Token: token})
	address := strings.TrimPrefix(url, "http://")
	run := func(args ...string) (string, error) {
		var out strings.Builder
		c := newStatus()
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
		"Training layer 1: 9 of at most 9 rounds are done.",
		"training loss 0.2222, validation accuracy 84.44 %, sent 12.0 kB\n", "north   is connected since ",
		"south   is this site\n", "<west>  is missing since ", "Warning: red  [31mtext\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the status has no %q:\n%s", want, text)
		}
	}
	text, err = run("--http", url+"/", "--http-token-file", token, "--json")
	var s status
	if err != nil || json.Unmarshal([]byte(text), &s) != nil || s.Done != 9 || len(s.Sites) != 3 || s.Complete ||
		*s.Val < 0.8 {
		t.Errorf("%v: %s", err, text)
	}
	for _, c := range []struct {
		event train.Event
		want  []string
	}{
		{train.Event{Kind: train.Waiting, Members: []int{0}},
			[]string{"done. Waiting for a message from north since ", "north   is connected, and has not answered"}},
		{train.Event{Kind: train.Waiting}, []string{"rounds are done.\n", "north   is connected since "}},
		{train.Event{Kind: train.Connection, Peer: 0, Members: []int{1, 2}, Text: "waiting for north, at most 9m: cut"},
			[]string{"\nWaiting for north since ", " UTC: cut\n", "<west>  is connected since "}},
		{train.Event{Kind: train.Connection, Peer: -1, Members: []int{0, 1, 2}}, []string{"rounds are done.\n"}},
	} {
		event(c.event)
		text, _ = run("--http", address, "--http-token-file", token)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("after %+v the status has no %q:\n%s", c.event, want, text)
			}
		}
	}
	if _, err := run("--http", address); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without the token: %v", err)
	}
	event(train.Event{Kind: train.RoundEnd, StageName: "closed form", Done: 1, Total: 3, Metric: "accuracy",
		Loss: math.NaN(), Val: 0.7, Sent: comm.Counts{Halo: 10}})
	if text, _ = run("--http", address, "--http-token-file", token); !strings.Contains(text, "Training closed form") ||
		!strings.Contains(text, "\nvalidation accuracy 70.00 %, sent 10 B\n") {
		t.Errorf("after a round that is solved, without a loss:\n%s", text)
	}
	p.Step("Predicting") // the page is the same, and the sites connect anew
	if text, _ = run("--http", address, "--http-token-file", token); !strings.Contains(text,
		"\nPredicting. Waiting for north since ") || strings.Contains(text, "sent 10 B") {
		t.Errorf("in the next step:\n%s", text)
	}
	event(train.Event{Kind: train.Connection, Peer: -1, Members: []int{0, 1, 2}})
	if text, _ = run("--http", address, "--http-token-file", token); !strings.Contains(text,
		"\nPredicting. All sites are connected.\n") {
		t.Errorf("in the next step:\n%s", text)
	}
	p.End(nil)
	if _, err := run("--http", address, "--http-token-file", token); err == nil ||
		!strings.Contains(err.Error(), "no live page answers") {
		t.Errorf("after the end: %v", err)
	}
}

// TestMetrics: the names follow the rules of Prometheus, the reference page has them all, and they report what
// happened.
func TestMetrics(t *testing.T) {
	t.Parallel()
	p, url := serve(t, HTTP{Address: "127.0.0.1:0"})
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
	for _, want := range []string{`heddle_run_info{dataset="wards",method="layer-wise",model="gcn",site="south"} 1`,
		`heddle_sent_bytes_total{door="halo"} 20000`, `heddle_sent_bytes_total{door="control"} 14`,
		`heddle_events_total{kind="round"} 20`, "heddle_round 9", "heddle_rounds_limit 10", "heddle_connected_sites 2",
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
		for word := range strings.FieldsFuncSeq(expr[:max(0, strings.Index(expr, `"`))],
			func(r rune) bool { return !(r >= 'a' && r <= 'z' || r == '_') }) {
			if strings.HasPrefix(word, "heddle_") && !strings.Contains(text, word) {
				t.Errorf("examples/grafana/heddle.json asks for %s, which there is not", word)
			}
		}
	}
	p.End(context.Canceled)
	if n := testutil.ToFloat64(p.metrics.gauges["run_failed"]); n != 1 {
		t.Errorf("heddle_run_failed of a failed run is %v", n)
	}
}
