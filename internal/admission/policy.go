package admission

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/yamltext"
)

// Policy is what a site allows, whatever a plan, a roster or a peer asks for. Only the site writes its file,
// policy.yaml. What a list does not name is not allowed.
type Policy struct {
	Federation string   `yaml:"federation"` // whose rosters and plans this site takes
	Methods    []string `yaml:"methods"`    // class-means, layer-wise, full-batch, mini-batch

	// What the methods other than class-means may send of a node. Encoders are raw, mlp, classes (columns of classes),
	// embedding (of any width), pca (any number of components) and pca:K (at most K).
	Encoders     []string `yaml:"encoders"`
	LayerOutputs []string `yaml:"layer_outputs"` // hidden, logits

	Rows        []string `yaml:"rows"`           // float32, bf16, int8, int4 (none = all of them)
	Categories  []string `yaml:"categories"`     // columns whose texts others may get (nil = any, empty = none)
	MinTexts    int      `yaml:"min_text_count"` // nodes here that must have a text before others get it (0 = 10)
	LeaveOneOut bool     `yaml:"leave_one_out"`  // rows of class means must not contain a node's own label

	MaxLayers  int     `yaml:"max_layers"`     // (0 = no bound)
	MaxHops    int     `yaml:"max_hops"`       // of a layer (0 = no bound)
	MaxPasses  int     `yaml:"max_pca_passes"` // over the features (0 = no bound)
	MaxEpsilon float64 `yaml:"max_epsilon"`    // differential privacy of edges (0 = no bound, and none is needed)
	MaxDelta   float64 `yaml:"max_delta"`      // its delta (0 = no bound)

	MaxNumbers float64 `yaml:"max_numbers"` // sent per value that a node's row stores (0 = no bound)

	// this site publishes its own metric if it has this many test nodes (0 = never)
	SiteFigures int `yaml:"site_figures"`
	// columns by whose values this site's test nodes may be counted, for figures over all sites (none = no column)
	FiguresBy []string `yaml:"figures_by"`

	// bytes a second from each other peer, at least 1024 (0 = no limit)
	ReceiveLimit int64 `yaml:"receive_limit"`

	MinMembers int   `yaml:"min_members"`        // least size of the group, this peer included; at least 2
	MinInSum   int   `yaml:"min_members_in_sum"` // fewest members in a sum that others see (0 = 3)
	MaxRounds  int   `yaml:"max_rounds"`         // of a layer (0 = no bound)
	MaxBytes   int64 `yaml:"max_bytes"`          // that this peer sends in one run (0 = no bound)
	// bytes a second that this peer sends (0 = no bound), otherwise at least 1024
	MaxRate   int64    `yaml:"max_rate"`
	Hours     []string `yaml:"hours"`     // spans such as 22:00-06:00, by this machine's clock (none = always)
	Approvers []string `yaml:"approvers"` // peer IDs whose signatures under an approval count (none = this peer's own)
	Approvals int      `yaml:"approvals"` // how many of them must sign (0 = one)
}

// classMeans is the method whose rows no encoder makes.
const classMeans = "class-means"

// maxPolicy is how long a policy file may be, in bytes.
const maxPolicy = 64 << 10

// In is the policy for that federation, if it names none itself, as in site.yaml.
func (p Policy) In(federation string) Policy {
	p.Federation = cmp.Or(p.Federation, federation)
	return p
}

// ReadPolicy reads a policy file, or may_leave of site.yaml, strictly: a field it does not know is an error, with its
// line.
func ReadPolicy(path string) (p Policy, err error) {
	text, err := disk.ReadStart(path, maxPolicy)
	if err != nil {
		return Policy{}, err
	}
	if p, err = parsePolicy(text); err != nil {
		return Policy{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// parsePolicy reads the content of a policy file.
func parsePolicy(text []byte) (p Policy, err error) {
	if len(text) > maxPolicy {
		return Policy{}, fmt.Errorf("a policy must have at most %d bytes (got %d)", maxPolicy, len(text))
	}
	section := false
	if err := unmarshal(text, &p, &section); err != nil {
		return Policy{}, err
	}
	if section {
		return p, p.In("any").Validate()
	}
	return p, p.Validate()
}

// leastTexts is the default of Policy.MinTexts.
const leastTexts = 10

// TextCount returns how many nodes of this site must have a text before other sites get it.
func (p Policy) TextCount() int { return cmp.Or(p.MinTexts, leastTexts) }

// CheckTold refuses to send other sites the texts of columns that the policy does not name.
func (p Policy) CheckTold(columns []string) error {
	var errs []error
	for _, name := range columns {
		if p.Categories != nil && !slices.Contains(p.Categories, name) {
			errs = append(errs, fmt.Errorf("policy.categories: the texts of column %.40q must not leave this site: "+
				"ignore the column, or make it numbers (allowed: %s)", name, strings.Join(p.Categories, ", ")))
		}
	}
	return errors.Join(errs...)
}

// unmarshal is YAML's, strict. The library panics on some texts that are no YAML (a tag before an
// anchor without a value, in v1.19.2); a fault of the file is an error here.
func unmarshal(text []byte, p *Policy, section *bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the text must be YAML (got %v)", r)
		}
	}()
	pairs, _ := yamltext.Pairs(text) // Unmarshal reports the fault
	for _, pair := range pairs {
		if pair.Key.String() == "may_leave" { // the text is site.yaml
			*section = true
			if err := yaml.NodeToValue(pair.Value, p, yaml.Strict()); err != nil {
				return yamltext.Readable(err)
			}
			return nil
		}
	}
	if err := yaml.UnmarshalWithOptions(text, p, yaml.Strict()); err != nil {
		return errors.New(yaml.FormatError(err, false, true))
	}
	return nil
}

// Validate reports all faults at once.
func (p Policy) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !named(p.Federation, lower+digits+"-") {
		fault("federation must be the name in the roster (got %q)", p.Federation)
	}
	onlyClassMeans := slices.Equal(p.Methods, []string{classMeans})
	for _, l := range []struct {
		field     string
		got, want []string
	}{
		{"methods", p.Methods, []string{classMeans, "layer-wise", "full-batch", "mini-batch"}},
		{"encoders", p.Encoders, []string{"raw", "mlp", "pca", "pca:K", "classes", "embedding"}},
		{"layer_outputs", p.LayerOutputs, []string{"hidden", "logits"}},
		{"rows", p.rows(), allRows},
	} {
		if len(l.got) == 0 && !(onlyClassMeans && (l.field == "encoders" || l.field == "layer_outputs")) {
			fault("%s must name some of %s (got none)", l.field, strings.Join(l.want, ", "))
		}
		for _, s := range l.got {
			if _, isPCA := components(s); !slices.Contains(l.want, s) && !(isPCA && l.field == "encoders") ||
				s == "pca:K" {
				fault("%s must be some of %s (got %q)", l.field, strings.Join(l.want, ", "), s)
			}
		}
	}
	if p.MinMembers < 2 {
		fault("min_members must be at least 2 (got %d): in a group of two, a sum shows each the other's part",
			p.MinMembers)
	}
	if p.MinInSum < 0 {
		fault("min_members_in_sum must be at least 1, or 0 for %d (got %d)", usualInSum, p.MinInSum)
	}
	if p.MinTexts != 0 && p.MinTexts < leastTexts {
		fault("min_text_count must be at least %d nodes, or 0 for %d (got %d)", leastTexts, leastTexts, p.MinTexts)
	}
	if p.SiteFigures != 0 && p.SiteFigures < leastFigures {
		fault("site_figures must be at least %d test nodes, or 0 for none (got %d)", leastFigures, p.SiteFigures)
	}
	rate := func(r int64) bool { return r == 0 || r >= 1024 }
	if p.MaxRounds < 0 || p.MaxBytes < 0 || !rate(p.MaxRate) || !rate(p.ReceiveLimit) {
		fault("max_rounds %d, max_bytes %d, max_rate %d, receive_limit %d: each must be 0 (no limit) or more, "+
			"a rate at least 1024", p.MaxRounds, p.MaxBytes, p.MaxRate, p.ReceiveLimit)
	}
	if p.MaxLayers < 0 || p.MaxHops < 0 || p.MaxPasses < 0 || !(p.MaxNumbers >= 0) || !(p.MaxEpsilon >= 0) ||
		!(p.MaxDelta >= 0) {
		fault("max_layers %d, max_hops %d, max_pca_passes %d, max_numbers %v, max_epsilon %v, max_delta %v: "+
			"each must be 0 (no limit) or more", p.MaxLayers, p.MaxHops, p.MaxPasses, p.MaxNumbers, p.MaxEpsilon,
			p.MaxDelta)
	}
	for _, h := range p.Hours {
		if _, err := parseSpan(h); err != nil {
			errs = append(errs, err)
		}
	}
	for i, id := range p.Approvers {
		if _, err := publicKey(id); err != nil {
			fault("approvers: %w", err)
		}
		if slices.Contains(p.Approvers[:i], id) {
			fault("approvers: %s is named twice", id)
		}
	}
	if p.Approvals < 0 || p.Approvals > max(1, len(p.Approvers)) {
		fault("approvals must be 0 to %d, the number of approvers (got %d)", max(1, len(p.Approvers)), p.Approvals)
	}
	return errors.Join(errs...)
}

var allRows = []string{"float32", "bf16", "int8", "int4"}

// rows is the list of the policy, or what it means if there is none.
func (p Policy) rows() []string {
	if p.Rows == nil {
		return allRows
	}
	return p.Rows
}

// components returns the K of "pca:K".
func components(encoder string) (k int, ok bool) {
	digits, ok := strings.CutPrefix(encoder, "pca:")
	if !ok {
		return 0, false
	}
	k, err := strconv.Atoi(digits)
	return k, err == nil && k > 0
}

// Plan is what a policy judges of a plan. Each field is judged by one rule, which a Refusal names.
type Plan struct {
	Method, Encoder, LayerOutput, Rows string

	Layers, Hops int
	Passes       int     // over the features to find components (0 = none)
	Rounds       int     // of a layer, at most
	Members      int     // how many take part
	InSum        int     // members whose parts are added up before anybody sees them (1 = sums in the clear)
	Labels       bool    // rows of class means may contain a node's own label
	Epsilon      float64 // differential privacy of edges (0 = none)
	Delta        float64
	FiguresBy    string  // column by whose values test nodes are measured, with :CUTS or without (empty = none)
	Numbers      float64 // sent per value that a node's row stores (0 = not known)
}

// leastFigures is the smallest number of nodes for figures that leave a site.
const leastFigures = 20

// usualInSum is the default of Policy.MinInSum: with two, each sees the other's part.
const usualInSum = 3

// Check refuses a plan that the policy does not allow, with a *Refusal for each rule, joined.
func (p Policy) Check(plan Plan) error {
	var errs []error
	fault := func(rule, format string, args ...any) { errs = append(errs, refuse("policy."+rule, format, args...)) }
	trained := plan.Method != classMeans // rows of class means are bounded by the other rules
	if trained && !p.allowsEncoder(plan.Encoder) {
		fault("encoders", "the plan's encoder %s is none of %s", plan.Encoder, list(p.Encoders))
	}
	for _, l := range []struct {
		rule, what, got string
		allowed         []string
	}{
		{"methods", "method", plan.Method, p.Methods},
		{"layer_outputs", "layer output", plan.LayerOutput, p.LayerOutputs},
		{"rows", "format of rows", plan.Rows, p.rows()},
	} {
		if !slices.Contains(l.allowed, l.got) && (trained || l.rule != "layer_outputs") {
			fault(l.rule, "the plan's %s %s is none of %s", l.what, l.got, list(l.allowed))
		}
	}
	for _, l := range []struct {
		rule, what string
		got, most  int
	}{
		{"max_rounds", "a layer must have at most %d rounds (got %d)", plan.Rounds, p.MaxRounds},
		{"max_layers", "there must be at most %d layers (got %d)", plan.Layers, p.MaxLayers},
		{"max_hops", "a layer must have at most %d hops (got %d)", plan.Hops, p.MaxHops},
		{"max_pca_passes", "there must be at most %d passes over the features (got %d)", plan.Passes, p.MaxPasses},
	} {
		if l.most > 0 && l.got > l.most {
			fault(l.rule, l.what, l.most, l.got)
		}
	}
	if plan.Members < p.MinMembers {
		fault("min_members", "at least %d members must take part (got %d)", p.MinMembers, plan.Members)
	}
	if least := cmp.Or(p.MinInSum, usualInSum); plan.InSum < least {
		text := fmt.Sprintf("the parts of at least %d members must be added up before anybody sees them (got %d)",
			least, plan.InSum)
		switch plan.InSum {
		case 1:
			text += ": sums are in the clear; set secure_sums"
		case 2:
			text += ": the other site sees your sums"
		}
		fault("min_members_in_sum", "%s", text)
	}
	if p.LeaveOneOut && plan.Labels {
		fault("leave_one_out", "leave_one_out must be true, so that a row does not tell the node's own label")
	}
	if p.MaxEpsilon > 0 && (plan.Epsilon == 0 || plan.Epsilon > p.MaxEpsilon) {
		fault("max_epsilon", "epsilon must be above 0 and at most %g (got %g)", p.MaxEpsilon, plan.Epsilon)
	}
	if p.MaxDelta > 0 && plan.Delta > p.MaxDelta {
		fault("max_delta", "delta must be at most %g (got %g)", p.MaxDelta, plan.Delta)
	}
	if by := plan.FiguresBy; by != "" && !slices.ContainsFunc(p.FiguresBy, func(column string) bool {
		return by == column || strings.HasPrefix(by, column+":")
	}) {
		fault("figures_by", "test nodes must not be counted by %s (allowed: %s)", by, cmp.Or(strings.Join(p.FiguresBy,
			", "), "no column"))
	}
	if p.MaxNumbers > 0 && plan.Numbers > p.MaxNumbers {
		fault("max_numbers", "at most %.3g numbers must be sent of a node for each value that its row stores "+
			"(got %.3g)", p.MaxNumbers, plan.Numbers)
	}
	return errors.Join(errs...)
}

func (p Policy) allowsEncoder(encoder string) bool {
	if first, second, both := strings.Cut(encoder, "+"); both {
		return p.allowsEncoder(first) && p.allowsEncoder(second)
	}
	if kind, _, _ := strings.Cut(encoder, ":"); kind == "embedding" {
		encoder = kind
	}
	k, isPCA := components(encoder)
	return slices.ContainsFunc(p.Encoders, func(allowed string) bool {
		most, bounded := components(allowed)
		return encoder == allowed || isPCA && (allowed == "pca" || bounded && k <= most)
	})
}

// span is a part of the day in minutes since midnight; one that ends before it begins goes over
// midnight.
type span struct{ from, to int }

func parseSpan(s string) (span, error) {
	a, b, ok := strings.Cut(s, "-")
	from, err1 := time.Parse("15:04", a)
	to, err2 := time.Parse("15:04", b)
	if !ok || err1 != nil || err2 != nil || from.Equal(to) {
		return span{}, fmt.Errorf("hours must be spans such as 22:00-06:00 (got %q)", s)
	}
	minutes := func(t time.Time) int { return 60*t.Hour() + t.Minute() }
	return span{minutes(from), minutes(to)}, nil
}

// Open refuses to train if now, in its own time zone, is outside the policy's hours.
func (p Policy) Open(now time.Time) error {
	if len(p.Hours) == 0 {
		return nil
	}
	at := 60*now.Hour() + now.Minute()
	for _, h := range p.Hours {
		s, err := parseSpan(h)
		if err != nil {
			return err
		}
		if s.from < s.to && s.from <= at && at < s.to || s.from > s.to && (at >= s.from || at < s.to) {
			return nil
		}
	}
	return refuse("policy.hours", "it is %s, and this site trains at %s only", now.Format("15:04"),
		strings.Join(p.Hours, ", "))
}
