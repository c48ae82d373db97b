package table

import "testing"

// TestKey: texts of a group are spellings of one value, and none of them is one of another group's.
func TestKey(t *testing.T) {
	groups := [][]string{
		{"well", "Well", "WELL", " well", "well\t", "well\u00a0", "\ufeffwell", "we\u00adll",
			"ｗｅｌｌ", `"well"`, "'Well'", "„well“"},
		{"st mary", "St  Mary", "st\u00a0mary", "st\nmary", "St\u2009Mary"},
		{"Å", "A\u030a", "å", "\u212b"},
		{"Straße", "STRASSE", "strasse"},
		{"1", "1.0", "01", "1,0", "1.", "+1", "001.000", "1.000000000000000000e+00", "1e+00", "１", `"1"`, " 1 "},
		{"100000", "1e+05", "1E+05", "100000.0"},
		{"0", "-0", "0.0", "00"}, {"-1", "-1.0", "-01"}, {"0.5", ".5", "0,5", "0.50", "5e-01"},
		{"1582218195625938944", "1582218195625938944.0"}, {"1582218195625938945"}, {"1.582218195625939e+18"},
		{"1e5"}, {"1000"}, {"1,000"}, {"e5"}, {"0x10"}, {"10"}, {"1-2"}, {"1.2.3"},
		{"", " ", "\u00a0"}, {"-"}, {"."}, {"5\""}, {"inf"}, {"nan"}, {"p007"}, {"p7"},
	}
	of := map[string]int{}
	for k, group := range groups {
		for _, text := range group {
			key := Key(text)
			if other, ok := of[key]; ok && other != k {
				t.Errorf("%q has the key %q, as %q has", text, key, groups[other][0])
			}
			if of[key] = k; key != Key(group[0]) {
				t.Errorf("%q has the key %q, must be %q, as %q has", text, key, Key(group[0]), group[0])
			}
			if again := Key(key); again != key {
				t.Errorf("the key of %q has the key %q, must be %q", text, again, key)
			}
			if plain := tidyText(text); plain != tidyText(plain) || Key(plain) != key {
				t.Errorf("%q without what nobody sees is %q, then %q", text, plain, tidyText(plain))
			}
		}
	}
	for text, want := range map[string]string{"7.0": "7", "-7.000": "-7", "person/7.0": "person/7", "7.50": "7.50",
		"v1.0": "v1.0", "7": "7", "7.": "7.", ".0": ".0", "70": "70", "1.1.0": "1.1.0"} {
		if got := Whole(text); got != want {
			t.Errorf("%q as a whole number is %q, must be %q", text, got, want)
		}
	}
}
