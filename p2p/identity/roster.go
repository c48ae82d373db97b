package identity

// Member is one peer of a roster.
type Member struct {
	Name  string   // for people: "site-b"; at most 255 bytes
	ID    string   // peer ID, "12D3KooW…"
	Addrs []string // multiaddresses to dial, with or without /p2p/ID (empty = it only dials out)
}

// Roster lists the members of a run. A member's rank is its index; all peers hold the same
// order, but each may know other addresses.
type Roster struct {
	Members []Member
}
