package admission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/heddle-gnn/heddle/internal/yamltext"
)

// fileRoster is a roster as federation.yaml has it, which is also a plan. The plan's members train; the others do not.
type fileRoster struct {
	Members    []fileMember `json:"members"`
	Federation string       `json:"federation"`
	Serial     uint64       `json:"serial"`
	Previous   string       `json:"previous,omitempty"`
	Quorum     int          `json:"quorum"`
	Others     []Member     `json:"others,omitempty"`
	Revoked    []Revoked    `json:"revoked,omitempty"`
	Signatures []Signature  `json:"signatures,omitempty"` // last: a site approves what is before them
}

// fileMember is a member of the plan.
type fileMember struct {
	Member
	LeafAddresses []string `json:"leaf_addresses,omitempty"` // in no roster
}

// FederationKeys are the keys of federation.yaml that are not the plan's.
type FederationKeys struct {
	Federation, Serial, Previous, Quorum, Others, Revoked, Signatures any
}

// PlanText returns what a site approves of a plan file: all of it except the signatures at its end. The bytes count,
// not what they mean: a comment that is changed takes new approvals. In YAML a line that begins with this key at its
// first column cannot be within a text, which is indented.
func PlanText(file []byte) []byte {
	if at := bytes.Index(file, []byte("\nsignatures:")); at >= 0 {
		return file[:at+1]
	}
	return file
}

// isYAML reports whether a file is federation.yaml and not JSON.
func isYAML(file []byte) bool {
	file = bytes.TrimSpace(file)
	return len(file) > 0 && file[0] != '{' && file[0] != '['
}

// readFileRoster reads what federation.yaml has of a roster.
func readFileRoster(file []byte) (r fileRoster, err error) {
	if _, err := yamltext.Pairs(file); err != nil {
		return r, err
	}
	text, err := yaml.YAMLToJSON(file)
	if err != nil {
		return r, yamltext.Readable(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("roster: %w", err)
	}
	return r, nil
}

// Federation returns the name of the federation whose roster a plan file has (empty = it has none).
func Federation(file []byte) string {
	r, _ := readFileRoster(file) // the reader of the plan reports the fault
	return r.Federation
}

// rosterOf returns the roster of federation.yaml as JSON.
func rosterOf(file []byte) ([]byte, error) {
	r, err := readFileRoster(file)
	if err != nil {
		return nil, fmt.Errorf("the file must be a roster, or a plan that has one: %w", err)
	}
	if r.Federation == "" {
		return nil, errors.New("it has no roster: heddle plan for a federation writes a plan that has one")
	}
	body := Roster{r.Federation, r.Serial, r.Previous, r.Quorum, nil, r.Revoked}
	for _, m := range r.Members {
		m.Role = cmp.Or(m.Role, Trainer)
		body.Members = append(body.Members, m.Member)
	}
	body.Members = append(body.Members, r.Others...)
	s := Unsigned(body)
	s.Signatures = append(s.Signatures, r.Signatures...)
	return s.Encode()
}

// withRoster returns the plan file at path with the roster s. What a site approves keeps its bytes if only signatures
// differ.
func withRoster(path string, file []byte, s *Signed[Roster]) (text []byte, err error) {
	text = PlanText(file)
	// Another signature must not change what was signed. Only another roster writes the text anew, which loses comments
	// and takes new approvals in any case.
	if held, err := parseDocument[Roster](file); err != nil || held.Body.Fingerprint() != s.Body.Fingerprint() {
		if text, err = replaceRoster(text, s.Body); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(s.Signatures) == 0 {
		return text, nil
	}
	end, err := yaml.JSONToYAML(plain(map[string]any{"signatures": s.Signatures}, false))
	return append(slices.Clip(text), end...), err
}

// replaceRoster returns the text of a plan with another roster.
func replaceRoster(text []byte, r Roster) ([]byte, error) {
	was, err := readFileRoster(text)
	if err != nil {
		return nil, err
	}
	var items, kept yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &items, yaml.UseOrderedMap()); err != nil {
		return nil, yamltext.Readable(err)
	}
	own := []string{"members", "federation", "serial", "previous", "quorum", "others", "revoked", "signatures"}
	for _, one := range items {
		if !slices.Contains(own, fmt.Sprint(one.Key)) {
			kept = append(kept, one)
		}
	}
	now := fileRoster{Federation: r.Federation, Serial: r.Serial, Previous: r.Previous, Quorum: r.Quorum,
		Revoked: r.Revoked}
	for _, m := range r.Members {
		if m.Role != Trainer && m.Role != Coordinator {
			now.Others = append(now.Others, m)
			continue
		}
		one := fileMember{Member: m}
		// A roster has no addresses for phones, so they come from the file that is replaced, by ID: names may change.
		if at := slices.IndexFunc(was.Members, func(o fileMember) bool { return o.ID == m.ID }); at >= 0 {
			one.LeafAddresses = was.Members[at].LeafAddresses
		}
		now.Members = append(now.Members, one)
	}
	head, err := yaml.Marshal(kept)
	if err != nil {
		return nil, err
	}
	tail, err := yaml.JSONToYAML(plain(now, false))
	return append(head, tail...), err
}
