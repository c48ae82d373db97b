// Command wheel builds the Python wheels of heddle-gnn: for each system the package in python/ with the static program
// inside. The same source gives the same bytes.
//
//	go run ./packaging/wheel -out wheels
//	go run ./packaging/wheel -out wheels -targets linux/amd64
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

const module = "github.com/heddle-gnn/heddle"

// platforms are the tags of the systems that a wheel is for
// (packaging.python.org/specifications/platform-compatibility-tags). The programs are static, so that one serves glibc
// and musl. Go 1.26 needs macOS 12.
var platforms = map[string]string{
	"linux/amd64":   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64":  "macosx_12_0_x86_64",
	"darwin/arm64":  "macosx_12_0_arm64",
	"windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

func main() {
	out := flag.String("out", "wheels", "directory to write to")
	version := flag.String("version", "0.1.0.dev0", "version of the package (PEP 440)")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
		"systems")
	programs := flag.String("programs", "", "directory of built programs, as linux-amd64; empty: they are built")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for target := range strings.SplitSeq(*targets, ",") {
		path, err := build(ctx, *out, *version, target, *programs)
		if err != nil {
			fmt.Fprintf(os.Stderr, "wheel: %v\n", err)
			os.Exit(1)
		}
		fmt.Println(path)
	}
}

// build writes the wheel for a target and returns its path. programs is as the flag.
func build(ctx context.Context, out, version, target, programs string) (path string, err error) {
	platform, ok := platforms[target]
	if !ok {
		return "", fmt.Errorf("target must be one of linux, darwin and windows with /amd64 or /arm64 (got %q)", target)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	if programs == "" {
		if programs, err = os.MkdirTemp("", "heddle-wheel-"); err != nil {
			return "", err
		}
		defer os.RemoveAll(programs)
		if err := compile(ctx, programs, target); err != nil {
			return "", err
		}
	}
	binary, err := os.ReadFile(filepath.Join(programs, strings.ReplaceAll(target, "/", "-")))
	if err != nil {
		return "", err
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	files, err := contents(strings.TrimSpace(string(root)), binary, version, platform,
		strings.HasPrefix(target, "windows"))
	if err != nil {
		return "", err
	}
	path = filepath.Join(out, fmt.Sprintf("heddle_gnn-%s-py3-none-%s.whl", version, platform))
	return path, write(path, files)
}

// compile builds heddle, which is static.
func compile(ctx context.Context, dir, target string) error {
	system, processor, _ := strings.Cut(target, "/")
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
		filepath.Join(dir, system+"-"+processor), module+"/cmd/heddle")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", target, err)
	}
	return nil
}
