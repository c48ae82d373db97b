package admission

import (
	"crypto/ed25519"
	"fmt"
	"math/big"
	"strings"
)

// idPrefix begins the bytes of every peer ID of an Ed25519 key: an identity multihash of 36 bytes
// with a protobuf of key type 1 with 32 bytes of key (github.com/libp2p/specs, peer-ids). So
// the ID is the key.
const idPrefix = "\x00\x24\x08\x01\x12\x20"

// publicKey returns the key inside a peer ID.
func publicKey(id string) (ed25519.PublicKey, error) {
	if len(id) > 64 {
		return nil, fmt.Errorf("peer ID must be the 52 characters of an Ed25519 key (got %d)", len(id))
	}
	b, err := decode58(id)
	if err != nil {
		return nil, fmt.Errorf("peer ID %q: %w", id, err)
	}
	key, ok := strings.CutPrefix(string(b), idPrefix)
	if !ok || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("peer ID %q must be the ID of an Ed25519 key, which begins with 12D3KooW", id)
	}
	return ed25519.PublicKey(key), nil
}

// digits58 are the digits of base58, as in Bitcoin: without 0, O, I and l.
const digits58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// decode58 reads bytes that are written as a number in base58, behind a 1 for each zero byte that they begin with. No
// two texts have the same bytes, so that each key has one ID.
func decode58(text string) ([]byte, error) {
	n := new(big.Int)
	for _, c := range []byte(text) {
		digit := strings.IndexByte(digits58, c)
		if digit < 0 {
			return nil, fmt.Errorf("digits must be of base58 (got %q)", c)
		}
		n.Add(n.Mul(n, big.NewInt(58)), big.NewInt(int64(digit)))
	}
	zeros := len(text) - len(strings.TrimLeft(text, digits58[:1]))
	return append(make([]byte, zeros), n.Bytes()...), nil
}
