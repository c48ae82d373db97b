package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// PassphraseFile is the environment variable that names a file with the passphrase of the key, for
// services without a terminal, such as systemd credentials or a mounted secret. A line end at the
// end of the file is not part of it.
const PassphraseFile = "HEDDLE_PASSPHRASE_FILE"

// DefaultIdentity is the user's key file (empty without a home folder).
func DefaultIdentity() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "heddle", "identity.key")
}

// KeyPlace returns an error if path is DefaultIdentity without a home folder.
func KeyPlace(path string) error {
	if path == "" {
		return Invalidf("there must be a place for this peer's key, and there is no home folder (HOME is not set): " +
			"give --identity FILE")
	}
	return nil
}

// TrustedDir is the directory of the rosters in force, next to the user's key.
func TrustedDir() string { return filepath.Join(filepath.Dir(DefaultIdentity()), "trusted") }

// LoadKey reads a key that must exist.
func LoadKey(path string) (id identity.Identity, err error) {
	if err = KeyPlace(path); err == nil {
		id, err = identity.Load(path, func() (string, error) { return readPassphrase("passphrase: ") })
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; the command init makes a key", err)
	}
	return id, Invalid(err)
}

// LoadOrMakeKey reads a peer's key. If there is none, it makes one without a passphrase.
func LoadOrMakeKey(path string) (identity.Identity, error) {
	id, err := LoadKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		id, err = identity.Create(path, "")
	}
	return id, Invalid(err)
}

// NewPassphrase asks twice: with a typing error in it the key could never be opened.
func NewPassphrase() (string, error) {
	word, err := readPassphrase("new passphrase: ")
	if err == nil && os.Getenv(PassphraseFile) == "" {
		var again string
		if again, err = readPassphrase("repeat it: "); err == nil && again != word {
			err = errors.New("the two passphrases differ")
		}
	}
	if err == nil && word == "" {
		err = errors.New("the passphrase must not be empty")
	}
	return word, Invalid(err)
}

func readPassphrase(prompt string) (string, error) {
	if path := os.Getenv(PassphraseFile); path != "" {
		text, err := disk.ReadStart(path, 4<<10)
		if err != nil {
			return "", fmt.Errorf("%s: %w", PassphraseFile, err)
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
	}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return "", fmt.Errorf("the key needs a passphrase, and there is no terminal to ask for it: set %s to a file "+
			"with it",
			PassphraseFile)
	}
	fmt.Fprint(os.Stderr, prompt)
	word, err := term.ReadPassword(in)
	fmt.Fprintln(os.Stderr)
	return string(word), err
}
