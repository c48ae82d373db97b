// Command image builds the container image of peer for Linux on amd64 and arm64, without a daemon and
// without a base image, as a directory in the OCI layout that crane, skopeo and podman push or load.
//
//	go run -C internal/tools ./image -out "$PWD/image"
package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is who the program runs as: not root, and the one that examples/k8s names.
const user = 65532

// program is its path in the image, and home the only directory that is the user's, for a volume.
const (
	program = "usr/local/bin/peer"
	home    = "data"
	docs    = "usr/share/doc/heddle/" // of licenses
)

func main() {
	out := flag.String("out", "image", "directory to write, new or empty")
	version := flag.String("version", "latest", "tag of the image")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := build(ctx, *out, *version, "amd64", "arm64"); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

// build writes an image for each processor to the directory out.
func build(ctx context.Context, out, version string, processors ...string) error {
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s must be new or empty (got %d files)", out, len(entries))
	}
	temporary, err := os.MkdirTemp("", "heddle-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/heddle-gnn/heddle").Output()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	source := strings.TrimSpace(string(root))
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, processor := range processors {
		binary := filepath.Join(temporary, processor)
		if err := compile(ctx, source, binary, processor); err != nil {
			return err
		}
		image, err := imageOf(binary, version, processor, filepath.Join(source, "LICENSE"), binary+".NOTICES")
		if err != nil {
			return fmt.Errorf("%s: %w", processor, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: processor},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": version},
		}})
	}
	_, err = layout.Write(out, index)
	return err
}

// compile builds peer, which is static, and writes the notices of its modules.
func compile(ctx context.Context, source, binary, processor string) error {
	run := func(args ...string) error {
		c := exec.CommandContext(ctx, "go", args...)
		c.Dir, c.Stderr = source, os.Stderr
		if args[0] == "build" {
			c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+processor)
		}
		return c.Run()
	}
	if err := errors.Join(run("build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./cmd/peer"),
		run("run", "./packaging/notices", "-out", binary+".NOTICES", "-targets", "linux/"+processor,
			"./cmd/peer")); err != nil {
		return fmt.Errorf("build for %s: %w", processor, err)
	}
	return nil
}

// imageOf returns the image of a program and its licenses: the same bytes for the same program.
func imageOf(binary, version, processor string, licenses ...string) (v1.Image, error) {
	files, err := archive(binary, licenses)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	},
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", processor
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/" + home, Entrypoint: []string{"/" + program},
		Env:          []string{"PATH=/usr/local/bin", "HOME=/" + home},
		ExposedPorts: map[string]struct{}{"4001/udp": {}, "4001/tcp": {}},
		Labels: map[string]string{"org.opencontainers.image.title": "Heddle",
			"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(image, config)
}

// archive returns the files of the image as a tar archive.
func archive(binary string, licenses []string) ([]byte, error) {
	text, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name string, mode int64, owner int, text []byte) {
		if err != nil {
			return
		}
		kind := byte(tar.TypeReg)
		if text == nil {
			kind = tar.TypeDir
		}
		if err = w.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Mode: mode, Uid: owner, Gid: owner,
			Size: int64(len(text)), ModTime: time.Unix(0, 0)}); err == nil {
			_, err = w.Write(text)
		}
	}
	add("etc/", 0o755, 0, nil)
	add("etc/passwd", 0o644, 0, fmt.Appendf(nil, "root:x:0:0:root:/:/none\npeer:x:%d:%d:peer:/%s:/none\n", user, user,
		home))
	add("etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\npeer:x:%d:\n", user))
	for _, dir := range []string{"usr/", "usr/local/", "usr/local/bin/", "usr/share/", "usr/share/doc/", docs} {
		add(dir, 0o755, 0, nil)
	}
	for _, path := range licenses {
		license, fault := os.ReadFile(path)
		err = errors.Join(err, fault)
		add(docs+strings.TrimPrefix(filepath.Base(path), filepath.Base(binary)+"."), 0o644, 0, license)
	}
	add("tmp/", 0o1777, 0, nil)
	add(home+"/", 0o755, user, nil)
	add(program, 0o755, 0, text)
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}
