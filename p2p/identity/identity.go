// Package identity keeps a peer's Ed25519 key pair, whose public half is the peer ID.
package identity

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/heddle-gnn/heddle/internal/disk"
)

// Identity is a peer's Ed25519 key. Its public half is the peer ID, which rosters list.
type Identity struct {
	key crypto.PrivKey
	id  peer.ID
}

// maxKeyFile bounds what is read as a key: a PEM block of an Ed25519 key has about 120 bytes.
const maxKeyFile = 4 << 10

// New makes a key in memory, for tests and for runs with all peers in one process.
func New() (Identity, error) {
	_, raw, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Identity{}, fmt.Errorf("new identity: %w", err)
	}
	return identityOf(raw)
}

// Load reads the key file at path (PEM, PKCS #8). It refuses a file that others may read, since
// anybody with the key can act as this peer. It calls passphrase, unless that is nil, for a sealed
// key.
func Load(path string, passphrase func() (string, error)) (Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Identity{}, fmt.Errorf("identity %s must be a regular file", path)
	}
	// Windows keeps no such bits: access lists guard the file there.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return Identity{}, fmt.Errorf("identity %s: mode %04o lets others use this peer's key; "+
			"make it private with: chmod 600 %s", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && sealed(text) {
		text, err = open(text, passphrase)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("identity %s: %w", path, err)
	}
	id, err := parseIdentity(text)
	if err != nil {
		return Identity{}, fmt.Errorf("identity %s: %w", path, err)
	}
	return id, nil
}

// Key is the key pair itself, for libp2p.
func (i Identity) Key() crypto.PrivKey { return i.key }

// ID is the peer ID, for libp2p.
func (i Identity) ID() peer.ID { return i.id }

// PeerID is the identity's public name, as rosters and multiaddresses write it ("12D3KooW…").
func (i Identity) PeerID() string { return i.id.String() }

// Sign signs message with the identity's key (Ed25519, RFC 8032). The message must begin with its
// purpose, so that a signature never counts for something else.
func (i Identity) Sign(message []byte) ([]byte, error) { return i.key.Sign(message) }

// Verify returns what is wrong with the signature of the peer of that ID under message.
func Verify(peerID string, message, signature []byte) error {
	id, err := peer.Decode(peerID)
	if err != nil {
		return fmt.Errorf("peer ID %.80q: %w", peerID, err)
	}
	key, err := id.ExtractPublicKey()
	if err != nil {
		return fmt.Errorf("peer ID %s: %w", peerID, err)
	}
	if ok, err := key.Verify(message, signature); err != nil || !ok {
		return errors.Join(fmt.Errorf("the signature must be by %s", peerID), err)
	}
	return nil
}

func identityOf(raw ed25519.PrivateKey) (Identity, error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(raw)
	if err != nil {
		return Identity{}, err
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return Identity{}, err
	}
	return Identity{key: key, id: id}, nil
}

// Marshal returns the key as text (PEM, PKCS #8), for a place that guards it, as a phone's keystore
// does. Parse reads it.
func (i Identity) Marshal() ([]byte, error) {
	raw, err := i.key.Raw()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.PrivateKey(raw))
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Parse reads what Marshal writes.
func Parse(text []byte) (Identity, error) {
	id, err := parseIdentity(text)
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w", err)
	}
	return id, nil
}

func parseIdentity(text []byte) (Identity, error) {
	if len(text) > maxKeyFile {
		return Identity{}, fmt.Errorf("a file of an Ed25519 key must have at most %d bytes", maxKeyFile)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return Identity{}, errors.New(`the file must hold a PEM block "PRIVATE KEY"`)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Identity{}, err
	}
	raw, ok := key.(ed25519.PrivateKey)
	if !ok {
		return Identity{}, fmt.Errorf("the key must be of Ed25519 (got %T)", key)
	}
	return identityOf(raw)
}

// Create makes a key file, whole or not at all, if there is none: a temporary file, synced, then
// renamed. A passphrase of at least 8 bytes seals it; an empty one does not.
func Create(path, passphrase string) (_ Identity, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("identity %s: %w", path, err)
		}
	}()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return Identity{}, errors.Join(err, errors.New("the file exists already, and a key is never replaced"))
	}
	_, raw, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	id, err := identityOf(raw)
	if err != nil {
		return Identity{}, err
	}
	text, err := id.Marshal()
	if err != nil {
		return Identity{}, err
	}
	if passphrase != "" {
		if text, err = seal(text, passphrase); err != nil {
			return Identity{}, err
		}
	}
	if err := disk.MkdirAll(disk.OS{}, filepath.Dir(path), 0o700); err != nil {
		return Identity{}, err
	}
	if err := disk.WriteFile(disk.OS{}, path, 0o600, text); err != nil {
		return Identity{}, err
	}
	return id, nil
}

// minSecret is how many bytes of a secret Derive takes at least.
const minSecret = 32

// Derive returns the key of a rank among peers that share a secret (HKDF-SHA-256, RFC 5869).
// Anybody with the secret can act as any of them; nobody else can.
func Derive(secret []byte, rank int) (Identity, error) {
	if len(secret) < minSecret {
		return Identity{}, fmt.Errorf("a secret must have at least %d random bytes (got %d)", minSecret,
			len(secret))
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("heddle identity of rank %d", rank), ed25519.SeedSize)
	if err != nil {
		return Identity{}, fmt.Errorf("derive identity: %w", err)
	}
	return identityOf(ed25519.NewKeyFromSeed(seed))
}
