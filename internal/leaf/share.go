package leaf

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/kernels"
)

// integer returns v as a multiple of Step. A float32 times 2³² is exact as a float64.
func integer(v float32) int64 { return int64(math.RoundToEven(float64(v) / Step)) }

const (
	version   = 1
	isNumbers = 1 // the payload is the leaf's numbers, less the streams of all seeds
	isSeed    = 2 // it is a seed

	// HeaderLen is the length of a share's header, SeedLen the length of a seed.
	HeaderLen = 48
	SeedLen   = 32
)

// A share is what a leaf sends one site in one sum:
//
//	byte 0       version of this layout, 1
//	byte 1       1: numbers, 2: a seed
//	bytes 2–3    for which of the m sites, little endian as all that follows
//	bytes 4–7    exchange: how many sums came before
//	bytes 8–15   run
//	bytes 16–31  token of the leaf
//	bytes 32–47  attempt: random, the same in the shares that belong together
//	bytes 48–    numbers of 8 bytes, or a seed of 32
type share struct {
	site     int
	exchange uint32
	run      [8]byte
	token    Token
	attempt  [16]byte
	seed     bool
	payload  []byte
}

func (s share) encode() []byte {
	b := make([]byte, 4, HeaderLen+len(s.payload))
	b[0], b[1] = version, isNumbers
	if s.seed {
		b[1] = isSeed
	}
	binary.LittleEndian.PutUint16(b[2:], uint16(s.site))
	b = binary.LittleEndian.AppendUint32(b, s.exchange)
	b = append(append(append(b, s.run[:]...), s.token[:]...), s.attempt[:]...)
	return append(b, s.payload...)
}

func parseShare(b []byte) (s share, err error) {
	if len(b) < HeaderLen {
		return s, fmt.Errorf("a share must have at least %d bytes (got %d)", HeaderLen, len(b))
	}
	s.seed = b[1] == isSeed
	switch {
	case b[0] != version:
		return s, fmt.Errorf("the version of a share must be %d (got %d)", version, b[0])
	case b[1] != isNumbers && b[1] != isSeed:
		return s, fmt.Errorf("a share must be of kind %d or %d (got %d)", isNumbers, isSeed, b[1])
	case s.seed && len(b) != HeaderLen+SeedLen:
		return s, fmt.Errorf("a share with a seed must have %d bytes (got %d)", HeaderLen+SeedLen, len(b))
	case !s.seed && len(b)%8 != 0:
		return s, fmt.Errorf("a share must have whole numbers of 8 bytes (got %d bytes)", len(b))
	}
	s.site, s.exchange = int(binary.LittleEndian.Uint16(b[2:])), binary.LittleEndian.Uint32(b[4:])
	copy(s.run[:], b[8:])
	copy(s.token[:], b[16:])
	copy(s.attempt[:], b[32:])
	s.payload = b[HeaderLen:]
	return s, nil
}

// tag names a leaf's attempt in the lists that sites compare: shares that do not belong together, or that sites
// attribute to different nodes, have two.
func (s share) tag(nodes []int32) uint64 {
	text := append(s.token[:len(s.token):len(s.token)], s.attempt[:]...)
	for _, i := range nodes {
		text = binary.LittleEndian.AppendUint32(text, uint32(i))
	}
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:])
}

// split returns the shares of x, by site: x less the streams of the seeds to the leaf's first site, a seed to each of
// the others. x is overwritten. draw fills bytes with random ones.
func (a Agreement) split(x comm.Integers, t Token, exchange uint32, draw func([]byte) error) ([][]byte, error) {
	one := share{exchange: exchange, run: a.Run, token: t}
	if err := draw(one.attempt[:]); err != nil {
		return nil, err
	}
	all, first := make([][]byte, a.Sites), t.First(a.Sites)
	for q := range all {
		if q == first {
			continue
		}
		seed := make([]byte, SeedLen)
		if err := draw(seed); err != nil {
			return nil, err
		}
		stream(seed).Sub(x.Bits, 0, x.B)
		one.site, one.seed, one.payload = q, true, seed
		all[q] = one.encode()
	}
	one.site, one.seed, one.payload = first, false, x.B
	all[first] = one.encode()
	return all, nil
}

// stream returns the numbers that follow from a seed: AES-256 in counter mode. A seed is used once.
func stream(seed []byte) *kernels.Keystream { return kernels.NewKeystream([SeedLen]byte(seed)) }

// SentBytes returns the bytes that a leaf sends in a sum of `numbers` numbers: m headers, the numbers, m−1 seeds.
func (a Agreement) SentBytes(numbers int) int64 {
	return int64(a.Sites*HeaderLen + 8*numbers + (a.Sites-1)*SeedLen)
}

// FetchedBytes returns the bytes that a leaf receives of the same sum.
func (a Agreement) FetchedBytes(numbers int) int64 { return int64(sumsHeader + 8*numbers) }
