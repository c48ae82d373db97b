package kernels

import "syscall"

// adviseLarge asks for the large pages that lie wholly in so many bytes from p, so that no more memory is in use than
// was asked for. What has been touched before is changed by the system in its own time, if ever; where it gives none,
// nothing is lost.
func adviseLarge(p, bytes uintptr) {
	from := (p + largePage - 1) &^ (largePage - 1)
	to := (p + bytes) &^ (largePage - 1)
	if from >= to {
		return
	}
	syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_HUGEPAGE)
}
