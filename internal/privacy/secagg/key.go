package secagg

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
)

// The members of a session make fresh random keys, exchange the public halves, and derive a secret for each pair. No
// key is written anywhere: a process that is restarted takes part with other keys, so that no two vectors are ever sent
// under one mask.
//
//	first message   u8 version · 32 bytes X25519 public key · 1184 bytes ML-KEM-768 encapsulation key · signature
//	second message  32 bytes SHA-256 of all first messages · 1088 bytes ML-KEM-768 ciphertext, to lower ranks
//
// The signature is of purpose, run, number of members, rank and what precedes it in the message. The secret of a pair
// is HKDF-SHA-256 of both shared secrets, salted with the hash of all first messages. So the second message exposes a
// member that shows two members different keys.

const (
	version   = 2 // version 1 also added the mask shared with a chunk's owner
	purpose   = "heddle: keys of secure sums, version 2\n"
	pubLen    = 32
	publicLen = 1 + pubLen + mlkem.EncapsulationKeySize768 // of a first message, without its signature
	maxSign   = 256                                        // bytes of a signature; an Ed25519 one has 64
)

// privateKeys are this member's, of one session.
type privateKeys struct {
	dh  *ecdh.PrivateKey
	kem *mlkem.DecapsulationKey768
}

func newKeys() (k privateKeys, err error) {
	if k.dh, err = ecdh.X25519().GenerateKey(rand.Reader); err == nil {
		k.kem, err = mlkem.GenerateKey768()
	}
	return k, err
}

// public returns what the other members see of k.
func (k privateKeys) public() []byte {
	b := append([]byte{version}, k.dh.PublicKey().Bytes()...)
	return append(b, k.kem.EncapsulationKey().Bytes()...)
}

// statement returns what a member of that rank signs: public are its keys.
func (t KeyTerms) statement(g *comm.Group, rank int, public []byte) []byte {
	b := append([]byte(purpose), t.Run[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(g.Size()))
	b = binary.LittleEndian.AppendUint32(b, uint32(rank))
	return append(b, public...)
}

// pair is what this member shares with another.
type pair struct {
	with   int    // the other one's rank
	secret []byte // 32 bytes
	first  bool   // this member has the lower rank: it adds the pair's masks, the other one subtracts them
}

// exchangeKeys agrees on a secret with each other member of g, in two messages to each.
func (t KeyTerms) exchangeKeys(ctx context.Context, g *comm.Group) ([]pair, error) {
	own, err := newKeys()
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	mine := own.public()
	if t.Sign != nil {
		signature, err := t.Sign(t.statement(g, g.Rank(), mine))
		if err != nil {
			return nil, fmt.Errorf("signature of keys: %w", err)
		}
		mine = append(mine, signature...)
	}
	first, err := g.SendRecv(ctx, comm.Control, "keys of secure sums", toOthers(g, mine), publicLen+maxSign)
	if err != nil {
		return nil, err
	}
	first[g.Rank()] = mine
	transcript := sha256.New()
	for q := range g.Size() {
		if q != g.Rank() {
			if err := t.check(g, q, first[q]); err != nil {
				return nil, &comm.PeerError{Rank: q, Op: "keys of secure sums", Err: err}
			}
		}
		transcript.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(first[q]))))
		transcript.Write(first[q])
	}
	return t.confirm(ctx, g, own, first, transcript.Sum(nil))
}

// toOthers returns messages of a SendRecv: b to each other member.
func toOthers(g *comm.Group, b []byte) [][]byte {
	out := make([][]byte, g.Size())
	for q := range g.Size() {
		if q != g.Rank() {
			out[q] = b
		}
	}
	return out
}

// check returns what is wrong with the first message of member q.
func (t KeyTerms) check(g *comm.Group, q int, b []byte) error {
	const n = publicLen
	if len(b) < n || b[0] != version || t.Sign == nil && len(b) > n {
		return fmt.Errorf("a message of keys must have version %d and %d bytes before its signature (got %d bytes)",
			version, n, len(b))
	}
	if t.Verify == nil {
		return nil
	}
	return t.Verify(q, t.statement(g, q, b[:n]), b[n:])
}

// confirm makes sure that all members saw the same first messages, and returns the pairs.
func (t KeyTerms) confirm(ctx context.Context, g *comm.Group, own privateKeys, first [][]byte,
	seen []byte) ([]pair, error) {
	out, secrets := toOthers(g, seen), make([][]byte, g.Size())
	for q := range g.Size() {
		if q == g.Rank() {
			continue
		}
		fault := func(err error) error { return &comm.PeerError{Rank: q, Op: "keys of secure sums", Err: err} }
		public, err := ecdh.X25519().NewPublicKey(first[q][1 : 1+pubLen])
		if err != nil {
			return nil, fault(err)
		}
		if secrets[q], err = own.dh.ECDH(public); err != nil {
			return nil, fault(err)
		}
		if q > g.Rank() {
			continue
		}
		kem, err := mlkem.NewEncapsulationKey768(first[q][1+pubLen : publicLen])
		if err != nil {
			return nil, fault(err)
		}
		shared, ciphertext := kem.Encapsulate()
		secrets[q], out[q] = append(secrets[q], shared...), append(bytes.Clone(seen), ciphertext...)
	}
	in, err := g.SendRecv(ctx, comm.Control, "confirmation of keys", out, sha256.Size+mlkem.CiphertextSize768)
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for q := range g.Size() {
		if q == g.Rank() {
			continue
		}
		fault := func(err error) error { return &comm.PeerError{Rank: q, Op: "confirmation of keys", Err: err} }
		lower := g.Rank() < q
		if len(in[q]) < len(seen) || !bytes.Equal(in[q][:len(seen)], seen) {
			return nil,
				fault(errors.New("it saw other keys than this member: some member shows different ones to " +
					"different members"))
		}
		if lower {
			shared, err := own.kem.Decapsulate(in[q][len(seen):])
			if err != nil {
				return nil, fault(err)
			}
			secrets[q] = append(secrets[q], shared...)
		}
		secret, err := pairSecret(secrets[q], seen, min(q, g.Rank()), max(q, g.Rank()))
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{q, secret, lower})
	}
	return pairs, nil
}

// pairSecret returns the secret of members low and high. Two members that show one key share another with each third.
func pairSecret(shared, seen []byte, low, high int) ([]byte, error) {
	info := binary.LittleEndian.AppendUint32([]byte("pair"), uint32(low))
	return hkdf.Key(sha256.New, shared, seen, string(binary.LittleEndian.AppendUint32(info, uint32(high))), 32)
}
