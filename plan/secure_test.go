package plan

import (
	"strings"
	"testing"
)

// TestSecureSums: sums are secure by default with 3 to 64 peers; what cannot be is refused by name, and the terms state
// who sees what.
func TestSecureSums(t *testing.T) {
	for _, test := range []struct {
		setting string
		peers   int
		secure  bool
		says    string // of the refusal (empty = there is none)
		trust   string
	}{
		{"auto", 2, false, "", "the other site sees your sums"},
		{"auto", 3, true, "", "unless all 2 other members"},
		{"auto", 50, true, "", "unless all 49 other members"},
		{"auto", 65, true, "must be off with 65 peers (got auto): secure sums take 3 to 64 sites", ""},
		{"auto", 64, true, "", "unless all 63 other members"},
		{"off", 651, false, "", "in the clear"},
		{"off", 3, false, "", "in the clear"},
		{"on", 2, true, "must be off with 2 peers (got on): secure sums take 3 to 64 sites", ""},
	} {
		p := Defaults("", "")
		p.Federation().SecureSums = test.setting
		var errs faults
		p.checkSums(test.peers, &errs)
		said := ""
		if len(errs) > 0 {
			said = errs[0].Error()
		}
		terms := p.SumTerms(test.peers)
		if p.Secure(test.peers) != test.secure || terms.Secure != test.secure {
			t.Errorf("%+v: secure %t", test, p.Secure(test.peers))
		}
		if (said != "") != (test.says != "") || !strings.Contains(said, test.says) {
			t.Errorf("%+v: refused with %q", test, said)
		}
		if test.says == "" && (!strings.Contains(terms.Trust, test.trust) || (terms.Form != "") != test.secure) {
			t.Errorf("%+v: terms %+v", test, terms)
		}
	}
	p := Defaults(FullBatch, "")
	if p.Secure(4) || p.SumTerms(4).Secure {
		t.Error("method full-batch has secure sums")
	}
	if _, err := Read(nil, map[string]string{"method": FullBatch, "secure_sums": "on"}, nil); err == nil {
		t.Error("method full-batch takes secure_sums: on")
	}
}
