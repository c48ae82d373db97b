package section

import "syscall"

// forget lets the system reclaim the pages of a file that is mapped for reading. If it refuses, they stay.
func forget(pages []byte) { _ = syscall.Madvise(pages, syscall.MADV_DONTNEED) }
