package p2p

// Sign signs message with the identity's key (Ed25519, RFC 8032), whose public half is in the peer ID. The caller says
// at the beginning of message what it is for, so that a signature never counts for something else.
func (i Identity) Sign(message []byte) ([]byte, error) { return i.key.Sign(message) }
