package federation

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/gate"
)

// rules writes a file of rules.
func rules(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "phones.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInvitations: a phone that shows the invitation of a cohort belongs to it, and no other does.
func TestInvitations(t *testing.T) {
	s, err := readPhones(rules(t, "stay: 1m\ncohorts:\n- {name: old, most: 10, rate: 2, invitation: red}\n"+
		"- {name: new, most: 20, invitation: blue}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for evidence, cohort := range map[string]string{"red": "old", "blue": "new", "": "", "gree": "", "redblue": ""} {
		got, err := s.Attest(t.Context(), [16]byte{}, []byte(evidence))
		if got.Cohort != cohort || (err == nil) != (cohort != "") {
			t.Errorf("%q is of cohort %q (%v), must be of %q", evidence, got.Cohort, err, cohort)
		}
	}
	if len(s.Cohorts) != 2 || s.Cohorts[0] != (gate.Cohort{Name: "old", Most: 10, Rate: 2}) {
		t.Errorf("cohorts are %+v", s.Cohorts)
	}
}

// TestCommand: a command sees evidence and token, and its answer is the cohort; one that fails turns the phone away.
func TestCommand(t *testing.T) {
	s, err :=
		readPhones(rules(t,
			`attest: [/bin/sh, -c, 'read x; test "$x" = good && test ${#HEDDLE_TOKEN} = 32 && printf "app\\nnode 7\\n"']`+"\ncohorts:\n- {name: app, most: 10}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Attest(t.Context(), [16]byte{}, []byte("good\n")); got.Cohort != "app" ||
		!slices.Equal(got.Nodes, []string{"node 7"}) || err != nil {
		t.Errorf("good evidence is of %+v (%v), must be of app with node 7", got, err)
	}
	if got, err := s.Attest(t.Context(), [16]byte{}, []byte("bad\n")); err == nil {
		t.Errorf("bad evidence is of %+v, must be of none", got)
	}
}

// TestNodes: the invitation of a phone determines its nodes; without edges there are none, and a faulty table is named
// with its line.
func TestNodes(t *testing.T) {
	path := rules(t, "edges: friends.csv\nnodes: phones.csv\ncohorts:\n- {name: app, most: 10}\n")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("friends.csv", "src,dst\nann,bob\nbob,eve\n")
	write("phones.csv", "node,invitation,cohort\nann,red,app\neve,blue,app\nbob,red,app\n")
	s, err := readPhones(path)
	if err != nil {
		t.Fatal(err)
	}
	for evidence, nodes := range map[string][]string{"red": {"ann", "bob"}, "blue": {"eve"}} {
		if as, err := s.Attest(t.Context(), [16]byte{}, []byte(evidence)); err != nil || as.Cohort != "app" ||
			!slices.Equal(as.Nodes, nodes) {
			t.Errorf("%q is admitted as %+v (%v), must have the nodes %v", evidence, as, err, nodes)
		}
	}
	if as, err := s.Attest(t.Context(), [16]byte{}, nil); err == nil || s.Edges == nil {
		t.Errorf("without an invitation a phone is admitted as %+v, must not be", as)
	}
	for text, word := range map[string]string{"src,dst\nann,ann\n": "edge 1: its ends must be two nodes",
		"from,to\na,b\n": "must have the columns src, dst"} {
		write("friends.csv", text)
		if _, err := readPhones(path); err == nil || !strings.Contains(err.Error(), word) ||
			!strings.Contains(err.Error(), "friends.csv") {
			t.Errorf("%q: the error is %v, must name the file and say %q", text, err, word)
		}
	}
}

// TestFaults: all of them are reported, with the file.
func TestFaults(t *testing.T) {
	for text, words := range map[string][]string{
		"cohorts:\n- {name: a, most: 1}\n": {"phones.yaml",
			`cohort "a" must have an invitation`},
		"attest: [x]\ncohorts:\n- {name: a, most: 1, invitation: b}": {"and not both"},
		"stay: 25h\ncohorts: []\n": {"stay must be 0s to " +
			"24h (got 25h0m0s)", "need a cohort"},
		"cohorts:\n- {name: a, most: 0, invitation: b}\n": {"at least " +
			"1 phone"},
		"cohorts:\n- {name: a, most: 1, invitation: b}\n" +
			"- {name: c, most: 1, invitation: b}\n": {`cohort "a" has the same`},
		"wait: 3s\n": {"phones.yaml", "wait"},
	} {
		_, err := readPhones(rules(t, text))
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: the error is %v, must say %q", text, err, w)
			}
		}
	}
}
