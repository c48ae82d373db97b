package kernels

import "golang.org/x/sys/unix"

// hasBF16 asks the kernel's vector of the process for FEAT_BF16, which x/sys/cpu does not know.
func hasBF16() bool {
	const hwcap2, bf16 = 26, 1 << 14 // AT_HWCAP2, HWCAP2_BF16
	vector, err := unix.Auxv()
	for _, entry := range vector {
		if err == nil && entry[0] == hwcap2 {
			return entry[1]&bf16 != 0
		}
	}
	return false
}
