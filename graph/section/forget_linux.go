package section

import "syscall"

// forget takes the pages of a mapped file, to which nobody wrote, out of this process. After an error they stay.
func forget(pages []byte) { _ = syscall.Madvise(pages, syscall.MADV_DONTNEED) }
