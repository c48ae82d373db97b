package yamltext

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// bomb is a list whose aliases represent 9 to the power of depth entries.
func bomb(depth int) string {
	text := "encoder: [&a0 [b, b, b, b, b, b, b, b, b]"
	for k := 1; k < depth; k++ {
		text += fmt.Sprintf(", &a%d [%s]", k, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", k-1), 9), ", "))
	}
	return text + "]\n"
}

// TestRefuses: what would take memory or time out of proportion, or reach a terminal, is refused before it is parsed.
func TestRefuses(t *testing.T) {
	deep := bomb(10)
	if len(deep) > 600 {
		t.Fatalf("%d bytes of aliases, want some 561", len(deep))
	}
	for _, c := range []struct{ text, want string }{
		{deep, "[1:11] the text must not have anchors, aliases, tags or explicit keys (got &)"},
		{"lambdas: *a\n", "(got *)"},
		{"members:\n- <<: {name: a}\n", "(got <<)"},
		{"lambdas: !!seq [1]\n", "(got !!seq)"},
		{"? encoder\n: raw\n", "(got ?)"},
		{"lambdas: " + strings.Repeat("[", 1000), "lists must be nested at most 16 deep (got 17)"},
		{"lambdas:\n  " + strings.Repeat("- ", 1000) + "1", "nested at most 16 deep"},
		{"seed: 1\n# " + strings.Repeat("x", MaxLen), "the text must have at most 65536 bytes"},
		{"seed: 1\n# \x1b[2J\n", `line 2 must have printable characters only (got '\x1b')`},
		{"seed: 1\n\n# \u202e\n", `line 3 must have printable characters only (got '\u202e')`},
		{"# \u009b31m\n", "line 1 must have printable"},
		{"# \xff\n", "line 1 must be UTF-8 (got byte 0xff)"},
	} {
		if _, err := Pairs([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.want)
		}
	}
	for _, text := range []string{"", "\ufeffseed: 1\r\n", "# Zürich, 東京\nlambdas: [0.1,\n\t1]\n",
		"# " + strings.Repeat("x", MaxLen-3) + "\n",
		"members:\n" + strings.Repeat("- name: a\n  addresses: [/ip4/1.2.3.4/tcp/1, /ip4/1.2.3.4/tcp/2]\n", 900)} {
		if _, err := Pairs([]byte(text)); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// TestWork: no text takes memory out of proportion to its length, nor an error as long as the text. Formatting the
// excerpts of these took gigabytes, and seconds.
func TestWork(t *testing.T) {
	for i, unit := range []string{"]", "[],", "{},", "\"", "@", "`", "a: ", "b,", ",", "- ", "- -\n", ": ", "k: v\n",
		"a:\n", "x", "'", "[[[[[[[[[[[[[[]]]]]]]]]]]]]],"} {
		for j, begin := range []string{"", "a: ", "a: [", "{", "a: \"", "a: |\n "} {
			if (i+j)%2 != 0 { // each unit after three beginnings, each beginning before half the units
				continue
			}
			text := []byte(begin + strings.Repeat(unit, (MaxLen-len(begin))/len(unit)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Pairs(text)
			runtime.ReadMemStats(&after)
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 2000*MaxLen {
				t.Errorf("%q and %q again and again: %d MiB, must be at most %d", begin, unit, taken>>20,
					2000*MaxLen>>20)
			}
			if err != nil && len(err.Error()) > 3*maxExcerpt {
				t.Errorf("%q and %q again and again: an error of %d bytes", begin, unit, len(err.Error()))
			}
		}
	}
	if _, err := Pairs([]byte("seed: 1\nrounds: ]\n")); err == nil || !strings.Contains(err.Error(), "rounds: ]") {
		t.Errorf("a short excerpt must be shown (got %v)", err)
	}
}
