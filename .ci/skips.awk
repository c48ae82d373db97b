# Reads the output of go test -v and prints what it would print without -v, with the log of each test that fails, and at
# the end every test that was skipped and why.
function name(s) { sub(/^ *(=== [A-Z]+ +|--- [A-Z]+: )/, "", s); sub(/ \([0-9.]+s\)$/, "", s); return s }
/^=== / { now = name($0); next }
/^ *--- PASS: / { delete log_of[name($0)]; next }
/^ *--- SKIP: / { now = name($0); waiting[now] = log_of[now]; delete log_of[now]; next }
/^ *--- FAIL: / { now = name($0); print; printf "%s", log_of[now]; delete log_of[now]; failed = 1; next }
/^(PASS|FAIL)$/ { now = ""; next }
/^(ok  |FAIL|\?   )\t/ {
	for (test in log_of) { if (failed) printf "%s", log_of[test]; delete log_of[test] }
	for (test in waiting) {
		why = waiting[test]
		sub(/^[^:]*:[0-9]+: (SKIPPED[^:]*: )?/, "", why); gsub(/ *\n */, " ", why)
		skipped[++n] = sprintf("SKIPPED %s %s: %s", $2, test, why)
		delete waiting[test]
	}
	failed = 0; now = ""
	print; next
}
now != "" && /^    / { line = $0; sub(/^ +/, "", line); log_of[now] = log_of[now] line "\n"; next }
{ print }
END {
	for (i = 1; i <= n; i++) print skipped[i] | "sort"
	close("sort")
	if (n > 0) printf "%d tests were skipped\n", n
}
