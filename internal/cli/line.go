package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// line is a line of progress on a terminal, which is never wider than that.
type line struct {
	w     io.Writer
	width func() int // of the terminal now, in columns
	total int        // steps
	began time.Time
	drawn int // columns of what is shown (0 = nothing is)
}

// showLine replaces what is shown by parts: the first one always, as far as it fits, and of the others
// as many as fit.
func (l *line) showLine(done int, parts []string) {
	columns := l.width() - 1 // in the last one some terminals wrap already
	share := 0.0
	if l.total > 0 {
		share = min(float64(done)/float64(l.total), 1)
	}
	text := cut(fmt.Sprintf("%3.0f %%  %s", 100*share, parts[0]), columns)
	more := parts[1:]
	if took := time.Since(l.began); share > 0 && took > time.Second {
		left := time.Duration(float64(took) * (1 - share) / share).Round(time.Second)
		more = append([]string{left.String() + " left"}, more...)
	}
	for _, part := range more {
		if utf8.RuneCountInString(text)+2+utf8.RuneCountInString(part) > columns {
			break
		}
		text += "  " + part
	}
	fmt.Fprint(l.w, l.back()+text)
	l.drawn = utf8.RuneCountInString(text)
}

// clear removes what is shown.
func (l *line) clear() {
	if l.drawn > 0 {
		fmt.Fprint(l.w, l.back())
		l.drawn = 0
	}
}

// back returns what moves to the beginning of what is shown and erases it. If the terminal has become
// narrower since, that has wrapped, and begins some rows above.
func (l *line) back() string {
	text := "\r"
	if width := l.width(); l.drawn > width && width > 0 {
		text += fmt.Sprintf("\x1b[%dA", (l.drawn-1)/width)
	}
	return text + "\x1b[J"
}

// cut shortens text to `columns` columns.
func cut(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:max(columns-1, 0)]), " ") + "…"
}
