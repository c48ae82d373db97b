package identity

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestKeyIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "identity.pem")
	first, err := Create(path, "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.PeerID() != again.PeerID() || !strings.HasPrefix(first.PeerID(), "12D3KooW") {
		t.Errorf("peer ID %s, later %s, must be one Ed25519 ID", first.PeerID(), again.PeerID())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v (%v), must be the key alone", entries, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, must be %v", name, info.Mode(), want)
		}
	}
}

func TestKeyFileRefused(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if _, err := Create(good, ""); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, content string
		mode          os.FileMode
		want          string
	}{
		{"readable by the group", string(key), 0o640, "chmod 600"},
		{"readable by all", string(key), 0o604, "chmod 600"},
		{"empty", "", 0o600, "PEM"},
		{"truncated", string(key[:60]), 0o600, "PEM"},
		{"huge", strings.Repeat("x", maxKeyFile+1), 0o600, "at most 4096 bytes"},
		{"no key inside", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0o600, "asn1"},
	} {
		if runtime.GOOS == "windows" && test.mode != 0o600 {
			continue
		}
		path := filepath.Join(dir, test.name)
		if err := os.WriteFile(path, []byte(test.content), test.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, test.mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		_, err := Load(path, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, must be %q and the path in it", test.name, err, test.want)
		}
	}
	if _, err := Load(dir, nil); err == nil || !strings.Contains(err.Error(), "must be a regular file") {
		t.Errorf("a directory was taken for a key: %v", err)
	}
	if _, err := Create(filepath.Join(good, "below"), ""); err == nil {
		t.Error("made a key below a file")
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n" +
		"-----END PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, err := parseIdentity(b); err == nil && !strings.HasPrefix(id.PeerID(), "12D3KooW") {
			t.Errorf("parsed to %q", id.PeerID())
		}
	})
}

// TestMarshal: a key that went through text is the same one, and other text is refused.
func TestMarshal(t *testing.T) {
	id, err := New()
	if err != nil {
		t.Fatal(err)
	}
	text, err := id.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text)
	if err != nil || again.PeerID() != id.PeerID() {
		t.Errorf("peer ID %s, after Parse %s (%v)", id.PeerID(), again.PeerID(), err)
	}
	if _, err := Parse(text[:40]); err == nil {
		t.Error("half a key must be refused")
	}
}
