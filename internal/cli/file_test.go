package cli

import (
	"bytes"
	"io"
	"testing"
)

// TestStandardOutput: two paths mean standard output.
func TestStandardOutput(t *testing.T) {
	var stdout bytes.Buffer
	for _, path := range []string{Stdout, "/dev/stdout"} {
		if err := put(&stdout, path); err != nil || stdout.String() != "text" {
			t.Errorf("%s: standard output has %q, %v", path, &stdout, err)
		}
		stdout.Reset()
	}
}

func put(stdout io.Writer, path string) error {
	return WriteFile(stdout, path, func(w io.Writer) error { _, err := io.WriteString(w, "text"); return err })
}
