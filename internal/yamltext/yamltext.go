// Package yamltext reads the settings of a YAML text, and reports what is wrong with it in plain words.
package yamltext

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxLen is how many bytes a text may have, and maxDepth how deep lists and settings may be nested.
const (
	MaxLen   = 64 << 10
	maxDepth = 16
)

// Pairs returns the keys and values of a text, which may be empty. The text may be a stranger's: it is refused if it is
// longer than MaxLen, if it has anchors or aliases (a few hundred bytes of them can become gigabytes), or characters
// that a terminal obeys, and if it is nested so deeply that the parser would spend seconds on it.
func Pairs(text []byte) (all []*ast.MappingValueNode, err error) {
	if len(text) > MaxLen {
		return nil, fmt.Errorf("the text must have at most %d bytes (got more)", MaxLen)
	}
	if err := printable(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(text))
	if err := plain(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, Readable(err)
	}
	for _, doc := range file.Docs {
		switch body := doc.Body.(type) {
		case nil, *ast.NullNode, *ast.CommentGroupNode:
		case *ast.MappingNode:
			all = append(all, body.Values...)
		case *ast.MappingValueNode:
			all = append(all, body)
		default:
			return nil, fmt.Errorf("the text must be YAML, one \"name: value\" a line (got %.40q)", text)
		}
	}
	return all, nil
}

// printable returns an error that names the first line with a character that is not printable.
func printable(text []byte) error {
	line := 1
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("line %d must be UTF-8 (got byte %#02x)", line, text[at])
		case r != '\t' && r != '\r' && r != '\ufeff' && !unicode.IsPrint(r):
			return fmt.Errorf("line %d must have printable characters only (got %+q)", line, r)
		}
		at += size
	}
	return nil
}

// plain returns an error if there are anchors, aliases, tags or explicit keys, or if lists and settings are nested too
// deeply.
func plain(tokens token.Tokens) error {
	depth, line, entries := 0, 0, 0 // entries: of nested lists that begin on the line
	for _, t := range tokens {
		at := t.Position
		if at.Line > line {
			line, entries = at.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType, token.MappingKeyType:
			return fmt.Errorf("[%d:%d] the text must not have anchors, aliases, tags or explicit keys (got %s)",
				at.Line, at.Column, t.Value)
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			entries++
		}
		if deep := depth + entries; deep > maxDepth {
			return fmt.Errorf("[%d:%d] lists must be nested at most %d deep (got %d)", at.Line, at.Column, maxDepth,
				deep)
		}
	}
	return nil
}

// Readable is a fault of the text with its position, in words of a plan instead of Go's.
func Readable(err error) error {
	said := yaml.FormatError(err, false, short(err))
	if typed, ok := errors.AsType[*yaml.TypeError](err); ok {
		_, excerpt, shown := strings.Cut(said, "\n")
		at := typed.Token.Position
		said = fmt.Sprintf("[%d:%d] a value must be %s (got %.40q)", at.Line, at.Column, wanted(typed.DstType),
			typed.Token.Value)
		if shown {
			said += "\n" + excerpt
		}
	}
	if len(said) > 2*maxExcerpt { // a message may quote the text
		said = strings.ToValidUTF8(said[:2*maxExcerpt], "") + " …"
	}
	return errors.New(said)
}

// An excerpt is the lines around a fault. The library's time to format it grows with the square of its tokens: 2 to 4 s
// for a line of 64 KiB. So excerpts of more than maxExcerpt bytes are left out.
const (
	aroundFault = 3
	maxExcerpt  = 4 << 10
)

// short reports whether the excerpt of an error is at most maxExcerpt bytes.
func short(err error) bool {
	fault, ok := errors.AsType[yaml.Error](err)
	if !ok || fault.GetToken() == nil {
		return true
	}
	at, bytes := fault.GetToken(), 0
	for t := at; t != nil && t.Position.Line >= at.Position.Line-aroundFault && bytes <= maxExcerpt; t = t.Prev {
		bytes += max(1, len(t.Origin))
	}
	last := at.Position.Line + strings.Count(at.Origin, "\n") + aroundFault
	for t := at.Next; t != nil && t.Position.Line <= last && bytes <= maxExcerpt; t = t.Next {
		bytes += max(1, len(t.Origin))
	}
	return bytes <= maxExcerpt
}

// TypeName is what a setting of type t takes, in one word of its reference: duration, integer, number, true or false,
// text; empty for any other type.
func TypeName(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return "duration"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	}
	return ""
}

// wanted describes what a setting of type t takes.
func wanted(t reflect.Type) string {
	name := TypeName(t)
	switch {
	case name == "duration":
		return "a duration, as 30s or 5m"
	case t.Kind() == reflect.Uint64:
		return "an integer of at least 0"
	case name == "integer":
		return "an integer"
	case name == "number", name == "text":
		return "a " + name
	case name == "":
		return "settings" // a struct
	}
	return name
}
