package report

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

func sample() Page {
	s := Page{Title: `<cora> & "friends"`, Metric: "accuracy", Summary: []Fact{{"test accuracy", "81.20 %"}}, Setting: "model: gcn\n", Command: "peer train --seed 1",
		Compare: &Table{Head: []string{"way", "accuracy"}, Rows: [][]string{{"site 0 alone", "70.1"}}},
		Peers:   []heddle.Traffic{{Name: "peer 0", Counts: comm.Counts{Halo: 3e6, Reduce: 2e6, Control: 1e4}, Wire: 6e6}, {Name: "peer 1", Counts: comm.Counts{Halo: 2e6, Reduce: 2e6, Control: 1e4}, Wire: 5e6}}}
	for k := range 2 {
		st := train.StageResult{Name: []string{"layer 1", "layer 2"}[k], Val: 0.8, Test: math.NaN()}
		for r := range 50 {
			p := train.Point{Round: r, Loss: 2 * math.Exp(-float64(r)/20), Val: math.NaN()}
			if r%5 == 0 {
				p.Val = 0.8 - 0.5*math.Exp(-float64(r)/10)
			}
			st.Curve = append(st.Curve, p)
		}
		s.Stages = append(s.Stages, st)
	}
	return s
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, sample()); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	if n := strings.Count(html, "<svg"); n != 3 {
		t.Errorf("%d charts, want loss, accuracy and bytes", n)
	}
	for _, want := range []string{"&lt;cora&gt; &amp;", "81.20 %", "site 0 alone", "3.00 MB", "80.00 %", "none", "peer train --seed 1"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	// The namespaces in <svg> are names and not fetched; any other address would be.
	for _, bad := range []string{"<script", "src=", "<link", "@import", "url("} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q: it must stand alone", bad)
		}
	}
	for chart := range strings.SplitSeq(html, "<svg") {
		body, ok := strings.CutSuffix(chart[:max(strings.Index(chart, "</svg>"), 0)], "")
		if !ok || body == "" {
			continue
		}
		d := xml.NewDecoder(strings.NewReader("<svg" + body + "</svg>"))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("a chart must be XML: %v", err)
			}
		}
	}
}

func TestWriteWithoutCurves(t *testing.T) {
	p := sample()
	for i := range p.Stages {
		p.Stages[i].Curve = nil
	}
	p.Peers = []heddle.Traffic{{Name: "alone"}}
	p.Compare = nil
	var b strings.Builder
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<svg") || !strings.Contains(b.String(), "solved in one round") {
		t.Error("the page must say that there are no curves")
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.00 kB", 9999: "10.0 kB", 999_499: "999 kB", 999_500: "1.00 MB", 1_782_000_000: "1.78 GB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
}
