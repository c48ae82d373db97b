package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/rng"
)

// served returns a small graph with names, a model of it, and a server of both.
func served(t *testing.T, at federation.HTTP) (*graph.Graph, *nn.Model, string) {
	t.Helper()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 80, Sites: 2, Classes: 3, Columns: 5, Words: 3}, rng.New(1))
	g.X = graph.Features{Dense: g.X.Sparse.Dense()}
	for i := range g.N() {
		g.IDs = append(g.IDs, fmt.Sprintf("n%d", i))
	}
	spec, err := nn.Preset("gcn", "single", 5, 3, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := nn.New(spec, rng.New(2))
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(m, modelfile.Card{Classes: []string{"red", "green", "blue"}}, g)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.handler(at)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return g, m, server.URL
}

// post returns the status and the body of an answer, and fails unless it is JSON.
func post(t *testing.T, url, body string, headers ...string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequest("POST", url+"/predict", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for k := 0; k < len(headers); k += 2 {
		r.Header.Set(headers[k], headers[k+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var v map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return answer.StatusCode, v
}

// agrees compares an answer with predictions for all nodes.
func agrees(t *testing.T, answer map[string]any, want heddle.Predictions, nodes ...int) {
	t.Helper()
	all, _ := answer["predictions"].([]any)
	if len(all) != len(nodes) {
		t.Fatalf("%d predictions, must be %d: %v", len(all), len(nodes), answer)
	}
	names := []string{"red", "green", "blue"}
	for k, i := range nodes {
		got := all[k].(map[string]any)
		if must := names[want.Classes(i)[0]]; got["class"] != must {
			t.Errorf("the class of node %d is %v, must be %s", i, got["class"], must)
		}
		for c, p := range want.Probabilities(i) {
			if v := got["probabilities"].(map[string]any)[names[c]].(float64); v != p {
				t.Errorf("probability %d of node %d is %v, must be %v", c, i, v, p)
			}
		}
	}
}

func TestServe(t *testing.T) {
	g, m, url := served(t, federation.HTTP{Address: "127.0.0.1:0"})
	want, err := heddle.Predict(m, g)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(status int, body string, headers ...string) map[string]any {
		t.Helper()
		got, answer := post(t, url, body, headers...)
		if got != status {
			t.Fatalf("%.200s: status %d, must be %d: %v", body, got, status, answer)
		}
		return answer
	}
	agrees(t, ask(200, `{"nodes": [3, "n7", "n79"]}`), want, 3, 7, 79)

	// A new node changes nothing unless it is kept.
	added := `{"new": [{"node": "x", "features": [1, 0, 2, 0, 0]}],
		"changed": [{"node": 5, "features": [0, 1, 1, 0, 3]}], "nodes": ["x", "n3", "n5"],
		"edges": [{"from": "n3", "to": "x"}, {"from": "x", "to": 4}], "keep": %t}`
	h := *g
	h.X.Dense = mat.New(81, 5)
	h.X.Dense.RowRange(0, 80).CopyFrom(g.X.Dense)
	copy(h.X.Dense.Row(80), []float32{1, 0, 2, 0, 0})
	copy(h.X.Dense.Row(5), []float32{0, 1, 1, 0, 3})
	h.IDs, h.Site, h.Sites = nil, nil, nil
	h.Labels.Class, h.Split = append(slices.Clone(g.Labels.Class), -1), append(slices.Clone(g.Split), graph.None)
	src, dst := []int32{3, 80}, []int32{80, 4}
	for i := range g.N() {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			src, dst = append(src, j), append(dst, int32(i))
		}
	}
	if h.Adj, err = graph.FromEdges(81, src, dst, nil, graph.Build{}); err != nil {
		t.Fatal(err)
	}
	after, err := heddle.Predict(m, &h)
	if err != nil {
		t.Fatal(err)
	}
	agrees(t, ask(200, fmt.Sprintf(added, false)), after, 80, 3, 5)
	ask(400, `{"nodes": ["x"]}`)
	agrees(t, ask(200, `{"nodes": ["n3", "n5"]}`), want, 3, 5)
	agrees(t, ask(200, fmt.Sprintf(added, true)), after, 80, 3, 5)
	agrees(t, ask(200, `{"nodes": ["x", "n4", 80]}`), after, 80, 4, 80)

	edge, features := `{"nodes": [1], "edges": [%s]}`, `"features": [1, 2, 3, 4, 5]`
	for _, one := range [][2]string{
		{``, "JSON"}, {`{"nodes": [1]} {}`, "JSON"}, {`{"node": [1]}`, "unknown field"},
		{`{"nodes": []}`, "1 to 10000"}, {`{"nodes": [` + strings.Repeat("1,", mostNodes) + `1]}`, "1 to 10000"},
		{`{"nodes": [81]}`, "0 to 80"}, {`{"nodes": [-1]}`, "0 to 80"}, {`{"nodes": [1.5]}`, "whole number"},
		{`{"nodes": ["n80"]}`, `"n80"`}, {`{"nodes": [{}]}`, "a name or a whole number"},
		{`{"nodes": [99999999999999999999]}`, "whole number"},
		{`{"new": [{"node": "y", "features": [1]}]}`, "5 features"},
		{`{"new": [{"node": "n1", ` + features + `}]}`, "no other"},
		{fmt.Sprintf(edge, `{"from": 1, "to": 1}`), "two nodes"},
		{fmt.Sprintf(edge, `{"from": "x", "to": 4}`), "must be new"},
		{fmt.Sprintf(edge, `{"from": 1, "to": 2, "weight": 3}`), "weight"},
		{fmt.Sprintf(edge, `{"from": 1, "to": 2, "relation": "r"}`), "relation"},
		{`{"nodes": [1], "changed": [{"node": 1, "features": [1, 2, 3, 4, 1e39]}]}`, "features"},
		{`{"nodes": [1], "keep": true, "new": [{"node": "z", ` + features + `}], "edges": [{"from": "q", "to": 1}]}`,
			`"q"`},
	} {
		if text, _ := ask(400, one[0])["error"].(string); !strings.Contains(text, one[1]) {
			t.Errorf("%.100s: %q must have %q", one[0], text, one[1])
		}
	}
	ask(400, `{"nodes": ["z"]}`) // the request that failed kept nothing
	ask(413, `{"nodes": [`+strings.Repeat(" ", mostBody)+`1]}`)
	ask(415, `{"nodes": [1]}`, "Content-Type", "text/plain")
}

func TestServeGuards(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, url := served(t, federation.HTTP{Address: "0.0.0.0:0", Token: token})
	for header, must := range map[string]int{"": 401, "Bearer 0123456789abcdee": 401, "Bearer 0123456789abcdef": 200} {
		if status, answer := post(t, url, `{"nodes": [1]}`, "Authorization", header); status != must {
			t.Errorf("%q: status %d, must be %d: %v", header, status, must, answer)
		}
	}
	for path, must := range map[string]int{"/healthz": 200, "/metrics": 401} {
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != must {
			t.Errorf("%s: status %d, must be %d", path, answer.StatusCode, must)
		}
	}
	r, _ := http.NewRequest("GET", url+"/metrics", nil)
	r.Header.Set("Authorization", "Bearer 0123456789abcdef")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{`heddle_requests_total{status="200"} 1`, "heddle_predictions_total 1",
		"heddle_nodes 80", "heddle_request_seconds_count 1"} {
		if !bytes.Contains(text, []byte(must)) {
			t.Errorf("metrics must have %q\n%s", must, text)
		}
	}
	s := service{}
	if _, err := s.handler(federation.HTTP{Address: "0.0.0.0:0"}); err == nil ||
		!strings.Contains(err.Error(), "--http-token-file") {
		t.Errorf("without a token, an address for others must be refused (got %v)", err)
	}
}

// TestServeEnds runs the command: it prints where it serves, and ends without an error when it is interrupted.
func TestServeEnds(t *testing.T) {
	folder := t.TempDir()
	g, m, _ := served(t, federation.HTTP{Address: "127.0.0.1:0"})
	model, data := filepath.Join(folder, "model.safetensors"), filepath.Join(folder, "data.graph")
	if err := modelfile.Write(model, m, modelfile.Card{Classes: []string{"red", "green", "blue"}}); err != nil {
		t.Fatal(err)
	}
	if err := external.WriteGraph(data, g); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	c := newServe()
	c.SetArgs([]string{"--model", model, "--data", data, "--http", "127.0.0.1:0"})
	c.SetOut(in)
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx); in.Close() }()
	var text strings.Builder
	buf, at := make([]byte, 1000), ""
	for at == "" {
		n, err := out.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v: %s, %v", err, text.String(), <-ended)
		}
		at = regexp.MustCompile(`http://[0-9.:]+`).FindString(text.String())
	}
	go io.Copy(io.Discard, out)
	if !strings.Contains(text.String(), "80 nodes, predictions reach 2 hops; rows built in ") {
		t.Errorf("the command must print what it has built (got %q)", text.String())
	}
	want, err := heddle.Predict(m, g)
	if err != nil {
		t.Fatal(err)
	}
	_, answer := post(t, at, `{"nodes": ["n1"]}`)
	agrees(t, answer, want, 1)
	http.DefaultClient.CloseIdleConnections()
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the command must end when it is interrupted")
	}
}
