package admission

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"github.com/mr-tron/base58"
)

// idPrefix begins the bytes of every peer ID of an Ed25519 key: an identity multihash of 36 bytes
// that holds a protobuf of key type 1 with 32 bytes of key (github.com/libp2p/specs, peer-ids). So
// the ID is the key.
const idPrefix = "\x00\x24\x08\x01\x12\x20"

// peerID returns the name of the peer that holds key, as libp2p writes it: "12D3KooW…".
func peerID(key ed25519.PublicKey) string {
	return base58.Encode(append([]byte(idPrefix), key...))
}

// publicKey returns the key inside a peer ID. Each key has one ID: another spelling of it is an
// error.
func publicKey(id string) (ed25519.PublicKey, error) {
	if len(id) > 64 {
		return nil, fmt.Errorf("peer ID must be the 52 characters of an Ed25519 key (got %d)", len(id))
	}
	b, err := base58.Decode(id)
	if err != nil {
		return nil, fmt.Errorf("peer ID %q: %w", id, err)
	}
	key, ok := strings.CutPrefix(string(b), idPrefix)
	if !ok || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("peer ID %q is not that of an Ed25519 key, which begins with 12D3KooW", id)
	}
	if peerID(ed25519.PublicKey(key)) != id {
		return nil, errors.New("peer ID " + id + " is not written as libp2p writes it")
	}
	return ed25519.PublicKey(key), nil
}
