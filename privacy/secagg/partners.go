package secagg

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

const (
	// MostMembers is how many members a sum may have.
	MostMembers = 1000

	// allPairs is up to how many members each pair shares masks. Of more, each member shares masks with
	// degree others, so that the work of one does not grow with all.
	allPairs = 50
	degree   = 24
)

// Partners returns how many others a member of a sum of n shares masks with: they see its part if all
// of them pool what they know.
func Partners(n int) int {
	if n <= allPairs {
		return n - 1
	}
	return degree
}

// partners returns the members with which that rank shares masks. Of more than allPairs they are the
// degree/2 next on either side of a circle, on which the hash of all keys places the members: a regular
// graph drawn at random, as of Bell et al., CCS 2020, §3. Members that pool what they know learn the
// sum of others' parts only where they cut the circle twice, by degree/2 neighbours each time: of 1,000
// members of whom a third collude, at random places, with a probability below 10⁻⁶.
func partners(size, rank int, seen []byte) []int {
	members := make([]int, size)
	for q := range members {
		members[q] = q
	}
	if size <= allPairs {
		return slices.DeleteFunc(members, func(q int) bool { return q == rank })
	}
	place := make(map[int][32]byte, len(members))
	for _, q := range members {
		place[q] = sha256.Sum256(binary.LittleEndian.AppendUint32(bytes.Clone(seen), uint32(q)))
	}
	circle := slices.SortedFunc(slices.Values(members), func(a, b int) int {
		x, y := place[a], place[b]
		return bytes.Compare(x[:], y[:])
	})
	at := slices.Index(circle, rank)
	var near []int
	for d := 1; d <= degree/2; d++ {
		near = append(near, circle[(at+d)%len(circle)], circle[(at-d+len(circle))%len(circle)])
	}
	slices.Sort(near)
	return near
}
