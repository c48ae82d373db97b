package node

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/quic-go/quic-go"
)

// NoAnswer is why a peer that QUIC dials was not reached, as far as this end knows.
const NoAnswer = "no answer: it has not joined yet, or the network drops UDP (then use option carrier auto or tcp)"

// Explain returns in one line why a peer could not be reached, as far as libp2p lets us know.
func Explain(err error) error {
	if dial, ok := errors.AsType[*swarm.DialError](err); ok && len(dial.DialErrors) > 0 {
		why := make([]string, len(dial.DialErrors))
		for i, e := range dial.DialErrors {
			cause := Explain(e.Cause)
			if late, ok := errors.AsType[net.Error](cause); ok && late.Timeout() && kindOf(e.Address) == "quic" {
				cause = errors.New(NoAnswer)
			}
			why[i] = fmt.Sprintf("%s: %v", e.Address, cause)
		}
		return &reachError{strings.Join(why, "; "), err}
	}
	if err == nil {
		return nil
	}
	gone, _ := errors.AsType[*network.ConnError](err)
	cut, _ := errors.AsType[*network.StreamError](err)
	shut, _ := errors.AsType[*quic.TransportError](err)
	if shut != nil && shut.ErrorCode == quic.ConnectionRefused || gone != nil && gone.Remote ||
		cut != nil && cut.Remote || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) {
		return &reachError{"it closed the connection: it has not joined yet, or its roster does not list this peer",
			err}
	}
	return err
}

// reachError is a readable line in front of libp2p's error.
type reachError struct {
	line string
	err  error
}

func (e *reachError) Error() string { return e.line }
func (e *reachError) Unwrap() error { return e.err }
