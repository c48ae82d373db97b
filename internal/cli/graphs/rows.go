package graphs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/cli"
)

// SkippedFile is the file of the rows that were skipped, next to the output for the others.
const SkippedFile = "skipped.csv"

// BindCells adds the flags for how tables write their cells.
func BindCells(f *pflag.FlagSet, c *table.Format) {
	f.StringVar(&c.Delimiter, "delimiter", "", "character between cells, or tab (default: detected)")
	f.StringVar(&c.Charset, "encoding", "auto", "text encoding (auto, utf-8, latin1, windows-1252, utf-16)")
	f.BoolVar(&c.DecimalComma, "decimal-comma", false, "numbers are written as 1.234,5")
	f.BoolVar(&c.NoHeader, "no-header", false, "the first line is a row, and columns are numbered from 1")
	f.StringArrayVar(&c.Missing, "missing", nil, "further text for a missing value, as unknown")
}

// BindDates adds the flag of columns of dates.
func BindDates(f *pflag.FlagSet, dates *[]string) {
	f.StringSliceVar(dates, "date", nil, "columns of dates, or COLUMN:mdy for 12/31/2024")
}

// BindRows adds the flag for rows at fault.
func BindRows(f *pflag.FlagSet, c *table.Format) {
	c.Faults = &table.Faults{}
	f.Func("on-error", "what faulty rows do (stop, skip = into "+SkippedFile+")", func(text string) error {
		if text != "stop" && text != "skip" {
			return fmt.Errorf("must be stop or skip (got %q)", text)
		}
		c.Faults.Skip = text == "skip"
		return nil
	})
}

// bindRows is BindRows with one spelling more of another flag.
func bindRows(f *pflag.FlagSet, c *dataset.ImportConfig) {
	BindRows(f, &c.Format)
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "onehot" {
			name = "categorical"
		}
		return pflag.NormalizedName(name)
	})
}

// WriteSkipped writes the rows that were skipped, if any, into dir.
func WriteSkipped(dir string, faults *table.Faults) error {
	if faults.Count("") == 0 {
		return nil
	}
	if err := cli.KeepsWithin(dir, SkippedFile); err != nil {
		return err
	}
	return cli.Invalid(cli.WriteFile(nil, filepath.Join(dir, SkippedFile), faults.Write))
}

// readProgress returns what shows how much of the files was read, and stops when ctx ends. Files are
// read two or more times, and compressed ones are longer than they look.
func readProgress(ctx context.Context, w *cli.Watch, files ...string) func(bytes int64) error {
	size := int64(0)
	for _, name := range files {
		parts, _ := table.Files(name) // the function that opens it reports what is wrong with it
		for _, part := range parts {
			if info, err := os.Stat(part); err == nil {
				size += info.Size()
			}
		}
	}
	done := int64(0)
	return func(bytes int64) error {
		done += bytes
		if total := int(max(3*size, done) >> 20); w.Due(total) {
			w.Show(int(done>>20), []string{"reading", cli.Bytes(done)}, "reading", "read", cli.Bytes(done), "files",
				cli.Bytes(size))
		}
		return ctx.Err()
	}
}
