package admission

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Invitation asks a site to take part. The inviting site signs it and sends it as a line of text. It has no secrets and
// admits nobody: the inviting site decides whom it adds.
type Invitation struct {
	Federation string   `json:"federation,omitempty"` // (empty = its members sign nothing)
	Site       string   `json:"site"`                 // name of the invited site
	By         string   `json:"by"`                   // name of the inviting site
	Relays     []string `json:"relays,omitempty"`     // multiaddresses
	Expires    Date     `json:"expires"`              // last day for an answer
}

// Answer is what an invited site sends back. Its ID is in its signature.
type Answer struct {
	Invitation Invitation `json:"invitation"`
	Signature  Signature  `json:"signature"`      // under the invitation
	Host       string     `json:"host,omitempty"` // HOST[:PORT] at which others reach it (empty = it only dials out)
}

func (Invitation) kind() string { return "invitation 1" }
func (Answer) kind() string     { return "answer 1" }

// Validate implements document.
func (i Invitation) Validate() error {
	if i.Federation != "" && !named(i.Federation, lower+digits+"-") {
		return fmt.Errorf("federation must be 1 to %d small letters, digits and dashes (got %q)", maxName, i.Federation)
	}
	return errors.Join(Member{Name: i.Site, Addresses: i.Relays}.CheckTexts(), Member{Name: i.By}.CheckTexts(),
		i.Expires.validate())
}

// Validate implements document.
func (a Answer) Validate() error { return a.Invitation.Validate() }

// LineEnd ends such a line, so that one that was cut is recognized.
const LineEnd = "-end"

// lineStart begins a line of a kind.
func lineStart(kind string) string {
	name, _, _ := strings.Cut(kind, " ")
	return "heddle-" + name + "-"
}

// Line returns the document as a line without a space, which a person pastes into a mail or a command.
func (s *Signed[T]) Line() string {
	return lineStart(s.Kind) + base64.RawURLEncoding.EncodeToString(plain(s, false)) + LineEnd
}

// ReadLine reads a line that one site has signed.
func ReadLine[T document](text string) (*Signed[T], error) {
	var s Signed[T]
	start := lineStart(s.Body.kind())
	body, ok := strings.CutPrefix(text, start)
	if !ok {
		return nil, fmt.Errorf("the line must begin with %s (got %.24q): its beginning is missing, or it is another "+
			"line", start, text)
	}
	if body, ok = strings.CutSuffix(body, LineEnd); !ok {
		return nil, fmt.Errorf("the line must end with %s (got …%.8q): it was cut", LineEnd, body[max(0, len(body)-8):])
	}
	file, err := base64.RawURLEncoding.DecodeString(body)
	if err == nil {
		err = json.Unmarshal(file, &s)
	}
	held := &s
	if err == nil {
		// The layout with indents, which signatures do not depend on, has one reader for all documents.
		held, err = parseDocument[T](plain(s, true))
	}
	if err == nil && len(held.Signatures) != 1 {
		err = fmt.Errorf("%d signatures", len(held.Signatures))
	}
	if err != nil {
		return nil, fmt.Errorf("the line was changed on its way: paste all of it again (%w)", err)
	}
	return held, nil
}

// Due refuses an invitation that has expired.
func (i Invitation) Due(now time.Time) error {
	if i.Expires.Past(now) {
		return fmt.Errorf("the invitation of %s by %s expired on %s: ask %s for another", i.Site, i.By, i.Expires, i.By)
	}
	return nil
}

// To checks that the answer is to an invitation that the site with this ID has made, and that has not expired.
func (a Answer) To(id string, now time.Time) error {
	if a.Signature.By != id {
		return fmt.Errorf("%s answers another site's invitation: one by %s (%s); this site is %s", a.Invitation.Site,
			a.Invitation.By, a.Signature.By, id)
	}
	return errors.Join(Unsigned(a.Invitation).check(a.Signature), a.Invitation.Due(now))
}
