package identity

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age/armor"
)

func say(word string) func() (string, error) { return func() (string, error) { return word, nil } }

func TestSealedIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.key")
	if _, err := Create(path, "short"); err == nil || !strings.Contains(err.Error(), "at least 8") {
		t.Errorf("%v, must be a longer passphrase", err)
	}
	if _, err := Load(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, must be no file yet", err)
	}
	made, err := Create(path, "correct horse battery staple")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(file), "-----BEGIN AGE ENCRYPTED FILE-----\n") ||
		strings.Contains(string(file), "PRIVATE") {
		t.Errorf("%q (%v), must be an armored age file", file, err)
	}
	got, err := Load(path, say("correct horse battery staple"))
	if err != nil || got.PeerID() != made.PeerID() {
		t.Errorf("%s (%v), must be %s", got.id, err, made.PeerID())
	}
	if _, err := Load(path, nil); !errors.Is(err, errSealed) {
		t.Errorf("%v, must be %v", err, errSealed)
	}
	if _, err := Load(path, say("correct horse battery stable")); err == nil ||
		!strings.Contains(err.Error(), "wrong passphrase") {
		t.Errorf("%v, must be a word about the passphrase", err)
	}
	none := errors.New("nobody there")
	if _, err := Load(path, func() (string, error) { return "", none }); !errors.Is(err, none) {
		t.Errorf("%v, must be %v", err, none)
	}
	if _, err := Create(path, ""); err == nil || !strings.Contains(err.Error(), "never replaced") {
		t.Errorf("%v: a key must not be replaced", err)
	}
	// A file that asks for more rounds of scrypt than maxWork, which age itself would still take,
	// is refused before it begins.
	costly := filepath.Join(t.TempDir(), "costly.key")
	zeros := base64.RawStdEncoding.EncodeToString(make([]byte, 32))
	var text bytes.Buffer
	w := armor.NewWriter(&text)
	fmt.Fprintf(w, "age-encryption.org/v1\n-> scrypt %s %d\n%s\n--- %s\n%s", zeros[:22], maxWork+1, zeros, zeros,
		make([]byte, 32))
	w.Close()
	if err := os.WriteFile(costly, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(costly, say("correct horse battery staple")); err == nil ||
		!strings.Contains(err.Error(), "work factor too large") {
		t.Errorf("%v, must be refused for its cost", err)
	}
}

func TestSign(t *testing.T) {
	id, err := New()
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("heddle test 1\nwords")
	signature, err := id.Sign(message)
	if err != nil {
		t.Fatal(err)
	}
	key, err := id.key.GetPublic().Raw()
	if err != nil || !ed25519.Verify(key, message, signature) {
		t.Errorf("the signature is not of the message (%v)", err)
	}
}
