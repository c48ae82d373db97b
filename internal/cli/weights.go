package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/internal/yamltext"
)

// readClassWeights reads lines CLASS,WEIGHT of the file at path, quoted as in CSV, and returns them as a flag has them:
// CLASS=WEIGHT with commas between. A first line that ends in weight is a header.
func readClassWeights(path string) (string, error) {
	text, err := disk.ReadStart(path, yamltext.MaxLen)
	if err != nil {
		return "", fmt.Errorf("class_weights must be CLASS=WEIGHT or a file: %w", err)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord, r.Comment, r.TrimLeadingSpace = 2, '#', true
	var all []string
	for first := true; ; first = false {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := r.FieldPos(0)
			return "", fmt.Errorf("%s, line %d must be CLASS,WEIGHT (got %q)", path, line, strings.Join(fields, ","))
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if first && strings.EqualFold(fields[1], "weight") {
			continue
		}
		if strings.Contains(fields[0], ",") {
			line, _ := r.FieldPos(0)
			return "", fmt.Errorf("%s, line %d: a class whose name has a comma must be given in a settings file "+
				"(got %q)", path,
				line, fields[0])
		}
		all = append(all, fields[0]+"="+fields[1])
	}
	if len(all) == 0 {
		return "", fmt.Errorf("%s must have lines CLASS,WEIGHT (got none)", path)
	}
	return strings.Join(all, ","), nil
}
