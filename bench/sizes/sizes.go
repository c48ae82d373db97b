// Package sizes builds programs as a release does and measures their files.
package sizes

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/heddle-gnn/heddle/bench/page"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "sizes",
	Title: "Sizes of programs",
	Text: `Stripped programs of this system (CGO_ENABLED=0 go build -trimpath -ldflags="-s -w"), and package
mobile as mobile/bind/jvm.sh links it, which needs a C compiler and a JDK. MB are 10⁶ bytes.`,
}

var programs = []struct{ name, path string }{
	{"your program that predicts", "./bench/sizes/predicts"},
	{"your program that trains", "./bench/sizes/trains"},
	{"your program that joins", "./bench/sizes/joins"},
	{"peer", "./cmd/peer"},
	{"heddle", "./cmd/heddle"},
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	phone := f.Bool("phone", true, "also build the library for phones")
	return func(ctx context.Context, p *page.Page) error {
		dir, err := os.MkdirTemp("", "heddle-sizes-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		p.Table("program %s", "MB %.1f", "in xz, MB %.1f")
		for _, one := range programs {
			file := filepath.Join(dir, filepath.Base(one.path))
			if err := run(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, one.path); err != nil {
				return err
			}
			if err := row(ctx, p, one.name, file); err != nil {
				return err
			}
		}
		if !*phone {
			return nil
		}
		if err := run(ctx, "mobile/bind/jvm.sh", dir); err != nil {
			return err
		}
		return row(ctx, p, "library for phones", filepath.Join(dir, "libgojni.so"))
	}
}

func row(ctx context.Context, p *page.Page, name, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	packed, err := exec.CommandContext(ctx, "xz", "--stdout", file).Output()
	if err != nil {
		return fmt.Errorf("xz %s: %w", file, err)
	}
	p.Row(name, float64(info.Size())/1e6, float64(len(packed))/1e6)
	return nil
}

// run runs a command in the repository, with what it prints.
func run(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
	}
	return nil
}
