package arch

import (
	"bytes"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heddle-gnn/heddle/plan"
)

var rewrite = flag.Bool("rewrite", false, "write today's figures to budget.txt")

const (
	budgetFile = "budget.txt"

	maxPackage = 4000 // lines of one noun
	maxColumns = 120
	tabColumns = 4
	maxWords   = 30 // of a sentence
)

// figure is a figure in budget.txt: it may not rise or, if it is a floor, not fall.
type figure struct {
	name  string
	now   float64
	floor bool
}

// phrases are phrases that a reader has to read twice, by their names in budget.txt.
var phrases = []struct {
	name  string
	plain string // what to write
	re    *regexp.Regexp
}{
	{"of-which", "two sentences", regexp.MustCompile(`(?i)\b(of|by) (which|whom)\b`)},
	{"sentence-of", "with, for, among", regexp.MustCompile(`(?m)(^|[.:;!?] )Of [a-z]`)},
	{"whoever", "the site, the attacker, the user",
		regexp.MustCompile(`(?i)\bwhoever\b|\bwho (asks|reads|has|sends|sums) (asks|reads|it|them|in)\b`)},
	{"says", "lists, sets, names, reports", regexp.MustCompile(`(?i)\b(says|tells|told)\b`)},
	{"where-if", "if, when", regexp.MustCompile(`(?i)\bwhere (it|they|there|this|no|none|all|each)\b`)},
	{"crosses", "is sent", regexp.MustCompile(`(?i)\b(cross(es|ed)?([^-a-z]|$)|(travels?|travell?ed)\b)`)},
	{"drawn", "random, sampled, generated", regexp.MustCompile(`(?i)\bdrawn\b`)},
	{"bare-values", "the `auto` preset",
		regexp.MustCompile(`(?i)\b(preset (auto|frugal)|tasks? links|mode (retexo|fullbatch|minibatch|standalone))\b`)},
	{"zero-colon", "(0 = none)", regexp.MustCompile(`(?i)\b(0|empty|nil): [a-z]`)},
	{"alone", "only; its own; instead of; next to; except",
		regexp.MustCompile(`(?i)\b(alone|of (its|their|his) own|in place of|beside|but for)\b`)},
	{"that-of", "repeat the noun", regexp.MustCompile(`(?i)\b(that of|those of|so (many|long))\b`)},
	{"holds", "helps, gains, is, has", regexp.MustCompile(`(?i)\b(pays|worth|lies|stands|holds)\b`)},
	{"doors", "messages, buffers, published metrics", regexp.MustCompile(`(?i)\b(doors?|rooms?|told figures?)\b`)},
}

// product reports whether a file is part of what users get: no test, no measurement and, since assembly decides its
// size, no kernel.
func product(name string) bool {
	return !strings.HasSuffix(name, "_test.go") && !matches("bench/...", path.Dir(name)) &&
		!matches("kernels/...", path.Dir(name))
}

// counts are sums over the files of the module.
type counts struct {
	lines, tokens, comments, long, words int
	sentences                            []string       // the long ones, behind their page
	packages                             map[string]int // lines by folder, kernels and bench as well
	product                              map[string]bool
	phrases                              map[string]int
}

// file counts one file of Go.
func (c *counts) file(name string, src []byte) {
	if generated(src) {
		return
	}
	for line := range bytes.Lines(src) {
		line = bytes.TrimRight(line, "\r\n")
		if utf8.RuneCount(line)+(tabColumns-1)*bytes.Count(line, []byte("\t")) > maxColumns {
			c.long++
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return
	}
	lines := bytes.Count(src, []byte("\n"))
	c.packages[path.Dir(name)] += lines
	if !product(name) {
		return
	}
	c.product[path.Dir(name)] = true
	c.lines += lines
	var scan scanner.Scanner
	scan.Init(token.NewFileSet().AddFile(name, -1, len(src)), src, nil, scanner.ScanComments)
	for {
		_, tok, text := scan.Scan()
		switch {
		case tok == token.EOF:
			return
		case tok == token.COMMENT:
			c.comments += 1 + strings.Count(text, "\n")
			c.text(strings.TrimSpace(strings.TrimPrefix(text, "//")))
			continue
		case tok == token.STRING: // errors, help, pages
			c.text(strings.Trim(text, "`\""))
		case tok == token.SEMICOLON && text != ";":
			continue // the end of a line
		}
		c.tokens++
	}
}

// text counts phrases.
func (c *counts) text(text string) {
	for _, p := range phrases {
		c.phrases[p.name] += len(p.re.FindAllStringIndex(text, -1))
	}
}

var (
	noSentence = regexp.MustCompile(`(?m)^\s*([|#]|!\[|\[[^\]]*\]: ).*$`) // tables, headings, pictures, addresses
	item       = regexp.MustCompile(`(?m)^\s*([-*]|\d+\.) `)
	end        = regexp.MustCompile(`\n\s*\n|[.!?][)"*\]]*\s`)
)

// longSentences returns the sentences of a page with more than maxWords words. Inline code counts as one word.
func longSentences(page string) (long []string) {
	page = inline.ReplaceAllString(block.ReplaceAllString(page, ""), "code")
	page = noSentence.ReplaceAllString(link.ReplaceAllString(page, "]"), "")
	for _, sentence := range end.Split(item.ReplaceAllString(page, "\n\n"), -1) {
		if words := strings.Fields(sentence); len(words) > maxWords {
			long = append(long, strings.Join(words, " "))
		}
	}
	return long
}

// today returns the figures of this tree.
func today(t *testing.T) ([]figure, counts) {
	t.Helper()
	c := counts{packages: map[string]int{}, product: map[string]bool{}, phrases: map[string]int{}}
	err := walk(root, func(name string, src []byte) error {
		c.file(filepath.ToSlash(name), src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range files(t, ".md") {
		if page != "README.md" && !strings.HasPrefix(page, "docs/") || strings.HasPrefix(page, "docs/adr/") {
			continue
		}
		text := read(t, page)
		c.words += len(strings.Fields(text))
		c.text(prose(text))
		for _, long := range longSentences(text) {
			c.sentences = append(c.sentences, page+": "+long)
		}
	}
	settings := 0
	for _, s := range plan.Settings("") {
		// experimental ones have no help and no promise, local ones are no part of a plan
		if !s.Experimental && !s.Local {
			settings++
		}
	}
	direct := 0
	for _, line := range lines(read(t, "go.mod")) {
		if f := strings.Fields(line); len(f) >= 2 && strings.HasPrefix(f[len(f)-1], "v") &&
			strings.Contains(line, ".") {
			direct++ // those that others need end in "// indirect"
		}
	}
	share := float64(int(10000*float64(c.comments)/float64(c.lines))) / 100 // rounded down
	all := []figure{{"lines", float64(c.lines), false}, {"tokens", float64(c.tokens), false},
		{"comment-percent", share, true}, {"packages", float64(len(c.product)), false},
		{"settings", float64(settings), false}, {"dependencies", float64(direct), false},
		{"words", float64(c.words), false}, {"long-lines", float64(c.long), false},
		{"long-sentences", float64(len(c.sentences)), false}}
	for _, p := range phrases {
		all = append(all, figure{"phrase-" + p.name, float64(c.phrases[p.name]), false})
	}
	return all, c
}

const budgetHead = `# What a person has to read, as it may be at most: NAME FIGURE (comment-percent: at least). A figure that rises takes a
# decision in docs/adr in the same commit, with a measurement and its price in lines. One that has fallen is lowered by
#   go test ./internal/arch -run Budget -rewrite
# Lines and tokens are of Go without kernels, bench, tests, generated files and (tokens) comments; packages are those that
# have them. Words and sentences (those of over 30 words) are of README.md and docs without docs/adr. Long lines are of
# all Go. Phrases are in budget_test.go.

`

// TestBudget fails if a figure of budget.txt is exceeded, or a package is several nouns.
func TestBudget(t *testing.T) {
	all, c := today(t)
	for folder, n := range c.packages {
		if n > maxPackage && folder != "kernels" { // one table of functions a set of instructions
			t.Errorf("package %s must have at most %d lines (got %d): split it by noun", folder, maxPackage, n)
		}
	}
	text, err := os.ReadFile(budgetFile)
	if err != nil {
		t.Fatal(err)
	}
	budget := map[string]float64{}
	for _, line := range lines(string(text)) {
		var name string
		var most float64
		if _, err := fmt.Sscan(line, &name, &most); err != nil {
			t.Fatalf("a line of %s must be NAME FIGURE (got %q)", budgetFile, line)
		}
		budget[name] = most
	}
	if *rewrite {
		lowered := budgetHead
		for _, f := range all {
			most, has := budget[f.name]
			better := f.now < most
			if f.floor {
				better = f.now > most
			}
			if !has || better {
				budget[f.name] = f.now
			}
			lowered += fmt.Sprintf("%s %v\n", f.name, budget[f.name])
		}
		if err := os.WriteFile(budgetFile, []byte(lowered), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("long sentences:\n%s", strings.Join(c.sentences, "\n"))
	for _, f := range all {
		most, has := budget[f.name]
		delete(budget, f.name)
		const rule = "Another figure in internal/arch/" + budgetFile +
			" takes a decision with a measurement and its price"
		switch {
		case !has:
			t.Errorf("%s must have %s", budgetFile, f.name)
		case f.now == most:
		case f.floor && f.now < most:
			t.Errorf("%s must be at least %v (got %v): write why. %s", f.name, most, f.now, rule)
		case !f.floor && f.now > most:
			t.Errorf("%s must be at most %v (got %v)%s: take away as much as you add. %s", f.name, most, f.now,
				instead(f.name), rule)
		default:
			t.Logf("%s is %v, better than %v: lower the budget by go test ./internal/arch -run Budget -rewrite", f.name,
				f.now, most)
		}
	}
	for name := range budget {
		t.Errorf("%s has %s, which nothing measures", budgetFile, name)
	}
}

// instead returns what to write for a phrase.
func instead(name string) string {
	for _, p := range phrases {
		if name == "phrase-"+p.name {
			return fmt.Sprintf(", %v; write: %s", p.re, p.plain)
		}
	}
	return ""
}
