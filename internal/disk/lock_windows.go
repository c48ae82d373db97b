package disk

import (
	"os"

	"golang.org/x/sys/windows"
)

// Lock takes the lock of a file, which it makes, until release or the end of the process. If another process has it,
// Lock waits or returns ErrLocked.
func Lock(path string, wait bool) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK)
	if !wait {
		how |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
	if err == windows.ERROR_LOCK_VIOLATION {
		err = ErrLocked
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// lockFile does nothing: an open file cannot be removed.
func lockFile(*os.File) error { return nil }

func holdTemporary(string) (release func()) { return func() {} }
