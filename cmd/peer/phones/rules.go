// Package phones reads the file by which a site says which phones it takes in a run, and judges what they show.
package phones

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/internal/yamltext"
	"github.com/heddle-gnn/heddle/leaf"
	"github.com/heddle-gnn/heddle/p2p/leaves"
)

// file is the layout of a file of rules.
type file struct {
	Listen  []string      `yaml:"listen"`  // multiaddresses; none: leaf_addresses of the plan
	Stay    time.Duration `yaml:"stay"`    // for phones that are behind when the model is final
	Attest  []string      `yaml:"attest"`  // command that judges evidence; none: invitations do
	Cohorts []cohort      `yaml:"cohorts"` // kinds of phones

	judges chan struct{} // bounds how many commands run at once: phones may come all at the same time
}

type cohort struct {
	Name       string  `yaml:"name"`
	Most       int     `yaml:"most"`       // phones of it in a run
	Rate       float64 `yaml:"rate"`       // messages a second of all of them together; 0: no bound
	Invitation string  `yaml:"invitation"` // what they show; only without attest
}

// usualStay is how long a site stays for phones that are behind, unless its file says otherwise.
const usualStay = 10 * time.Minute

// Read returns the rules in the file at path. An error names the file and all faults.
func Read(path string) (*leaves.Service, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Invalid(err)
	}
	of := file{Stay: usualStay, judges: make(chan struct{}, mostJudges)}
	if len(text) > yamltext.MaxLen {
		return nil, cli.Invalidf("%s must have at most %d bytes (got %d)", path, yamltext.MaxLen, len(text))
	}
	if err := yaml.UnmarshalWithOptions(text, &of, yaml.Strict()); err != nil {
		return nil, cli.Invalidf("%s: %w", path, err)
	}
	s := &leaves.Service{Listen: of.Listen, Stay: of.Stay, Rules: leaf.Rules{Attest: of.attest}}
	for _, c := range of.Cohorts {
		s.Rules.Cohorts = append(s.Rules.Cohorts, leaf.Cohort{Name: c.Name, Most: c.Most, Rate: c.Rate})
	}
	if err := errors.Join(of.check(), s.Rules.Validate()); err != nil {
		return nil, cli.Invalidf("%s: %w", path, err)
	}
	return s, nil
}

// check returns the faults that leaf.Rules does not know.
func (f file) check() error {
	var errs []error
	if f.Stay < 0 || f.Stay > 24*time.Hour {
		errs = append(errs, fmt.Errorf("stay must be 0s to 24h (got %s)", f.Stay))
	}
	if len(f.Attest) > 0 && f.Attest[0] == "" {
		errs = append(errs, errors.New("attest must begin with the path of a program"))
	}
	seen := map[string]string{}
	for _, c := range f.Cohorts {
		if (c.Invitation == "") == (len(f.Attest) == 0) {
			errs = append(errs, fmt.Errorf("cohort %q must have an invitation, or the file a command attest, and not both", c.Name))
		}
		if other, is := seen[c.Invitation]; is && c.Invitation != "" {
			errs = append(errs, fmt.Errorf("cohort %q must have an invitation of its own (it is that of %q)", c.Name, other))
		}
		seen[c.Invitation] = c.Name
	}
	return errors.Join(errs...)
}

// attest returns the cohort of a phone that shows that evidence.
func (f file) attest(ctx context.Context, t leaf.Token, evidence []byte) (string, error) {
	if len(f.Attest) > 0 {
		return f.ask(ctx, t, evidence)
	}
	shown, name := sha256.Sum256(evidence), ""
	for _, c := range f.Cohorts { // all of them: the time tells nothing of the one
		own := sha256.Sum256([]byte(c.Invitation))
		if subtle.ConstantTimeCompare(shown[:], own[:]) == 1 {
			name = c.Name
		}
	}
	if name == "" {
		return "", errors.New("no such invitation")
	}
	return name, nil
}

// What a command may take for one phone, how much of what it prints is read, and how many may run at once.
const (
	judgeTime  = 10 * time.Second
	mostAnswer = 1 << 10
	mostJudges = 8
)

// ask runs the command with the evidence as its input. What it prints on success is the cohort.
func (f file) ask(ctx context.Context, t leaf.Token, evidence []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	select {
	case f.judges <- struct{}{}:
	case <-ctx.Done():
		return "", errors.New("too many phones are being judged: try again")
	}
	defer func() { <-f.judges }()
	judge := exec.CommandContext(ctx, f.Attest[0], f.Attest[1:]...)
	judge.Stdin, judge.WaitDelay = bytes.NewReader(evidence), time.Second
	judge.Stderr = os.Stderr
	judge.Env = append(os.Environ(), fmt.Sprintf("HEDDLE_TOKEN=%x", t))
	answer, err := judge.Output()
	if err != nil {
		return "", errors.New("not attested") // why, the command says to the site alone
	}
	return strings.TrimSpace(string(answer[:min(len(answer), mostAnswer)])), nil
}
