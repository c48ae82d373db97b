// Package yamltext reads the settings of a YAML text, and says what is wrong with it in plain words.
package yamltext

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Pairs returns the keys and values of a text, which may be empty.
func Pairs(text []byte) (all []*ast.MappingValueNode, err error) {
	file, err := parser.ParseBytes(text, 0)
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
			return nil, fmt.Errorf("the text must be settings, a line each (got %s)", body.Type())
		}
	}
	return all, nil
}

// Readable is a fault of the text with its position, in words of a plan instead of Go's.
func Readable(err error) error {
	said := yaml.FormatError(err, false, true)
	if typed, ok := errors.AsType[*yaml.TypeError](err); ok {
		_, excerpt, _ := strings.Cut(said, "\n")
		at := typed.Token.Position
		said = fmt.Sprintf("[%d:%d] a value must be %s (got %.40q)\n%s", at.Line, at.Column, wanted(typed.DstType),
			typed.Token.Value, excerpt)
	}
	return errors.New(said)
}

// wanted says what a setting of type t takes.
func wanted(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return "a duration, as 30s or 5m"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Uint64:
		return "an integer of at least 0"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return "settings" // a struct
}
