package kernels

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSetsOfProcessor checks that every set that Linux lists for the processor is usable, so that tests do not silently
// skip it.
func TestSetsOfProcessor(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	_, flags, found := strings.Cut(string(info), "\nflags")
	if !found {
		t.Fatal("/proc/cpuinfo has no flags")
	}
	flags, _, _ = strings.Cut(flags, "\n")
	has := strings.Fields(flags)
	want := []string{"generic"}
	for _, set := range []struct {
		name  string
		needs []string
	}{
		{"avx2", []string{"avx2", "fma"}},
		{"avx512", []string{"avx512f", "avx512bw", "avx512dq", "avx512vl"}},
	} {
		if !slices.ContainsFunc(set.needs, func(flag string) bool { return !slices.Contains(has, flag) }) {
			want = append(want, set.name)
		}
	}
	got := Usable()
	if best := got[len(got)-1]; os.Getenv(env) == "" && Name() != best {
		t.Errorf("in use is %s, must be %s", Name(), best)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("usable are %v, must be %v", got, want)
	}
}

// TestTilesOfProcessor checks that AMX is used if the processor has it, so that tests of GemmNNBF16 do not silently
// skip it.
func TestTilesOfProcessor(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	has := strings.Fields(string(info))
	for _, flag := range []string{"amx_tile", "amx_bf16", "avx512_bf16"} {
		if !slices.Contains(has, flag) {
			t.Skipf("AMX IS NOT TESTED: the processor has no %s", flag)
		}
	}
	if !tilesAllowed() {
		t.Error("Linux does not allow AMX, which the processor has")
	}
}
