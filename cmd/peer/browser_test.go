package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/cmd/peer/browsertest"
)

// TestReportInABrowser looks at the report of a run over three sites. With HEDDLE_WRITE=1 it makes the pictures of docs/screenshots.
func TestReportInABrowser(t *testing.T) {
	t.Parallel()
	b := browsertest.Start(t)
	out := t.TempDir()
	must(t, "train", "--data", sites(t), "--policy", "by-column", "--budget", "3", "-q", "-o", out)
	page := "file://" + filepath.Join(out, "report.html")
	b.Check(t, page, "true")
	if os.Getenv("HEDDLE_WRITE") != "" {
		b.Screenshots(t, page, "true", filepath.Join("..", "..", "docs", "screenshots", "report"), 1500)
	}
}
