package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// A sealed key file is the plain one encrypted under a passphrase as an armored age file
// (c2sp.org/age: scrypt, then ChaCha20-Poly1305). The age program opens it as well.

// errSealed reports that a key file needs a passphrase.
var errSealed = errors.New("a passphrase seals the key, and none was given")

// sealWork is scrypt's cost as a power of two: 2^17 rounds of 1 KiB blocks take 128 MiB and about
// half a second (OWASP). maxWork bounds what a swapped file can make this peer spend.
const (
	sealWork = 17
	maxWork  = 18
)

// minPassphrase, in bytes, keeps out empty and accidental ones; a good one has five random words.
const minPassphrase = 8

func sealed(text []byte) bool { return bytes.HasPrefix(text, []byte(armor.Header)) }

func seal(text []byte, passphrase string) ([]byte, error) {
	if len(passphrase) < minPassphrase {
		return nil, fmt.Errorf("a passphrase must have at least %d characters (got %d)", minPassphrase, len(passphrase))
	}
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	to.SetWorkFactor(sealWork)
	var b bytes.Buffer
	outer := armor.NewWriter(&b)
	inner, err := age.Encrypt(outer, to)
	if err != nil {
		return nil, err
	}
	if _, err := inner.Write(text); err != nil {
		return nil, err
	}
	if err := errors.Join(inner.Close(), outer.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// open asks for the passphrase of a sealed file and returns the plain one.
func open(file []byte, passphrase func() (string, error)) ([]byte, error) {
	if len(file) > maxKeyFile {
		return nil, fmt.Errorf("a file of an Ed25519 key must have at most %d bytes", maxKeyFile)
	}
	if passphrase == nil {
		return nil, errSealed
	}
	word, err := passphrase()
	if err != nil {
		return nil, err
	}
	by, err := age.NewScryptIdentity(word)
	if err != nil {
		return nil, err
	}
	by.SetMaxWorkFactor(maxWork)
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(file)), by)
	if errors.Is(err, age.ErrIncorrectIdentity) {
		return nil, errors.New("wrong passphrase")
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxKeyFile+1))
}
