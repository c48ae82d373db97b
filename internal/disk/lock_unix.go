//go:build unix

package disk

import (
	"os"
	"syscall"
)

// Lock takes the lock of a file, which it makes, until release or the end of the process. If another process has it,
// Lock waits or returns ErrLocked.
func Lock(path string, wait bool) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	if err = flock(f, how); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		// A process that is being started at this moment has a copy of f until it runs its program: to close f is not
		// enough.
		syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		f.Close()
	}, nil
}

func flock(f *os.File, how int) (err error) {
	for {
		if err = syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			break
		}
	}
	if err == syscall.EWOULDBLOCK {
		err = ErrLocked
	}
	return err
}

// lockFile locks f until it is closed.
func lockFile(f *os.File) error { return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) }

// holdTemporary shows RemoveTemporary that a file is written, until release or the end of the process.
func holdTemporary(path string) (release func()) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return func() {}
	}
	lockFile(f)
	return func() { f.Close() }
}
