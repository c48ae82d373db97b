package page

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
		"| command | `go run ./bench epoch -python python3 -root=data -only 'memory;own, 2' -baseline 'python3 " +
			"bench/metis.py'` |\n| machine | ",
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

// Rows are kept in the order of their columns, those of the same command and table only once.
func TestWrite(t *testing.T) {
	if strings.Contains(Version(), " ") {
		t.Skip("SKIPPED: the tree has changes")
	}
	file := filepath.Join(t.TempDir(), "epoch.jsonl")
	if err := New(&strings.Builder{}, nil).Write(file, "Empty"); err == nil {
		t.Error("an empty measurement must not be written")
	}
	for turn, args := range [][]string{{"epoch"}, {"epoch", "-threads", "1"}, {"epoch"}} {
		p := New(&strings.Builder{}, args)
		p.Table("data %s", "test %s", "turns %d", "a %+.1f")
		p.Row("cora", "81.20 ± 0.30", turn, 2.0)
		if err := p.Write(file, "epochs"); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `"row":{"data":"cora","test":{"mean":81.20,"spread":0.30},"turns":2,"a":2.0}}` + "\n"
	if strings.Count(string(text), "\n") != 2 || !strings.HasSuffix(string(text), want) {
		t.Errorf("two lines must end with %s (got\n%s)", want, text)
	}
}

func TestRender(t *testing.T) {
	folder := t.TempDir()
	line := func(row string) string {
		return `{"table":"speed","command":"c","commit":"0","machine":"M, 2","date":"2026-11-29","row":` + row + "}\n"
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("epoch.jsonl", line(`{"data":"cora","model":"gcn","ms":{"seeds":[1.0,3.0]}}`)+
		line(`{"data":"cora","model":"gat","ms":5}`)+
		line(`{"data":"actor","model":"gat","ms":{"mean":7,"spread":1}}`))
	const source = "\n\n[Commands](../../bench/results/epoch.jsonl), M, 2026-11-29."
	for call, want := range map[string]string{
		`"data" "model" "ms"`: "| data | model | ms |\n|---|---|---:|\n| cora | gcn | 2.0±1.4 |\n| cora | gat | 5 |\n" +
			"| actor | gat | 7±1 |",
		`"data" "model: ms"`:  "| data | gcn | gat |\n|---|---:|---:|\n| cora | 2.0±1.4 | 5 |\n| actor |  | 7±1 |",
		`"data=actor|x" "ms"`: "| ms |\n|---:|\n| 7±1 |",
		`"loss"`:              "",
		`"data=x" "data"`:     "",
	} {
		write("a.tmpl", `{{table "epoch" "speed" `+call+`}}`)
		pages, err := Render(folder)
		got, whole := strings.CutSuffix(string(pages["a.md"]), source)
		if got != want || whole != (want != "") || (err == nil) != whole {
			t.Errorf("%s must be\n%s\n(got\n%s, %v)", call, want, got, err)
		}
	}
	write("epoch.jsonl", strings.Repeat(line(`{"data":"cora"}`), MaxRows+1))
	write("a.tmpl", `{{table "epoch" "speed" "data"}}`)
	if _, err := Render(folder); err == nil {
		t.Error("a table of 13 rows must be refused")
	}
	faults := []string{line(`{"a":true}`), line(`{"a":1,"a":2}`), `{"table":"a"}`, `{"tables":"a"}`, line(`[1]`)}
	for _, faulty := range faults {
		write("epoch.jsonl", faulty)
		if _, err := Read(filepath.Join(folder, "epoch.jsonl")); err == nil {
			t.Errorf("%s: no error", faulty)
		}
	}
}

// The pages are what go run ./bench page makes of the figures, and nothing else is in their folder.
func TestPagesAreRendered(t *testing.T) {
	const folder = "../../docs/measurements"
	pages, err := Render("../results")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, rendered := pages[e.Name()]; !rendered && filepath.Ext(e.Name()) == ".md" {
			t.Errorf("%s/%s has no template in bench/results", folder, e.Name())
		}
	}
	words := 0
	hash := regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	history := regexp.MustCompile(`\b(goals?|formerly|used to)\b`)
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what go run ./bench page writes (%v)", name, err)
		}
		for _, w := range bytes.Fields(want) {
			if strings.Trim(string(w), "|-:") != "" {
				words++
			}
		}
		for _, h := range hash.FindAllString(string(want), -1) {
			if strings.ContainsAny(h, "abcdef") && strings.ContainsAny(h, "0123456789") {
				t.Errorf("%s must not name a commit (got %s)", name, h)
			}
		}
		if w := history.FindString(string(want)); w != "" {
			t.Errorf("%s must report what is, not what was to be (got %q)", name, w)
		}
	}
	if len(pages) != 8 || words > 8_150 {
		t.Errorf("there must be 8 pages of at most 8,150 words (got %d of %d)", len(pages), words)
	}
}

// Every line names a commit of this repository.
func TestCommitsExist(t *testing.T) {
	out, err := exec.Command("git", "rev-parse", "--is-shallow-repository").Output()
	if err != nil || strings.TrimSpace(string(out)) != "false" {
		t.Skip("SKIPPED: no whole history here")
	}
	files, err := filepath.Glob("../results/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var tried []string
	for _, file := range files {
		lines, err := Read(file)
		if err != nil {
			t.Error(err)
		}
		for _, l := range lines {
			if slices.Contains(tried, l.Commit) {
				continue
			}
			tried = append(tried, l.Commit)
			if err := exec.Command("git", "merge-base", "--is-ancestor", l.Commit, "HEAD").Run(); err != nil {
				t.Errorf("%s: commit %s must be in the history of HEAD (%v)", file, l.Commit, err)
			}
		}
	}
	if len(tried) == 0 {
		t.Error("no commit was tried")
	}
}
