package cli

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// Stdout is the path of standard output.
const Stdout = "-"

// IsStdout reports whether path means standard output.
func IsStdout(path string) bool { return path == Stdout || path == "/dev/stdout" }

// Text returns where a command writes its messages when its data go to paths: stderr if one of them is standard output,
// else stdout.
func Text(stdout, stderr io.Writer, paths ...string) io.Writer {
	if slices.ContainsFunc(paths, IsStdout) {
		return stderr
	}
	return stdout
}

// WriteFile replaces path by what fill writes, or leaves it as it was. Only the owner may read a new file, since what
// a run writes is about a site's own nodes. If path is a link, its target is replaced. Devices and pipes are written to
// directly. Standard output (IsStdout) is stdout.
func WriteFile(stdout io.Writer, path string, fill func(io.Writer) error) error {
	if IsStdout(path) {
		return fill(stdout)
	}
	if Special(path) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(f), f.Close())
	}
	return disk.WriteStream(disk.OS{}, path, fill)
}

// WriteText is WriteFile of a text.
func WriteText(stdout io.Writer, path, text string) error {
	return WriteFile(stdout, path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

// WriteJSON is WriteFile of a value as indented JSON.
func WriteJSON(stdout io.Writer, path string, value any) error {
	return WriteFile(stdout, path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(value)
	})
}

// Special reports whether path exists and is neither a file nor a directory.
func Special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// Writable checks before a run that WriteFile can write to path at its end, and makes missing directories. An empty
// path is always writable: no file is written.
func Writable(path string) error {
	if path == "" || IsStdout(path) {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Invalidf("cannot write %s: it is a directory", path)
	} else if errors.Is(err, fs.ErrPermission) {
		return Invalidf("cannot write: %w", err)
	}
	if Special(path) {
		return nil
	}
	file, err := disk.Linked(path)
	if err != nil {
		return Invalid(err)
	}
	return WritableDir(filepath.Dir(file))
}

// KeepsWithin checks that none of the named files in dir is a link that leads out of it: its maker would choose
// which file a run replaces. It removes their temporaries, which a killed run left, except what another
// run still writes.
func KeepsWithin(dir string, names ...string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	whole, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		switch {
		case slices.ContainsFunc(names, func(name string) bool { return disk.Temporary(f.Name(), name) }):
			errs = append(errs, disk.RemoveTemporary(path))
		case f.Type()&fs.ModeSymlink != 0 && slices.Contains(names, f.Name()):
			to, err := filepath.EvalSymlinks(path)
			if inside, fault := filepath.Rel(whole, to); err != nil || fault != nil || !filepath.IsLocal(inside) {
				to, _ = os.Readlink(path)
				errs = append(errs, Invalidf("%s must not be a link out of its directory (got one to %s)", path, to))
			}
		}
	}
	return errors.Join(errs...)
}

// WritableDir checks that files can be made in dir, which it makes if necessary.
func WritableDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Invalidf("cannot write to %s: it must be a directory (got a file)", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Invalidf("cannot write: %w", err)
	}
	f, err := os.CreateTemp(dir, ".heddle-*")
	if err != nil {
		return Invalidf("cannot write to %s: %w", dir, err)
	}
	f.Close()
	return os.Remove(f.Name())
}

// FileName turns a data set's name into a part of a path.
func FileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t/\\:*?\"<>|", r) {
			return '-'
		}
		return r
	}, filepath.Base(name))
	return strings.TrimLeft(name, ".")
}
