package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// status is a run as /status describes it and heddle status reads it. Fields are added and never removed.
type status struct {
	Title    string      `json:"title"`
	State    string      `json:"state"` // in a sentence
	Method   string      `json:"method"`
	Model    string      `json:"model"`
	Sites    []LiveSite  `json:"sites"`
	Stage    string      `json:"stage"`
	Round    int         `json:"round"`
	Done     int         `json:"done"`
	Total    int         `json:"total"`
	Metric   string      `json:"metric"`
	Positive string      `json:"positive,omitempty"` // of two classes, the one that the metric is of, as AP is
	Loss     *float64    `json:"loss"`               // null = not known, as in rounds that are solved
	Val      *float64    `json:"val"`
	Sent     comm.Counts `json:"sent"`
	Saved    int         `json:"checkpoints"`
	Restored int         `json:"restored"`
	Resyncs  int         `json:"resyncs"`
	Began    time.Time   `json:"began"`
	Last     time.Time   `json:"last_event"`
	Complete bool        `json:"complete"`
	Failed   string      `json:"failed,omitempty"`
	Notes    []LiveNote  `json:"notes"` // newest last
}

// status is the run as it is now.
func (p *Live) status() status {
	p.mu.Lock()
	s := p.state.now()
	p.mu.Unlock()
	all := status{Title: p.About.Title(), State: s.Sentence(), Method: p.About.Method, Model: p.About.Model,
		Sites:  s.Sites,
		Metric: s.Metric, Positive: s.Positive, Stage: s.Round.StageName, Round: s.Round.Round, Done: s.Round.Done,
		Total: s.Round.Total, Sent: s.Round.Sent, Saved: s.Saved, Restored: s.Restored, Resyncs: s.Resyncs,
		Began: s.Began,
		Last:  s.Last, Complete: s.over && s.fault == "", Failed: s.fault, Notes: append([]LiveNote{}, s.Notes...)}
	if s.Round.Kind != "" {
		all.Val, all.Loss = cli.Number(s.LastVal()), cli.Number(s.Round.Loss)
	}
	return all
}

func newStatus() *cobra.Command {
	var f HTTP
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [--http ADDRESS]",
		Short: "Print how far a run is that serves a live page",
		Long: `Print the state of a run that heddle join or heddle train began with --http: what it trains, who is
connected, what was measured and sent, and the last events.`,
		Example: "  heddle status --http 127.0.0.1:8080\n  heddle status --http https://heddle.example " +
			"--http-token-file token",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := f.fetch(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return cli.WriteJSON(c.OutOrStdout(), cli.Stdout, s)
			}
			s.print(c.OutOrStdout()) // the program keeps the first error of standard output
			return nil
		},
	}
	c.Flags().StringVar(&f.Address, "http", "127.0.0.1:8080", "address of the live page")
	c.Flags().StringVar(&f.Token, "http-token-file", "", "file with the token of the page")
	cli.Reads(c.Flags(), "http-token-file")
	c.Flags().BoolVar(&asJSON, "json", false, "print the state as JSON")
	return c
}

// mostStatus is how long an answer may be.
const mostStatus = 1 << 20

// fetch asks a page for the state of its run.
func (f HTTP) fetch(ctx context.Context) (s status, err error) {
	url := f.Address
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", strings.TrimSuffix(url, "/")+"/status", nil)
	if err != nil {
		return s, cli.Invalidf("--http: %v", err)
	}
	if f.Token != "" {
		token, err := f.readToken()
		if err != nil {
			return s, err
		}
		r.Header.Set("Authorization", "Bearer "+string(token))
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}}
	answer, err := client.Do(r)
	if err != nil {
		return s, fmt.Errorf("no live page answers: %w (heddle join and heddle train serve one with --http)", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostStatus))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, plain(string(text)))
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", url, err)
	}
	return s, nil
}

// plain is text without what a terminal would obey.
func plain(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text))
}

// mostLines is how many events are printed.
const mostLines = 8

func (s status) print(w io.Writer) {
	fmt.Fprintf(w, "%s (%s)\n%s\n", plain(s.Title), plain(strings.TrimSuffix(s.Method+", "+s.Model, ", ")),
		plain(s.State))
	var known []string
	if s.Loss != nil {
		known = append(known, fmt.Sprintf("training loss %.4f", *s.Loss))
	}
	if s.Val != nil {
		known = append(known, fmt.Sprintf("validation %s %s",
			plain(cli.OfClass(s.Metric, eval.Metric(s.Metric), s.Positive)),
			cli.Measure(eval.Metric(s.Metric), *s.Val)))
	}
	if n := s.Sent.Total(); n > 0 {
		known = append(known, "sent "+cli.Bytes(n))
	}
	if len(known) > 0 {
		fmt.Fprintln(w, strings.Join(known, ", "))
	}
	t := cli.Table{Head: []string{""}}
	for _, one := range s.Sites {
		t.Add(plain(one.Name), plain(one.Row()))
	}
	if len(s.Sites) > 1 {
		t.Print(w)
	}
	if len(s.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range s.Notes[max(0, len(s.Notes)-mostLines):] {
		fmt.Fprintf(w, "%s  %s\n", Clock(n.Time), plain(n.String()))
	}
}
