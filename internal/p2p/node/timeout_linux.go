package node

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// boundTimeout makes the kernel close a TCP connection whose peer has acknowledged nothing for d
// (TCP_USER_TIMEOUT, RFC 5482; Linux would wait a quarter of an hour). It ignores other
// connections.
func boundTimeout(c any, d time.Duration) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
		})
	}
}
