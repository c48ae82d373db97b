package plan

import (
	"fmt"

	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
)

// LeastSecure is how many peers a secure sum has at least: in a sum of two, each sees the other's part.
const LeastSecure = 3

// Secure reports whether the sums of a run by p over `peers` peers are secure.
func (p Plan) Secure(peers int) bool {
	sums := p.Federation().SecureSums
	return sums == "on" || sums == "auto" && peers >= LeastSecure
}

// checkSums adds to errs why `peers` peers cannot have the sums that p asks for.
func (p Plan) checkSums(peers int, errs *faults) {
	if p.Secure(peers) && (peers < LeastSecure || peers > secagg.MostMembers) {
		errs.add("secure_sums must be off with %d peers (got %s): secure sums take %d to %d sites", peers,
			p.Federation().SecureSums, LeastSecure, secagg.MostMembers)
	}
}

// SumTerms say who sees what of the sums of a run.
type SumTerms struct {
	Secure  bool   `json:"secure"`
	Members int    `json:"members"`        // of a sum
	Form    string `json:"form,omitempty"` // of secure sums: ring and scale
	Keys    string `json:"keys,omitempty"` // of secure sums: what they rest on
	Trust   string `json:"trust"`          // what a peer may rely on
}

// SumTerms returns who sees what of the sums of a run by p over `peers` peers.
func (p Plan) SumTerms(peers int) SumTerms {
	s := SumTerms{Secure: p.Secure(peers), Members: peers}
	switch {
	case peers == 1:
		s.Trust = "one peer: there are no sums over peers"
	case s.Secure:
		s.Form = "whole numbers modulo 2^64"
		for _, narrow := range []struct {
			what, format string
			read         bool
		}{{"sums that find the encoder", p.Federation().Sums, p.Encoder().Kind == "pca" || p.Method == ClassMeans},
			{"updates", p.LayerWise.Updates, p.Method == LayerWise}} {
			if narrow.format == Auto {
				narrow.format = "int16"
				if (p.Method == ClassMeans || narrow.what == "updates") && peers <= 8 {
					narrow.format = "int8"
				}
			}
			if narrow.read && narrow.format != "float32" {
				s.Form += fmt.Sprintf(", for %s %s", narrow.what, narrow.format)
			}
		}
		s.Form += "; each sum has a grid that follows from the sum of the peers' largest magnitudes"
		s.Keys = "X25519 and ML-KEM-768, new for each session"
		s.Trust = fmt.Sprintf("nobody sees a single peer's part of a sum, unless all %d other members of the sum "+
			"pool what they know; all peers see the sums", s.Members-1)
	case peers == 2:
		s.Trust = "the other site sees your sums: of a sum of two, each sees the other's part"
	default:
		s.Trust = "sums are in the clear: the peer that adds up a vector sees each peer's part of it"
	}
	if p.ClassMeans.Leaves > 0 {
		s.Trust += fmt.Sprintf("; nobody sees a phone's part, unless the %d peers that collect shares pool theirs",
			p.Collecting())
	}
	return s
}
