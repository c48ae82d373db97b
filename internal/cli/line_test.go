package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// screen is a terminal that wraps long lines, also when it becomes narrower.
type screen struct {
	width  int
	rows   [][]rune // of the width at most
	row    int      // of the cursor
	column int
}

var control = regexp.MustCompile("^\x1b\\[(\\d*)([AJ])")

func (s *screen) Write(b []byte) (int, error) {
	for text := string(b); text != ""; {
		if s.row >= len(s.rows) {
			s.rows = append(s.rows, nil)
		}
		if m := control.FindStringSubmatch(text); m != nil {
			if m[2] == "A" {
				n := 0
				fmt.Sscan(m[1], &n)
				s.row = max(0, s.row-n)
			} else {
				s.rows = s.rows[:s.row+1]
				s.rows[s.row] = s.rows[s.row][:min(s.column, len(s.rows[s.row]))]
			}
			text = text[len(m[0]):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.column = 0
		case '\n':
			s.row, s.column = s.row+1, 0
		default:
			if s.column == s.width {
				s.row, s.column = s.row+1, 0
				s.rows = append(s.rows[:s.row], nil)
			}
			s.rows[s.row] = append(s.rows[s.row][:s.column], r)
			s.column++
		}
	}
	return len(b), nil
}

// narrow makes the terminal narrower: the row of the cursor, the last one, wraps.
func (s *screen) narrow(width int) {
	s.width = width
	last := s.rows[s.row]
	s.rows = s.rows[:s.row]
	for len(last) > width {
		s.rows, last = append(s.rows, last[:width]), last[width:]
	}
	s.rows = append(s.rows, last)
	s.row, s.column = len(s.rows)-1, len(last)
}

func (s *screen) String() string {
	var lines []string
	for _, r := range s.rows {
		lines = append(lines, string(r))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// on is a watch whose terminal is s.
func on(s *screen) *Watch {
	w := newWatch(s, false, slog.LevelInfo, "text")
	w.columns, w.last = func() int { return s.width }, time.Time{}
	return w
}

// round is what happens in a run.
func roundEnd(done int) train.Event {
	return train.Event{Kind: train.RoundEnd, Stage: 1, StageName: "layer 1", Round: done, Done: done, Total: 200,
		Metric: "accuracy", Loss: 0.53, Val: 0.8123, Sent: comm.Counts{Halo: 12_345_678}}
}

// TestLineFits: progress takes one row at any width, the most important part of it always, and leaves nothing behind,
// even if the terminal has become narrower in between.
func TestLineFits(t *testing.T) {
	for _, width := range []int{80, 50, 20, 8} {
		s := &screen{width: width}
		w := on(s)
		for _, done := range []int{10, 20, 100} {
			w.last = time.Time{}
			w.Event(roundEnd(done))
			if got := s.String(); strings.Contains(got, "\n") || len([]rune(got)) >= width ||
				!strings.HasPrefix(got, fmt.Sprintf("%3d %%", done/2)[:min(width-2, 5)]) {
				t.Errorf("%d columns, %d rounds: %q", width, done, got)
			}
		}
		if got := s.String(); width == 80 && got != " 50 %  layer 1 round 100  val accuracy 0.8123  loss "+
			"0.5300  sent 12.3 MB" {
			t.Errorf("80 columns: %q", got)
		} else if width == 50 && got != " 50 %  layer 1 round 100  val accuracy 0.8123" {
			t.Errorf("50 columns: %q", got)
		}
		if e := roundEnd(100); width == 80 {
			e.Loss, w.last = math.NaN(), time.Time{} // solved in closed form
			if w.Event(e); s.String() != " 50 %  layer 1 round 100  val accuracy 0.8123  sent 12.3 MB" {
				t.Errorf("without a loss: %q", s.String())
			}
		}
		w.Log.Info("halo")
		w.last = time.Time{}
		w.Event(roundEnd(120))
		for _, narrower := range []int{width * 2 / 3, width / 2} {
			s.narrow(narrower)
			w.last = time.Time{}
			w.Event(roundEnd(140))
			if got := strings.Split(s.String(), "\n"); len([]rune(got[len(got)-1])) > narrower ||
				strings.Count(s.String(), "%") > 1 {
				t.Errorf("from %d to %d columns:\n%s", width, narrower, s)
			}
		}
		w.End()
		if got := s.String(); strings.Contains(got, "%") || width >= 50 && !strings.Contains(got, "halo") {
			t.Errorf("%d columns, at the end:\n%s", width, got)
		}
	}
}

// TestLogFlags: --log-format json writes an object a line, numbers that JSON lacks as null; --log-level filters; others
// are refused.
func TestLogFlags(t *testing.T) {
	var b bytes.Buffer
	w, err := WatchFlags{format: "json", level: "warn"}.Start(onto(&b))
	if err != nil {
		t.Fatal(err)
	}
	w.Log.Info("not shown")
	w.Log.Warn("shown", "val", math.NaN(), "loss", 0.5)
	var line map[string]any
	if err := json.Unmarshal(b.Bytes(), &line); err != nil || line["msg"] != "shown" || line["val"] != nil ||
		line["loss"] != 0.5 {
		t.Errorf("%s: %v", &b, err)
	}
	b.Reset()
	if w, err = (WatchFlags{format: "text", quiet: true}).Start(onto(&b)); err != nil {
		t.Fatal(err)
	}
	w.Log.Info("not shown")
	w.Log.Warn("shown")
	if got := b.String(); strings.Contains(got, "not shown") || !strings.Contains(got, "level=WARN msg=shown") {
		t.Errorf("with -q: %q", got)
	}
	for want, v := range map[string]WatchFlags{
		`--log-format must be text or json (got "xml")`:                 {format: "xml"},
		`--log-level must be debug, info, warn or error (got "loud")`:   {format: "text", level: "loud"},
		`--log-level must be debug, info, warn or error (got "WARN+1")`: {format: "text", level: "WARN+1"},
	} {
		if _, err := v.Start(onto(&b)); err == nil || err.Error() != want {
			t.Errorf("the error must be %s (got %v)", want, err)
		}
	}
}

// onto returns a command that writes to w.
func onto(w io.Writer) *cobra.Command {
	c := new(cobra.Command)
	c.SetErr(w)
	c.SetOut(w)
	return c
}

// TestEventsToStdout: the lines are there as they come, stdout stays open, and messages go to stderr.
func TestEventsToStdout(t *testing.T) {
	var out, log bytes.Buffer
	c := new(cobra.Command)
	c.SetOut(&out)
	c.SetErr(&log)
	v := WatchFlags{events: "-", format: "text", quiet: true}
	w, err := v.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	w.Event(train.Event{Kind: train.Note, Text: "hello"})
	if !strings.Contains(out.String(), `"text":"hello"`) || !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("stdout has %q", &out)
	}
	w.End()
	if v.Text(c) != io.Writer(&log) || (WatchFlags{}).Text(c) != io.Writer(&out) {
		t.Error("messages must go to stderr where events go to stdout")
	}
}

// TestTimeLeft: a log names early how long a run takes.
func TestTimeLeft(t *testing.T) {
	var log bytes.Buffer
	w := NewWatch(&log, false)
	// of a run that was resumed
	w.Event(train.Event{Kind: train.RoundEnd, Done: 21, Total: 100, Val: math.NaN(), Loss: math.NaN()})
	w.began, w.last = w.began.Add(-6*time.Second), w.last.Add(-6*time.Second)
	w.Event(train.Event{Kind: train.RoundEnd, Done: 23, Total: 100, Val: math.NaN(), Loss: math.NaN()})
	if !strings.Contains(log.String(), " left=3") {
		t.Errorf("the log is\n%s\nand must have the time that is left", &log)
	}
}
