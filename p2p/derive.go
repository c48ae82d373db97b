package p2p

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// MinSecret is how many bytes of a secret DeriveIdentity takes at least.
const MinSecret = 32

// DeriveIdentity returns the key of one of the peers that a scheduler starts and that share a secret. It depends on the
// secret and the rank alone (HKDF with SHA-256, RFC 5869). Whoever holds the secret can act as any of them; nobody else can.
func DeriveIdentity(secret []byte, rank int) (Identity, error) {
	if len(secret) < MinSecret {
		return Identity{}, fmt.Errorf("p2p: a secret must have at least %d random bytes (got %d)", MinSecret, len(secret))
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("heddle identity of rank %d", rank), ed25519.SeedSize)
	if err != nil {
		return Identity{}, fmt.Errorf("p2p: derive identity: %w", err)
	}
	return identityOf(ed25519.NewKeyFromSeed(seed))
}
