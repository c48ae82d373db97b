package runs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/align"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/internal/cli/report"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/plan"
)

// journal is how far a site is. It is kept in its state folder.
type journal struct {
	Run      int    `json:"run"`      // 1, 2, …: the present one
	Input    string `json:"input"`    // digest of the plan and the tables of the run
	Columns  string `json:"columns"`  // digest of the plan and the columns
	Training bool   `json:"training"` // the part is there
	Warm     bool   `json:"warm"`     // training starts from the model of run Last
	Done     bool   `json:"done"`
	Last     int    `json:"last"`        // run that was completed last (0 = none)
	Same     string `json:"last_column"` // Columns of that run
}

// taking is one heddle take-part.
type taking struct {
	journal
	file  *cli.SiteFile
	match *graphs.Matching
	plan  *heddle.Plan
	rank  int
	watch *cli.Watch
	cmd   *cobra.Command
	text  io.Writer
	live  *federation.Live // of all steps (nil = none)

	consent federation.Consent
	tables  *align.Tables // as they were read for the page (nil = they are read again)
}

func newTakePart() *cobra.Command {
	var yes bool
	var view cli.WatchFlags
	c := &cobra.Command{
		Use:   "take-part",
		Short: "Take part in a federation: match, train, predict",
		Long: `Take part in the federation of federation.yaml with the tables of site.yaml, both in this folder. It
checks the tables, shows a page of all that will be sent before it connects, asks, makes this site's part of the graph
with the others, trains, and writes model, report and predictions to results/run-1. Every site runs this command at the
same time.

Killed at any step, the same command goes on. With new tables, as next month, it is a new run: trained layers start from
the last model. It asks again only about what no page had. federation.yaml with signatures needs them (heddle roster
sign); the answer to the page approves the plan.`,
		Example: "  heddle init west\n  heddle take-part",
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := view.Start(c)
			if err != nil {
				return err
			}
			defer w.End()
			t := taking{watch: w, cmd: c, text: view.Text(c)}
			t.consent = federation.Consent{Yes: yes, Stdin: c.InOrStdin(), Stdout: t.text}
			return t.run(c.Context())
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "repeat the answer to the same page, for scripts")
	view.Bind(c.Flags())
	return c
}

// at is a file of the present run in the state folder.
func (t *taking) at(name string) string {
	return filepath.Join(t.file.State, fmt.Sprintf("run-%d", t.Run), name)
}

// out is the directory of a run's results.
func (t *taking) out(run int) string { return filepath.Join(t.file.Out, fmt.Sprintf("run-%d", run)) }

func (t *taking) journalPath() string { return filepath.Join(t.file.State, "journal.json") }

// keep writes the journal durably.
func (t *taking) keep() error {
	text, err := json.MarshalIndent(t.journal, "", "  ")
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(disk.OS{}, filepath.Dir(t.at("")), 0o700); err != nil {
		return err
	}
	return disk.WriteFile(disk.OS{}, t.journalPath(), 0o600, append(text, '\n'))
}

func (t *taking) run(ctx context.Context) (err error) {
	if err := t.open(); err != nil {
		return err
	}
	if err := t.agree(ctx); err != nil {
		return err
	}
	if t.live, err = (federation.HTTP{Address: t.file.HTTP}).Start(federation.About{Dataset: "take-part",
		Method: t.plan.Method, Sites: t.plan.Names(), Rank: t.rank, Audit: t.match.Site.Gate.Audit}, report.Pages{},
		t.watch.Log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.live.End(err)) }()
	t.match.Site.OnEvent = t.live.Over(t.match.Site.OnEvent)
	// Sites start and fail at other times. One that comes back finds the rest in another step, which again recognizes:
	// they meet anew and compare, rather than all being restarted by hand.
	until := time.Time{} // for how long to try again after the first failure of another site
	if t.Done {
		// Another site may have new tables, and may come later: its run needs this site.
		fmt.Fprintf(t.text, "nothing is new here: %s has the results; for %v it waits for sites that have something "+
			"new\n", t.out(t.Run), t.file.Wait)
	}
	for {
		err := t.step(ctx)
		switch {
		case err == nil:
			return nil
		case t.Done && errors.As(err, new(*comm.WaitError)):
			fmt.Fprintf(t.text, "nothing has changed here: %v\n", err)
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted; to go on, repeat the command: %w", err)
		case !t.again(err):
			return err
		case until.IsZero():
			until = time.Now().Add(t.file.Wait)
		case time.Now().After(until):
			return err
		}
		t.watch.Log.Warn(fmt.Sprintf("going back to the meeting: %v", err))
		// Also a site that has its part meets: another may have lost its own, and parts fit only if all were made
		// together.
		t.Training = false // the sites compare their steps
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// again reports whether another site was killed, or is at another step.
func (t *taking) again(err error) bool {
	var other *p2p.MemberMismatchError
	if errors.As(err, &other) {
		// A site that starts from a model and one that does not differ only in this line, as if one was killed between
		// two writes of the journal. Any other difference is another plan, which another try does not change.
		start := regexp.MustCompile(`(?m)^init:.*\n?`)
		return other.Part == "partition" || other.Part == "plan" &&
			start.ReplaceAllString(other.OurPlan, "") == start.ReplaceAllString(other.PeerPlan, "")
	}
	var lost *comm.PeerError
	// In training the session brings a failed site back itself, from checkpoints. Here only matching is repeated.
	return !t.Training && errors.As(err, &lost) && lost.Op != "meet" && !errors.Is(err, comm.ErrRefused)
}

// open reads both files and the journal.
func (t *taking) open() (err error) {
	if t.file, err = cli.ReadSite(); err != nil {
		return err
	}
	if t.match, err = graphs.SiteMatching(t.file); err != nil {
		return err
	}
	t.match.Plan = cli.FederationPath
	if t.plan, t.rank, err = t.match.Sit(t.watch); err != nil {
		return err
	}
	if err := t.file.Check(t.plan, t.rank); err != nil {
		return err
	}
	text, err := os.ReadFile(t.journalPath())
	if err == nil {
		err = json.Unmarshal(text, &t.journal)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cli.Invalidf("%s: %w", t.journalPath(), err)
	}
	site, err := t.file.Brings()
	if err != nil {
		return err
	}
	// columns is of what the page depends on and of the plan; input adds the tables. So next month's tables make a new
	// run that may start from the last model, and another plan or role of a column does not (compare).
	h := sha256.New()
	fmt.Fprintf(h, "%x %x\n", sha256.Sum256(t.match.Site.Gate.PlanText), sha256.Sum256(site))
	columns := fmt.Sprintf("%x", h.Sum(nil))
	for _, name := range t.file.Names() {
		if err := digest(h, name); err != nil {
			return cli.Invalid(err)
		}
	}
	input := fmt.Sprintf("%x", h.Sum(nil))
	if input != t.Input || t.Run == 0 { // a run with other tables or another plan
		t.begin(t.Run + 1)
		t.Input, t.Columns = input, columns
	}
	// A site that was killed between the removal of an old part and the journal, or whose part a person deleted, meets
	// the others again.
	if _, err := os.Stat(filepath.Join(t.at("part"), "manifest.json")); errors.Is(err, fs.ErrNotExist) {
		t.Training = false
	}
	return nil
}

// digest adds the content of a table to h.
func digest(h io.Writer, path string) error {
	files, err := table.Files(path)
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		n, err := io.Copy(h, f)
		fmt.Fprintf(h, "\n%d\n", n)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// begin begins a run.
func (t *taking) begin(run int) { t.Run, t.Training, t.Warm, t.Done = run, false, false, false }

// agree shows a person what will be sent, and asks.
func (t *taking) agree(ctx context.Context) (err error) {
	g, a := &t.match.Site.Gate, &t.consent
	// The policy is judged here as well as by the session: a person must see a refusal before any connection.
	if a.Rules, err = t.file.Require(g); err != nil {
		return err
	}
	if g.Roster != "" {
		if a.Roster, err = admission.ReadFile[admission.Roster](g.Roster); err != nil {
			return cli.Invalid(err)
		}
		if err := disclosure.Admitted(*t.plan, a.Roster.Body, time.Now()); err != nil {
			return cli.Invalidf("%s: %w", g.Roster, err)
		}
	}
	a.Plan, a.Rank, a.Identity, a.Gate, a.Dir = *t.plan, t.rank, t.match.Site.Identity, *g, t.file.State
	page, err := t.page(ctx)
	if err != nil {
		// The others may be waiting already, for as long as their site.yaml has.
		disclosure.Decline(ctx, *t.plan, cli.SessionOf(t.match.Site))
		return err
	}
	if err := disk.MkdirAll(disk.OS{}, t.file.State, 0o700); err != nil {
		return cli.Invalid(err)
	}
	if err := a.Ask(ctx, page); err != nil {
		return err
	}
	if a.Roster == nil {
		g.Policy = "" // the page and the part are judged here
	}
	return a.Sign()
}

// page reads this site's tables, and returns what they and training send.
func (t *taking) page(ctx context.Context) (page string, err error) {
	var b bytes.Buffer
	b.WriteString(t.consent.Head())
	t.match.Out = filepath.Join(t.file.State, "next") // not there yet: the sites agree on the run later
	if t.tables, err = t.match.Open(ctx, t.watch, &b, t.plan, t.rank); err != nil {
		return "", err
	}
	draft, err := t.tables.Draft()
	if err != nil {
		return "", cli.Invalid(err)
	}
	page, err = t.consent.Page(draft)
	if errors.As(err, new(*admission.Refusal)) {
		return "", err
	}
	if err != nil { // as without the types of another site
		page = "What training sends depends on the tables of other sites: it is shown and asked before training.\n"
	}
	_, warm := plan.Lookup(t.plan.Method, "init")
	if warm && t.Last > 0 {
		page += "  training starts from the last model if all sites have it; then columns, texts and " +
			"sums of them are not sent again\n"
	}
	return b.String() + page, nil
}

// step does what is left of the run.
func (t *taking) step(ctx context.Context) error {
	if !t.Training || t.Done {
		if complete, err := t.meet(ctx); err != nil || complete {
			return err
		}
	}
	part := federation.Part{Shard: filepath.Join(t.at("part"), fmt.Sprintf("part-%d", t.rank)),
		State: t.at("checkpoints"), Out: t.out(t.Run), Page: t.live}
	if t.Warm {
		part.Init = t.model(t.Last)
		if !t.match.Splits() {
			t.watch.Log.Warn("without a column of role split, nodes that trained the last model may test this one: " +
				"the figure may be too good")
		}
	}
	if err := t.consider(ctx, part.Shard); err != nil {
		return err
	}
	if err := part.Join(ctx, t.cmd, t.match.SiteFlags, t.watch, report.Pages{}); err != nil {
		return err
	}
	predictions := filepath.Join(part.Out, "predictions.csv")
	if _, err := os.Stat(predictions); err != nil && !t.plan.Task.Links() {
		own := question{model: t.model(t.Run), shard: part.Shard, out: predictions}
		if err := own.answer(t.cmd.OutOrStdout(), t.text); err != nil {
			return err
		}
	}
	t.Done, t.Last, t.Same = true, t.Run, t.Columns
	return t.keep()
}

// model is the file of a run's model.
func (t *taking) model(run int) string { return filepath.Join(t.out(run), "model.safetensors") }

// consider compares what training sends of the part with what a person has allowed: the other sites' columns and
// classes may make it more.
func (t *taking) consider(ctx context.Context, path string) (err error) {
	part, closer, err := cli.ReadParts(path, len(t.plan.Members))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	page, err := t.consent.Page(part)
	if err != nil {
		return err
	}
	return t.consent.Ask(ctx, page)
}

// standing is at which run and step a site is, as the others get it.
type standing struct {
	Run      int    // that it wants
	Done     bool   // that one is complete here
	Manifest string // digest of its partition (empty = there is no part)
	Model    string // of the run before, from which it could start (empty = it cannot)
}

// meet compares where the sites are, and makes the parts unless all have them. It reports whether nothing is left to
// do.
func (t *taking) meet(ctx context.Context) (complete bool, err error) {
	t.live.Step("Step 1 of 2, matching tables")
	site := cli.SessionOf(t.match.Site)
	err = disclosure.Meet(ctx, *t.plan, site, "take part", func(ctx context.Context, m *session.Session) error {
		all, err := t.compare(ctx, m.Group)
		if err != nil {
			return err
		}
		mine, latest, matched, warm := all[t.rank], 0, true, true
		for _, one := range all {
			latest = max(latest, one.Run)
		}
		// All sites have the same list, so each comes to the same answer without another message.
		complete = true
		for _, one := range all {
			complete = complete && one.Done && one.Run == latest
			matched = matched && one.Run == latest && one.Manifest != "" && one.Manifest == mine.Manifest
			warm = warm && one.Model != "" && one.Model == mine.Model
		}
		if complete || matched {
			return nil
		}
		// The highest number is the run of all: a site whose tables are unchanged takes part in the others' new run.
		t.begin(latest)
		t.Warm = warm
		// What an earlier try left: training must not go on from checkpoints of other parts.
		if err := os.RemoveAll(t.at("")); err != nil {
			return err
		}
		tables, build := t.tables, *t.match
		build.Out, t.tables = t.at("part"), nil // they are read once more for another try
		if warm {
			build.Like = t.model(t.Last)
		}
		// With a warm start the columns are the old model's, so the tables are read again by its encoding.
		if warm || tables == nil {
			if tables, err = build.Open(ctx, t.watch, io.Discard, t.plan, t.rank); err != nil {
				return err
			}
		}
		if err := t.keep(); err != nil {
			return err
		}
		return build.Build(ctx, t.plan, m, tables, t.watch, t.text)
	})
	if err != nil {
		return false, err
	}
	if complete {
		fmt.Fprintf(t.text, "nothing is new at any site: %s has the results\n", t.out(t.Run))
		return true, nil
	}
	t.Training, t.Done = true, false
	return false, t.keep()
}

// compare sends the others at which run and step this site is, and returns what all sent.
func (t *taking) compare(ctx context.Context, g *comm.Group) ([]standing, error) {
	mine := standing{Run: t.Run, Done: t.Done}
	if text, err := os.ReadFile(filepath.Join(t.at("part"), "manifest.json")); err == nil {
		mine.Manifest = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	if _, warm := plan.Lookup(t.plan.Method, "init"); warm && t.Last > 0 && t.Same == t.Columns {
		if model, err := cli.ReadInitial(t.model(t.Last)); err == nil { // without it training starts anew
			if mine.Model, err = model.Fingerprint(); err != nil {
				return nil, err
			}
		}
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, g.Size())
	for q := range out {
		out[q] = text
	}
	in, err := g.SendRecv(ctx, comm.Control, "where the sites are", out, 1<<10)
	if err != nil {
		return nil, err
	}
	all := make([]standing, len(in))
	for q, text := range in {
		if q == g.Rank() {
			all[q] = mine
		} else if err := json.Unmarshal(text, &all[q]); err != nil {
			return nil, fmt.Errorf("where %s is: %w", t.plan.Members[q].Name, err)
		}
	}
	return all, nil
}
