package kernels

import "syscall"

// adviseLarge requests large pages for those that are completely within `bytes` bytes from p, so that no more memory is
// used than was requested. The system may later move memory that was used before. If it gives no large pages, nothing
// is lost.
func adviseLarge(p, bytes uintptr) {
	from := (p + largePage - 1) &^ (largePage - 1)
	to := (p + bytes) &^ (largePage - 1)
	if from >= to {
		return
	}
	syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_HUGEPAGE)
}
