package node

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// boundTimeout lets the kernel end a TCP connection whose other side has acknowledged nothing for d. (TCP_USER_TIMEOUT,
// RFC 5482; without it Linux goes on for a quarter of an hour.) Connections that are no sockets are left alone.
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
