//go:build linux || darwin || freebsd

package federation

import (
	"net"

	"golang.org/x/sys/unix"
)

// diskFree returns the bytes that a user may still write below dir.
func diskFree(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(uint64(s.Bavail) * uint64(s.Bsize)), nil
}

// udpBuffer requests a receive buffer of want bytes and returns what the kernel grants.
func udpBuffer(want int) (got int, err error) {
	c, err := net.ListenUDP("udp", nil)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	c.SetReadBuffer(want) // the kernel caps it without an error
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	fault := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) })
	if fault != nil {
		return 0, fault
	}
	return got, err
}
