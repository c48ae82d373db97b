package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// passphraseFile names a file that holds the passphrase of the key, for services that have no terminal: systemd's
// credentials, a mounted secret. Its last line end does not count.
const passphraseFile = "HEDDLE_PASSPHRASE_FILE"

func newInit() *cobra.Command {
	var path string
	var seal bool
	c := &cobra.Command{
		Use:   "init",
		Short: "Make this peer's key and print its ID",
		Long: `Make this peer's key and print its ID, by which rosters and plans name it. The key stays on this machine, and only
its owner can read the file. --passphrase makes a copy of it useless. An existing key is never replaced.

Without a terminal the passphrase comes from the file that the environment variable ` + passphraseFile + `
names. A key file with a passphrase is an age file: age --decrypt opens it as well.`,
		Example: "  peer init\n  peer init --passphrase --identity site-a.key",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var word string
			if seal {
				var err error
				if word, err = newPassphrase(); err != nil {
					return badInput{err}
				}
				if word == "" {
					return badInput{errors.New("the passphrase is empty")}
				}
			}
			id, err := identity.Create(path, word)
			if err != nil {
				return badInput{err}
			}
			fmt.Fprintln(c.OutOrStdout(), id.PeerID())
			return nil
		},
	}
	c.Flags().StringVar(&path, "identity", defaultIdentity(), "key file to make")
	c.Flags().BoolVar(&seal, "passphrase", false, "passphrase for the key")
	return c
}

// loadKey reads the key of a person or peer who is known by it already.
func loadKey(path string) (identity.Identity, error) {
	id, err := identity.Load(path, askPassphrase)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; peer init makes a key", err)
	}
	if err != nil {
		return id, badInput{err}
	}
	return id, nil
}

// loadOrMakeKey reads a peer's key, or makes one without passphrase on first use.
func loadOrMakeKey(path string) (identity.Identity, error) {
	id, err := identity.Load(path, askPassphrase)
	if errors.Is(err, fs.ErrNotExist) {
		id, err = identity.Create(path, "")
	}
	if err != nil {
		return id, badInput{err}
	}
	return id, nil
}

func askPassphrase() (string, error) { return readPassphrase("passphrase: ") }

// newPassphrase asks twice: a slip of the finger would lock the key away for good.
func newPassphrase() (string, error) {
	word, err := readPassphrase("new passphrase: ")
	if err != nil || os.Getenv(passphraseFile) != "" {
		return word, err
	}
	again, err := readPassphrase("once more: ")
	if err == nil && again != word {
		err = errors.New("the two passphrases differ")
	}
	return word, err
}

func readPassphrase(prompt string) (string, error) {
	if path := os.Getenv(passphraseFile); path != "" {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", passphraseFile, err)
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, 4<<10))
		return string(bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))), err
	}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return "", fmt.Errorf("the key is under a passphrase, and there is no terminal to ask for it: name a file that holds it in %s", passphraseFile)
	}
	fmt.Fprint(os.Stderr, prompt)
	word, err := term.ReadPassword(in)
	fmt.Fprintln(os.Stderr)
	return string(word), err
}

// siteDir is where a user's key and the rosters in force lie.
func siteDir() string { return filepath.Dir(defaultIdentity()) }
