package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestBenchComm: the measured link has the simulated latency and rate.
func TestBenchComm(t *testing.T) {
	t.Parallel()
	text := must(t, "bench", "comm", "--peers", "2", "--transport", "memory", "--link", "latency=10ms,rate=80Mbit", "--megabytes", "1", "--turns", "1")
	pairs := regexp.MustCompile(`peer \d +peer \d +(\d+\.\d+)ms +(\d\.\d+|\d+\.\d) MB/s`).FindAllStringSubmatch(text, -1)
	if len(pairs) != 2 {
		t.Errorf("there must be two pairs, both ways:\n%s", text)
	}
	for _, p := range pairs { // the model bounds both on one side, a busy machine neither
		trip, err := strconv.ParseFloat(p[1], 64)
		rate, err2 := strconv.ParseFloat(p[2], 64)
		// A MiB takes 105 ms plus the round trip, of which half is subtracted as measured.
		if least := 104.9 + 20 - trip/2; err != nil || err2 != nil || trip < 20 || least > 1 && rate > 1.02*1048.6/least {
			t.Errorf("there must be a round trip of at least 20 ms and at most %.1f MB/s: %s", 1048.6/least, p[0])
		}
	}
	for _, row := range []string{"1.02 kB", "16.4 kB", "262 kB", "1.05 MB"} {
		if !strings.Contains(text, "\n"+row) {
			t.Errorf("no sum of %s:\n%s", row, text)
		}
	}
	if text := must(t, "bench", "comm", "--peers", "3", "--carrier", "tcp", "--megabytes", "1", "--turns", "1"); strings.Count(text, "MB/s")+strings.Count(text, "GB/s")+strings.Count(text, "kB/s") != 6+4 {
		t.Errorf("there must be six pairs and four sums:\n%s", text)
	}
	refuse(t, 2, []string{"peers must be 2 to 64 (got 1)"}, "bench", "comm", "--peers", "1")
	refuse(t, 2, []string{"pigeon"}, "bench", "comm", "--transport", "pigeon")
}
