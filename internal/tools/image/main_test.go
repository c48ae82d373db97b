package main

import (
	"archive/tar"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// built is the images of a directory, by processor.
func built(t *testing.T, dir string) map[string]v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]v1.Image{}
	for _, m := range list.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if m.Platform == nil || m.Platform.OS != "linux" ||
			m.Annotations["org.opencontainers.image.ref.name"] != "test" {
			t.Errorf("%+v", m)
		}
		all[m.Platform.Architecture] = image
	}
	return all
}

// unpack writes the files of an image to a new directory.
func unpack(t *testing.T, image v1.Image) (root string) {
	t.Helper()
	root = t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, text, os.FileMode(h.Mode))
			}
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestImage builds the image, and runs its entrypoint as it is meant to be: as its user, with only its files, which it
// cannot change except in the volume; for arm64 under qemu.
func TestImage(t *testing.T) {
	if testing.Short() || os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("SKIPPED: builds the program twice; HEDDLE_LONG=1 runs it")
	}
	out := filepath.Join(t.TempDir(), "image")
	if err := build(t.Context(), out, "test", "amd64", "arm64"); err != nil {
		t.Fatal(err)
	}
	if err := build(t.Context(), out, "test"); err == nil || !strings.Contains(err.Error(), "new or empty") {
		t.Errorf("over another image: %v", err)
	}
	all := built(t, out)
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if len(all) != len(machines) {
		t.Fatalf("%d images, must be %d", len(all), len(machines))
	}
	for processor, image := range all {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c := config.Config; c.User != "65532:65532" || c.WorkingDir != "/data" || len(c.Entrypoint) != 1 ||
			config.Architecture != processor {
			t.Errorf("%s: %+v", processor, c)
		}
		root := unpack(t, image)
		binary := filepath.Join(root, config.Config.Entrypoint[0])
		if info, err := os.Stat(binary); err != nil || info.Size() > 29e6 { // the notices take the rest
			t.Errorf("%s: the image must be at most 30 MB: %v, %v", processor, info, err)
		}
		f, err := elf.Open(binary)
		if err != nil {
			t.Fatal(err)
		}
		if libraries, err := f.ImportedLibraries(); f.Machine != machines[processor] || err != nil ||
			len(libraries) > 0 {
			t.Errorf("%s: a program for %v that needs %v, %v", processor, f.Machine, libraries, err)
		}
		f.Close()
		licensed(t, root, binary)
		switch {
		case processor == runtime.GOARCH:
			inside(t, root, config.Config.Entrypoint[0])
		case processor == "arm64":
			emulated(t, binary)
		}
	}
}

// licensed checks that the image has the license of each module in its program.
func licensed(t *testing.T, root, binary string) {
	t.Helper()
	info, err1 := buildinfo.ReadFile(binary)
	notices, err2 := os.ReadFile(filepath.Join(root, docs, "NOTICES"))
	_, err3 := os.Stat(filepath.Join(root, docs, "LICENSE"))
	if err := errors.Join(err1, err2, err3); err != nil || len(info.Deps) == 0 {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if !strings.Contains(string(notices), "\n"+m.Path+" "+m.Version+": ") {
			t.Errorf("the image must have the license of %s", m.Path)
		}
	}
}

// inside runs the program in root.
func inside(t *testing.T, root, program string) {
	t.Helper()
	if exec.Command("unshare", "--mount", "true").Run() != nil || os.Getuid() != 0 {
		t.Log("SKIPPED: running the entrypoint: it needs root and unshare")
		return
	}
	// The root is read-only, the volume is not.
	script := `mount --bind "$1" "$1" && mount --bind "$1/data" "$1/data" && mount -o remount,ro,bind "$1" && shift &&
		exec chroot --userspec=65532:65532 "$@"`
	run := func(args ...string) (string, error) {
		c := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "sh", root, root, program},
			args...)...)
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/data"}
		text, err := c.CombinedOutput()
		return string(text), err
	}
	if text, err := run("--version"); err != nil || !strings.HasPrefix(text, "peer version") {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := run("init", "--identity", "/data/site.key"); err != nil || !strings.Contains(text, "12D3Koo") {
		t.Errorf("%v: %s", err, text)
	}
	if info, err := os.Stat(filepath.Join(root, "data/site.key")); err != nil || info.Size() == 0 {
		t.Errorf("nothing is written to the volume: %v", err)
	}
	if text, err := run("init", "--identity", "/site.key"); err == nil || !strings.Contains(text, "read-only") {
		t.Errorf("the root must be read-only: %v, %s", err, text)
	}
}

// emulated runs the program of arm64.
func emulated(t *testing.T, binary string) {
	t.Helper()
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Log("SKIPPED: running the entrypoint of arm64: no qemu-aarch64-static")
		return
	}
	if text, err := exec.Command(qemu, "-cpu", "max", binary, "--version").CombinedOutput(); err != nil ||
		!strings.HasPrefix(string(text), "peer version") {
		t.Errorf("arm64: %v: %s", err, text)
	}
}
