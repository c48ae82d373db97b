package federation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/internal/yamltext"
)

// phoneRules is the layout of a file of rules.
type phoneRules struct {
	Listen  []string      `yaml:"listen"`  // multiaddresses (none = leaf_addresses of the plan)
	Stay    time.Duration `yaml:"stay"`    // for phones that are behind when the model is final
	Attest  []string      `yaml:"attest"`  // command that judges evidence (none = invitations do)
	Cohorts []phoneCohort `yaml:"cohorts"` // kinds of phones
	Edges   string        `yaml:"edges"`   // table of edges between nodes of different members: src, dst
	Nodes   string        `yaml:"nodes"`   // table of the phones that have them: invitation, cohort, node

	judges chan struct{} // bounds how many commands run at once: phones may come all at the same time
	edges  [][2]string
	phones map[[sha256.Size]byte]gate.Admission // by hash of the invitation; nil without nodes
}

type phoneCohort struct {
	Name       string  `yaml:"name"`
	Most       int     `yaml:"most"`       // phones of it in a run
	Rate       float64 `yaml:"rate"`       // messages a second of all of them together (0 = no bound)
	Invitation string  `yaml:"invitation"` // what they show; only without attest
}

// usualStay is how long a site stays for phones that are behind, unless its file sets another time.
const usualStay = 10 * time.Minute

// readPhones returns the rules in the file at path. An error names the file and all faults.
func readPhones(path string) (*gate.Phones, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Invalid(err)
	}
	of := phoneRules{Stay: usualStay, judges: make(chan struct{}, mostJudges)}
	if len(text) > yamltext.MaxLen {
		return nil, cli.Invalidf("%s must have at most %d bytes (got %d)", path, yamltext.MaxLen, len(text))
	}
	if err := yaml.UnmarshalWithOptions(text, &of, yaml.Strict()); err != nil {
		return nil, cli.Invalidf("%s: %w", path, err)
	}
	if err := of.readTables(filepath.Dir(path)); err != nil {
		return nil, cli.Invalidf("%s: %w", path, err)
	}
	s := &gate.Phones{Listen: of.Listen, Stay: of.Stay, Attest: of.attest, Edges: of.edges}
	for _, c := range of.Cohorts {
		s.Cohorts = append(s.Cohorts, gate.Cohort{Name: c.Name, Most: c.Most, Rate: c.Rate})
	}
	if err := errors.Join(of.check(), s.Validate()); err != nil {
		return nil, cli.Invalidf("%s: %w", path, err)
	}
	return s, nil
}

// check returns the faults that gate.Phones does not know.
func (f phoneRules) check() error {
	var errs []error
	if f.Stay < 0 || f.Stay > 24*time.Hour {
		errs = append(errs, fmt.Errorf("stay must be 0s to 24h (got %s)", f.Stay))
	}
	if len(f.Attest) > 0 && f.Attest[0] == "" {
		errs = append(errs, errors.New("attest must begin with the path of a program"))
	}
	if f.Nodes != "" && (f.Edges == "" || len(f.Attest) > 0) {
		errs = append(errs, errors.New("nodes must be without attest, which names the nodes of a phone itself, and "+
			"with edges"))
	}
	seen := map[string]string{}
	for _, c := range f.Cohorts {
		if (c.Invitation == "") == (len(f.Attest) == 0 && f.Nodes == "") {
			errs = append(errs, fmt.Errorf("cohort %q must have an invitation, or the file a command attest or a "+
				"table nodes, and not both", c.Name))
		}
		if other, is := seen[c.Invitation]; is && c.Invitation != "" {
			errs = append(errs, fmt.Errorf("cohort %q must have its own invitation (cohort %q has the same)", c.Name,
				other))
		}
		seen[c.Invitation] = c.Name
	}
	return errors.Join(errs...)
}

// readTables reads edges and nodes. Paths are relative to dir.
func (f *phoneRules) readTables(dir string) error {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	if f.Edges == "" {
		return nil
	}
	f.edges = [][2]string{}
	err := readCells(at(f.Edges), []string{"src", "dst"}, func(cells []string) error {
		f.edges = append(f.edges, [2]string{cells[0], cells[1]})
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := leaf.NewEdges(f.edges); err != nil {
		return fmt.Errorf("%s: %w", at(f.Edges), err)
	}
	if f.Nodes == "" {
		return nil
	}
	f.phones = map[[sha256.Size]byte]gate.Admission{}
	return readCells(at(f.Nodes), []string{"invitation", "cohort", "node"}, func(cells []string) error {
		key := sha256.Sum256([]byte(cells[0]))
		as, known := f.phones[key]
		if cells[0] == "" || known && as.Cohort != cells[1] {
			return fmt.Errorf("a phone must have an invitation and one cohort (got %q and %q)", as.Cohort, cells[1])
		}
		as.Cohort, as.Nodes = cells[1], append(as.Nodes, cells[2])
		f.phones[key] = as
		return nil
	})
}

// readCells reads a CSV file that has those columns, and calls each with a row's cells in their order.
func readCells(path string, columns []string, each func([]string) error) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := csv.NewReader(f)
	head, err := t.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(head) > 0 {
		head[0] = strings.TrimPrefix(head[0], "\ufeff")
	}
	at := make([]int, len(columns))
	for k, name := range columns {
		if at[k] = slices.Index(head, name); at[k] < 0 {
			return fmt.Errorf("%s must have the columns %s (got %s)", path, strings.Join(columns, ", "),
				strings.Join(head, ", "))
		}
	}
	for {
		all, err := t.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		cells := make([]string, len(at))
		for k, i := range at {
			cells[k] = all[i]
		}
		if err := each(cells); err != nil {
			line, _ := t.FieldPos(0)
			return fmt.Errorf("%s: line %d: %w", path, line, err)
		}
	}
}

// attest judges a phone that shows that evidence.
func (f phoneRules) attest(ctx context.Context, phone [16]byte, evidence []byte) (gate.Admission, error) {
	if len(f.Attest) > 0 {
		return f.ask(ctx, phone, evidence)
	}
	shown, name := sha256.Sum256(evidence), ""
	as, known := f.phones[shown]
	for _, c := range f.Cohorts { // all of them, so that the time does not reveal which one matched
		own := sha256.Sum256([]byte(c.Invitation))
		if subtle.ConstantTimeCompare(shown[:], own[:]) == 1 && f.phones == nil {
			name = c.Name
		}
	}
	switch {
	case known:
		return as, nil
	case name == "":
		return as, errors.New("no such invitation")
	}
	return gate.Admission{Cohort: name}, nil
}

// What a command may take for one phone, how much of what it prints is read, and how many may run at once.
const (
	judgeTime  = 10 * time.Second
	mostAnswer = 1 << 16
	mostJudges = 8
)

// ask runs the command with the evidence as its input. What it prints on success is the cohort, and on a line each the
// phone's nodes.
func (f phoneRules) ask(ctx context.Context, phone [16]byte, evidence []byte) (as gate.Admission, err error) {
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	select {
	case f.judges <- struct{}{}:
	case <-ctx.Done():
		return as, errors.New("too many phones are being judged: try again")
	}
	defer func() { <-f.judges }()
	judge := exec.CommandContext(ctx, f.Attest[0], f.Attest[1:]...)
	judge.Stdin, judge.WaitDelay = bytes.NewReader(evidence), time.Second
	judge.Stderr = os.Stderr
	judge.Env = append(os.Environ(), fmt.Sprintf("HEDDLE_TOKEN=%x", phone))
	answer, err := judge.Output()
	if err != nil {
		return as, errors.New("not attested") // only the site learns why, from the command
	}
	if len(answer) > mostAnswer {
		return as, errors.New("the site's command has said too much")
	}
	for k, line := range strings.Split(strings.TrimSpace(string(answer)), "\n") {
		if line = strings.TrimSpace(line); k == 0 {
			as.Cohort = line
		} else {
			as.Nodes = append(as.Nodes, line)
		}
	}
	return as, nil
}
