package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrints(t *testing.T) {
	var out strings.Builder
	p := New(&out, []string{"epoch", "-write", "-python", "/opt/venv/bin/python3", "-heading", "One thread",
		"-root=/data", "-only", "memory;own, 2", "-baseline", "/opt/bin/python3 bench/metis.py"})
	if out.Len() > 0 {
		t.Errorf("an empty page prints %q", out.String())
	}
	p.Text("hidden %d", 64)
	p.Table("data %s", "test accuracy, % %.1f", "turns %d")
	p.Row("cora", 81.25, 7)
	got := out.String()
	for _, want := range []string{
		"| command | `go run ./bench epoch -python python3 -root=data -only 'memory;own, 2' -baseline 'python3 bench/metis.py'` |\n| machine | ",
		"\n\nhidden 64\n\n| data | test accuracy, % | turns |\n|---|---:|---:|\n| cora | 81.2 | 7 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Count(got, "| command |") != 1 {
		t.Errorf("the command must be printed once:\n%s", got)
	}
}

func TestWriteReplacesItsSection(t *testing.T) {
	dir, about := t.TempDir(), About{Name: "epoch", Title: "Epochs", Text: "What they take."}
	if err := New(&strings.Builder{}, nil).Write(dir, about, "Empty"); err == nil {
		t.Error("an empty measurement must not be written")
	}
	for _, section := range []string{"First", "Second", "Third", "Second"} {
		p := New(&strings.Builder{}, []string{"epoch"})
		p.Text("%s and %d more", section, len(section))
		if section == "Second" {
			p.Text("written again")
		}
		if err := p.Write(dir, about, section); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "epoch.md"))
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			headings = append(headings, strings.TrimSpace(line))
		}
	}
	if got := strings.Join(headings, ", "); got != "# Epochs, ## First, ## Second, ## Third" {
		t.Errorf("headings %s", got)
	}
	if n := strings.Count(string(text), "written again"); n != 1 {
		t.Errorf("the section must be there once (got %d times):\n%s", n, text)
	}
	if strings.Contains(string(text), "\n\n\n") || !strings.HasSuffix(string(text), "more\n") {
		t.Errorf("blank lines:\n%q", text)
	}
}
