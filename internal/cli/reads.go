package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// readAnnotation annotates flags that name what is read.
const readAnnotation = "read"

// Reads marks the flags among names that a command has: they name files or directories which it reads.
func Reads(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if one := f.Lookup(name); one != nil {
			if one.Annotations == nil {
				one.Annotations = map[string][]string{}
			}
			one.Annotations[readAnnotation] = nil
		}
	}
}

// Missing returns err, the error of c, unless files or directories that c reads are missing or cannot be read. Then it
// names the flag or argument and what it must be. It checks the flags that Reads marked, and the first argument if the
// usage calls it FILE, PATH or LOG.
func Missing(c *cobra.Command, args []string, err error) error {
	var wrong *fs.PathError
	if !errors.As(err, &wrong) {
		return err
	}
	var faults []error
	check := func(name, path string) {
		fault := CheckRead(name, path)
		if fault == nil && path == wrong.Path { // such as a directory instead of a file
			fault = unreadable(name, path, wrong.Err)
		}
		faults = append(faults, fault)
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if _, is := f.Annotations[readAnnotation]; !is {
			return
		}
		paths := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			paths = list.GetSlice()
		} else if f.Name == "shard" {
			paths = partPaths(paths[0])
		}
		for _, path := range paths {
			if _, file, named := strings.Cut(path, "="); named && exists(path) != nil { // TYPE=FILE
				path = file
			}
			check("--"+f.Name, path)
		}
	})
	if usage := strings.Fields(c.Use); len(args) > 0 && len(usage) > 1 && readable(usage[1]) != "" {
		check(usage[1], args[0])
	}
	return cmp.Or(errors.Join(faults...), err)
}

// CheckRead refuses a file or directory that is not there. Name is what names it: a flag, an argument or a key
// of a settings file.
func CheckRead(name, path string) error {
	if path == "" || path == "-" {
		return nil
	}
	if err := exists(path); err != nil {
		return unreadable(name, path, err)
	}
	return nil
}

func unreadable(name, path string, why error) error {
	return Invalidf("%s must be %s (got %q: %w)", name, readable(strings.TrimPrefix(name, "--")), path, why)
}

// exists returns why a file or directory cannot be read, without its name.
func exists(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() { // to open a pipe would end its other end
		var f *os.File
		if f, err = os.Open(path); err == nil {
			err = f.Close()
		}
	}
	var wrong *fs.PathError
	if errors.As(err, &wrong) {
		return wrong.Err
	}
	return err
}

// readable describes what the file or directory named by that flag or argument must be.
func readable(name string) string {
	switch name {
	case "data":
		return "a data set: a directory that heddle import wrote, or its .npz file"
	case "shards":
		return "a directory that heddle partition or heddle match wrote"
	case "shard":
		return "a part, such as parts/part-0"
	case "plan":
		return "a plan, as heddle plan writes it"
	case "config":
		return "a YAML file of settings"
	case "model", "like", "init":
		return "a model file, such as model.safetensors of a run"
	case "policy":
		return "a YAML file, the policy of this site"
	case "approval":
		return "an approval, as heddle approve writes it"
	case "roster", "FILE":
		return "a roster, such as federation.yaml"
	case "nodes":
		return "a table of nodes"
	case "edges":
		return "a table or list of edges"
	case "ogb":
		return "the folder of an Open Graph Benchmark data set"
	case "dgl":
		return "a partition by DGL: the file NAME.json, or its folder"
	case "leaves":
		return "a YAML file of rules for phones"
	case "secret", "http-token-file":
		return "a file with nothing but a secret"
	case "run":
		return "the directory of a finished run"
	case "LOG":
		return "an audit log"
	case "PATH":
		return "a data set, partition, part, run, model or checkpoint"
	}
	return ""
}
