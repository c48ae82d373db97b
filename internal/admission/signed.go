package admission

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Signed is a document with the signatures under it: the content of a file.
//
// What is signed is "heddle " + kind + "\n" and the body as JSON without white space, its fields in the order of the Go
// type. The file is indented JSON and has one form only: what parses encodes to the same bytes. So after any change in
// a file it does not parse, or a signature fails.
type Signed[T document] struct {
	Kind       string      `json:"heddle"` // "roster 1", "approval 1": what the body is, and the version of its layout
	Body       T           `json:"body"`
	Signatures []Signature `json:"signatures"` // in order of By, one for each signer
}

// Signature is one peer's signature under a document.
type Signature struct {
	By        string `json:"by"`        // peer ID, which includes the key
	Signature []byte `json:"signature"` // Ed25519 (RFC 8032)
}

// document is what can be signed.
type document interface {
	Roster | Approval | Invitation | Answer
	kind() string
	Validate() error
}

const (
	maxFile       = 1 << 20 // bytes of a signed file
	maxSignatures = 256
)

// message is what a signature is made of.
func message[T document](body T) []byte {
	return append([]byte("heddle "+body.kind()+"\n"), plain(body, false)...)
}

// fingerprint is the SHA-256 of what is signed, in hexadecimal.
func fingerprint[T document](body T) string {
	h := sha256.Sum256(message(body))
	return hex.EncodeToString(h[:])
}

// plain encodes v as JSON without escapes for HTML.
func plain(v any, indent bool) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		panic("admission: " + err.Error()) // plain numbers and strings always encode
	}
	if !indent {
		b.Truncate(b.Len() - 1)
	}
	return b.Bytes()
}

// Unsigned returns body as a document that nobody has signed.
func Unsigned[T document](body T) *Signed[T] {
	return &Signed[T]{Kind: body.kind(), Body: body, Signatures: []Signature{}}
}

// Sign adds the signature of the peer id, which sign makes with its key. A signature of the same
// peer is replaced.
func (s *Signed[T]) Sign(id string, sign func(message []byte) ([]byte, error)) error {
	if err := s.Body.Validate(); err != nil {
		return err
	}
	b, err := sign(message(s.Body))
	if err != nil {
		return fmt.Errorf("%s: sign: %w", s.Kind, err)
	}
	made := Signature{By: id, Signature: b}
	if err := s.check(made); err != nil {
		return err
	}
	at, found := slices.BinarySearchFunc(s.Signatures, id,
		func(g Signature, id string) int { return strings.Compare(g.By, id) })
	if found {
		s.Signatures[at] = made
		return nil
	}
	if len(s.Signatures) == maxSignatures {
		return fmt.Errorf("%s: %d signatures, and at most that many are allowed", s.Kind, maxSignatures)
	}
	s.Signatures = slices.Insert(s.Signatures, at, made)
	return nil
}

func (s *Signed[T]) check(g Signature) error {
	key, err := publicKey(g.By)
	if err != nil {
		return fmt.Errorf("%s: signature: %w", s.Kind, err)
	}
	if !ed25519.Verify(key, message(s.Body), g.Signature) {
		return fmt.Errorf("%s: the signature of %s is not of this content: one of the two was changed", s.Kind, g.By)
	}
	return nil
}

// Signers lists the peer IDs under the document.
func (s *Signed[T]) Signers() []string {
	ids := make([]string, len(s.Signatures))
	for i, g := range s.Signatures {
		ids[i] = g.By
	}
	return ids
}

// Encode returns the file. It fails if the document is not valid.
func (s *Signed[T]) Encode() ([]byte, error) {
	if err := s.Body.Validate(); err != nil {
		return nil, err
	}
	b := plain(s, true)
	if len(b) > maxFile {
		return nil, fmt.Errorf("%s must have at most %d bytes (got %d)", s.Kind, maxFile, len(b))
	}
	return b, nil
}

// parseDocument reads a file. It takes exactly what Encode writes, and only if every signature is right. It does not
// check whether the signers may sign.
func parseDocument[T document](file []byte) (*Signed[T], error) {
	var s Signed[T]
	want := s.Body.kind()
	name, _, _ := strings.Cut(want, " ")
	if len(file) > maxFile {
		return nil, fmt.Errorf("%s: more than %d bytes", want, maxFile)
	}
	if _, ok := any(s.Body).(Roster); ok && isYAML(file) {
		var err error
		if file, err = rosterOf(file); err != nil {
			return nil, err
		}
	}
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		if kind := (struct {
			Kind string `json:"heddle"`
		}{}); json.Unmarshal(file, &kind) == nil && kind.Kind != want {
			return nil, fmt.Errorf("the file must be a %s (got %q)", name, kind.Kind)
		}
		return nil, fmt.Errorf("the file must be a %s, as heddle writes it (got another: %w)", name, err)
	}
	if s.Kind != want {
		return nil, fmt.Errorf("the file must be a %s (got %q)", name, s.Kind)
	}
	if s.Signatures == nil || len(s.Signatures) > maxSignatures {
		return nil, fmt.Errorf("%s must have a list of at most %d signatures (got %d)", want, maxSignatures,
			len(s.Signatures))
	}
	again, err := s.Encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(file, again) {
		return nil, fmt.Errorf("%s: line %d is not as this program writes it: the file was changed by "+
			"hand or on its way", want, differs(file, again))
	}
	for i, g := range s.Signatures {
		if i > 0 && s.Signatures[i-1].By >= g.By {
			return nil, fmt.Errorf("%s: signatures are not in order, each signer once", want)
		}
		if err := s.check(g); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// differs returns the first line, from 1, in which a and b differ.
func differs(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return 1 + bytes.Count(a[:n], []byte("\n"))
}
