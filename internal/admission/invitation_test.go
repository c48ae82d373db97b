package admission

import (
	"fmt"
	"strings"
	"testing"
)

// invitationOf is an invitation of west by north, which can be answered on the day of the tests.
func invitationOf() Invitation {
	return Invitation{Federation: "tumour-registry", Site: "west", By: "north", Expires: Day(now),
		Relays: []string{"/ip4/203.0.113.7/udp/4001/quic-v1/p2p/" + stranger.id}}
}

// TestInvitation: an invitation and its answer are read as they were signed, on their last day and for the site that
// invited; a line fits into what a terminal takes.
func TestInvitation(t *testing.T) {
	sent := signed(t, invitationOf(), north)
	got, err := ReadLine[Invitation](sent.Line())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(sent) {
		t.Fatalf("%v, %v must be %v", err, got, sent)
	}
	line := signed(t, Answer{got.Body, got.Signatures[0], "west.example:4001"}, west).Line()
	if len(line) >= 1024 { // MAX_CANON of macOS
		t.Errorf("the answer has %d characters, must have fewer than 1024", len(line))
	}
	answer, err := ReadLine[Answer](line)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.To(north.id, now); err != nil {
		t.Error(err)
	}
	forged := answer.Body
	forged.Invitation.Site = "east"
	for want, err := range map[string]error{
		"expired on 2026-11-21":               answer.Body.To(north.id, now.AddDate(0, 0, 1)),
		"another site's invitation":           answer.Body.To(south.id, now),
		"is not of this content":              forged.To(north.id, now),
		"expired on 2026-11-21: ask north":    got.Body.Due(now.AddDate(0, 0, 1)),
		"must end with -end":                  lineFault(line[:len(line)-1]),
		"must begin with heddle-answer-":      lineFault(line[1:]),
		"was changed":                         lineFault(line[:300] + "A" + line[301:]),
		"must begin with heddle-answer- (got": lineFault(sent.Line()),
		"2 signatures":                        lineFault(signed(t, answer.Body, west, south).Line()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v must have %q", err, want)
		}
	}
}

func lineFault(line string) error {
	_, err := ReadLine[Answer](line)
	return err
}
