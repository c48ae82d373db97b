//go:build linux || darwin || freebsd

package cli

import (
	"errors"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// DiskFree returns the bytes that a user may still write below dir.
func DiskFree(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(uint64(s.Bavail) * uint64(s.Bsize)), nil
}

// UDPBuffer requests a receive buffer of want bytes and returns what the kernel grants.
func UDPBuffer(want int) (got int, err error) {
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

// OpenFiles returns how many files this process may open.
func OpenFiles() (uint64, error) {
	var s unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &s)
	return uint64(s.Cur), err
}

// WholeDatagrams forbids, or allows, that what c sends is cut into pieces.
func WholeDatagrams(c *net.UDPConn, whole bool) error {
	if runtime.GOOS != "linux" {
		return errors.ErrUnsupported
	}
	const discover4, discover6, never, probe = 10, 23, 0, 3 // IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, IP_PMTUDISC_…
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	value := never
	if whole {
		value = probe
	}
	// With probe the kernel sets the bit that forbids fragments and ignores what it believes of the path's MTU, so that
	// a large datagram is sent rather than refused here.
	level, option := unix.IPPROTO_IP, discover4
	if c.RemoteAddr().(*net.UDPAddr).IP.To4() == nil {
		level, option = unix.IPPROTO_IPV6, discover6
	}
	fault := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) })
	if fault != nil {
		return fault
	}
	return err
}
