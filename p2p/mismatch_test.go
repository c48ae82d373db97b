package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// All members learn at once what differs between whom, with the texts of both plans, whether or not
// they have met the member that differs.
func TestMismatchReachesAll(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		without := func(q int) identity.Roster { // the address of the member of rank q
			r := identity.Roster{Members: slices.Clone(roster.Members)}
			r.Members[q].Addrs = nil
			return r
		}
		rosters := []identity.Roster{roster, without(2), without(1)} // 1 and 2 cannot reach each other
		same := Hello{Plan: [32]byte{1}, PlanText: "rounds: 10\n"}
		differs := Hello{Plan: [32]byte{2}, PlanText: "rounds: 20\n"}
		hellos := []Hello{same, differs, same}
		errs := make([]error, 3)
		var all sync.WaitGroup
		start := func(rank int) {
			all.Go(func() { _, errs[rank] = hs[rank].Join(within(t, patience), rosters[rank], hellos[rank]) })
		}
		start(0)
		start(2)
		// 0 informs only members that it reaches within refusalTime
		await(t, within(t, patience), "0 and 2 have met", func() bool {
			joining, _ := hs[0].state()
			if joining == nil {
				return false
			}
			joining.mu.Lock()
			defer joining.mu.Unlock()
			return joining.assembly.met() == 2
		})
		start(1)
		all.Wait()
		for rank, want := range []MemberMismatchError{
			{Rank: 1, Name: "site-1", With: 0, Other: "site-0", OurPlan: same.PlanText, PeerPlan: differs.PlanText},
			{Rank: 0, Name: "site-0", With: 1, Other: "site-1", OurPlan: differs.PlanText, PeerPlan: same.PlanText},
			{Rank: 1, Name: "site-1", With: 0, Other: "site-0", OurPlan: same.PlanText, PeerPlan: differs.PlanText,
				reported: true},
		} {
			got, ok := errors.AsType[*MemberMismatchError](errs[rank])
			if !ok {
				t.Errorf("rank %d: %v", rank, errs[rank])
				continue
			}
			want.Part, want.Ours, want.Peer = "plan", got.Ours, got.Peer
			if *got != want || got.Ours == got.Peer {
				t.Errorf("rank %d: %+v, must be %+v", rank, *got, want)
			}
		}
		if errs[2] == nil ||
			!strings.Contains(errs[2].Error(), "peer 0 (site-0) reports that peer 1 (site-1) has another plan") {
			t.Errorf("rank 2: %v", errs[2])
		}
	})
}

// All members learn at once that one cannot take part, even a member that it does not reach itself.
func TestDeclined(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		var all sync.WaitGroup
		for rank, hello := range []Hello{{PlanText: "rounds: 10\n"}, {PlanText: Declined}, {PlanText: "rounds: 10\n"}} {
			all.Go(func() {
				hello.Plan[0] = byte(rank & 1)
				_, err := hs[rank].Join(within(t, patience), roster, hello)
				if rank != 1 && (err == nil || !strings.HasSuffix(
					Explained(err).Error(), "peer 1 (site-1) cannot take part: its own message names the cause")) {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		all.Wait()
	})
}

func TestLongPlanTextIsRefused(t *testing.T) {
	hs, roster := hosts(t, "tcp", 2)
	_, err := hs[0].Join(within(t, patience), roster, Hello{PlanText: strings.Repeat("x", maxPlanText+1)})
	if err == nil || !strings.Contains(err.Error(), "at most 65536 bytes (got 65537)") {
		t.Errorf("a plan that is too long: %v", err)
	}
}

func TestRefusalLayout(t *testing.T) {
	m := &MemberMismatchError{Rank: 2, With: 1, Part: "plan", Ours: "1", Peer: "23", OurPlan: "a: 1", PeerPlan: ""}
	want := "\x02\x00\x00\x00\x01\x00\x00\x00" + "\x04\x00\x00\x00plan" + "\x01\x00\x00\x001" + "\x02\x00\x00\x0023" +
		"\x04\x00\x00\x00a: 1" + "\x00\x00\x00\x00"
	if got := m.encode(); string(got) != want {
		t.Errorf("encoded %q, must be %q", got, want)
	}
}

func TestParseRefusal(t *testing.T) {
	members := []node.Peer{{Name: "site-0"}, {Name: "site-1"}, {Name: "site-2"}}
	refusal := func(edit func(m *MemberMismatchError)) []byte {
		m := &MemberMismatchError{Rank: 2, With: 1, Part: "plan", Ours: "1", Peer: "2",
			OurPlan: strings.Repeat("x", maxPlanText)}
		edit(m)
		return m.encode()
	}
	for _, test := range []struct {
		name string
		in   []byte
		want string // in the error; "" for none
	}{
		{"good", refusal(func(*MemberMismatchError) {}), ""},
		{"short", refusal(func(*MemberMismatchError) {})[:7], "at least 8 bytes (got 7)"},
		{"cut in a length", refusal(func(*MemberMismatchError) {})[:10], "inside a length"},
		{"cut in a field", refusal(func(*MemberMismatchError) {})[:20], "all there"},
		{"long", append(refusal(func(*MemberMismatchError) {}), 0), "got 1 bytes more"},
		{"one member", refusal(func(m *MemberMismatchError) { m.With = 2 }), "must name two of 3 members"},
		{"no member", refusal(func(m *MemberMismatchError) { m.With = 3 }), "must name two of 3 members"},
		{"no such rank", refusal(func(m *MemberMismatchError) { m.Rank = 1 << 31 }), "must name two of 3 members"},
		{"part", refusal(func(m *MemberMismatchError) { m.Part = "plot" }), "must be about one of"},
		{"long value", refusal(func(m *MemberMismatchError) { m.Peer = strings.Repeat("x", maxValue+1) }),
			"at most 256 bytes"},
		{"long plan", refusal(func(m *MemberMismatchError) { m.OurPlan += "x" }), "at most 65536 bytes"},
	} {
		_, err := parseRefusal(test.in, members)
		if test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, must have %q", test.name, err, test.want)
		}
	}
}

// A member whose plan differs cannot make this one allocate any amount of memory for the plan's text.
func TestReadText(t *testing.T) {
	text := func(n uint32, s string) io.Reader {
		return bytes.NewReader(append(binary.LittleEndian.AppendUint32(nil, n), s...))
	}
	if got, err := readText(text(4, "a: 1")); err != nil || got != "a: 1" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := readText(text(maxPlanText+1, strings.Repeat("x", maxPlanText+1))); err == nil ||
		!strings.Contains(err.Error(), "at most 65536 bytes (got 65537)") {
		t.Errorf("a text that is too long: %v", err)
	}
	if _, err := readText(text(5, "a: 1")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a text that is cut: %v", err)
	}
}

// What parses re-encodes to the same bytes, names two members, and costs no more than came.
func FuzzRefusal(f *testing.F) {
	members := []node.Peer{{Name: "site-0"}, {Name: "site-1"}, {Name: "site-2"}}
	good := (&MemberMismatchError{Rank: 2, With: 1, Part: "plan", Ours: "1", Peer: "2", OurPlan: "a: 1",
		PeerPlan: "a: 2"}).encode()
	f.Add(good)
	f.Add(good[:20])
	f.Add(append(bytes.Clone(good), 0))
	f.Add(bytes.Replace(good, []byte("plan"), []byte("plot"), 1))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseRefusal(b, members)
		if err != nil {
			return
		}
		if !bytes.Equal(m.encode(), b) {
			t.Errorf("%x\nre-encodes to\n%x", b, m.encode())
		}
		if m.Rank == m.With || m.Name != members[m.Rank].Name || m.Other != members[m.With].Name ||
			!slices.Contains(parts, m.Part) {
			t.Errorf("%+v", m)
		}
	})
}
