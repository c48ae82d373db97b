package table

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func opened(t *testing.T) *Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("a\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab, err := Open(path, Format{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tab.Close() })
	return tab
}

func TestParseDate(t *testing.T) {
	for cell, want := range map[string]string{
		"2024-03-31": "2024-03-31 00:00:00", "2024/3/1": "2024-03-01 00:00:00", "31.03.2024": "2024-03-31 00:00:00",
		"1/2/2024": "2024-02-01 00:00:00", "20240331": "2024-03-31 00:00:00", "31 Mar 2024": "2024-03-31 00:00:00",
		"31-Mar-2024": "2024-03-31 00:00:00", "March 31, 2024": "2024-03-31 00:00:00",
		"Sun, 31 Mar 2024": "2024-03-31 00:00:00", "2024-03-31T12:30:15Z": "2024-03-31 12:30:15",
		"2024-03-31 12:30": "2024-03-31 12:30:00", "2024-03-31 00:30:00+01:00": "2024-03-30 23:30:00",
		"31.03.2024 1:05 PM": "2024-03-31 13:05:00", " 2024-02-29 ": "2024-02-29 00:00:00",
		"Sun, 31 Mar 2024 10:00:00 GMT": "2024-03-31 10:00:00", "2024-03-31T12:30:15.25+0000": "2024-03-31 12:30:15.25",
	} {
		d, ok := ParseDate(cell, false)
		if got := d.at.Format("2006-01-02 15:04:05.999"); !ok || got != want {
			t.Errorf("%q is %s, %v, must be %s", cell, got, ok, want)
		}
	}
	if d, ok := ParseDate("1/2/2024", true); !ok || d.at.Format("2006-01-02") != "2024-01-02" {
		t.Errorf("month first: %v, %v", d, ok)
	}
	for _, cell := range []string{"", "2024", "2023-02-29", "32.01.2024", "01.13.2024", "2024-13-01", "12.5.24",
		"1-2-3-4", "2024-01-01x", "2024-01/01", "Marx 1, 2024", "2024-01-01 25:00", "192.168.1.1", "1234567",
		"00.00.0000", "0000-01-01", "2024-Ma-01"} {
		if d, ok := ParseDate(cell, false); ok {
			t.Errorf("%q is the date %v", cell, d.at)
		}
	}
}

func stats(tab *Table, asked *Column, cells ...string) *Stats {
	s := &Stats{Asked: asked}
	for k, c := range cells {
		s.Add(tab, c, k+2)
	}
	if again := s.Again(); again != nil {
		s = again
		for k, c := range cells {
			s.Add(tab, c, k+2)
		}
	}
	return s
}

func repeated(n int, f func(k int) string) (out []string) {
	for k := range n {
		out = append(out, f(k))
	}
	return out
}

func TestKinds(t *testing.T) {
	tab := opened(t)
	for name, c := range map[string]struct {
		cells []string
		want  ColumnKind
		why   string
	}{
		"numbers": {[]string{"1", "2", ""}, Numeric, ""},
		"dates":   {[]string{"2024-03-31", "", "2024-04-01"}, Date, ""},
		"a word in": {append(repeated(30, func(k int) string { return fmt.Sprintf("2024-03-%02d", k+1) }), "soon"),
			Date, ""},
		"few values": {repeated(200, func(k int) string { return fmt.Sprint("v", k%50) }), Categorical, ""},
		"51 values": {repeated(510, func(k int) string { return fmt.Sprint("v", k%51) }), Ignored,
			"51 categories, more than 50"},
		"names": {append(repeated(60, func(k int) string { return fmt.Sprint("v", k) }), "v0", "v1"), Ignored,
			"58 of 62 cells have a text that no other has"},
		"numbers and texts": {repeated(60, func(k int) string {
			return map[bool]string{true: "2", false: "x"}[k%2 == 0]
		}), Categorical, ""},
		"too large":               {[]string{"1", "inf", "-1e300", "2"}, Numeric, ""},
		"texts that are infinite": {[]string{"inf", "low", "inf", "low"}, Categorical, ""},
		"infinite alone":          {[]string{"inf", "nan", "inf"}, Categorical, ""},
		"names of digits": {repeated(9, func(k int) string { return strings.Repeat(fmt.Sprint(k+1), 400) }),
			Ignored, "9 of 9 cells have a text that no other has"},
		"empty": {[]string{"", "NA"}, Ignored, "no cell has a value"},
	} {
		got, why := stats(tab, nil, c.cells...).Column("a")
		if got.Kind != c.want || why != c.why {
			t.Errorf("%s: %s (%s), must be %s (%s)", name, got.Kind, why, c.want, c.why)
		}
	}
	// Numbers that come before the first text are categories, too.
	if got, _ := stats(tab, nil, "1", "", "1", "x", "x", "2", "2").Column("a"); !reflect.DeepEqual(got.Values,
		[]string{"", "1", "2", "x"}) {
		t.Errorf("values %q", got.Values)
	}
	if got, _ := stats(tab, &Column{Kind: Categorical},
		repeated(400, func(k int) string { return fmt.Sprint("v", k) })...).Column("a"); got.Kind != Categorical ||
		len(got.Values) != maxValues {
		t.Errorf("asked for: %s of %d values", got.Kind, len(got.Values))
	}
}

// The order of day and month is the one that reads all dates; year-first ones say nothing of it.
func TestDateOrder(t *testing.T) {
	tab := opened(t)
	for _, c := range []struct {
		cells      []string
		monthFirst bool
		ambiguous  bool
	}{
		{[]string{"01/02/2024", "03/14/2024", "2024-01-01"}, true, false},
		{[]string{"01/02/2024", "14/03/2024"}, false, false}, {[]string{"01/02/2024", "03/04/2024"}, false, true},
		{[]string{"2024-01-02", "2024-05-06"}, false, false},
	} {
		s := stats(tab, nil, c.cells...)
		got, _ := s.Column("a")
		day, month := s.Orders()
		if got.Kind != Date || got.MonthFirst != c.monthFirst || (day && month && s.Ambiguous()) != c.ambiguous {
			t.Errorf("%q: %+v, ambiguous %v", c.cells, got, day && month && s.Ambiguous())
		}
	}
}

func encoded(t *testing.T, tab *Table, c Column, cell string) []float64 {
	t.Helper()
	out, last := make([]float64, c.Features()), -1
	if _, err := c.Encode(tab, cell, func(at int, v float64) {
		if at <= last {
			t.Errorf("place %d after %d", at, last)
		}
		out[at], last = v, at
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func near(a, b []float64) bool {
	for k := range a {
		if math.Abs(a[k]-b[k]) > 1e-9 {
			return false
		}
	}
	return len(a) == len(b)
}

func TestEncodeDates(t *testing.T) {
	tab := opened(t)
	cells := []string{"2000-01-01", "2001-12-31 06:00", ""}
	c, _ := stats(tab, nil, cells...).Column("a")
	if !c.Clock || !c.Missing || c.Features() != 8 || c.Valid() != nil {
		t.Fatalf("%+v", c)
	}
	// 2000-01-01 is a Saturday: 5 of 7 days after Monday. The two dates are one deviation from their mean.
	week := 2 * math.Pi * 5 / 7
	if got := encoded(t, tab, c, "2000-01-01"); !near(got,
		[]float64{-1, 0, 1, math.Sin(week), math.Cos(week), 0, 1, 0}) {
		t.Errorf("%v", got)
	}
	if got := encoded(t, tab, c, "31.12.2001 06:00"); math.Abs(got[0]-1) > 1e-9 || math.Abs(got[5]-1) > 1e-9 ||
		math.Abs(got[1]) > 0.02 {
		t.Errorf("%v", got)
	}
	if got := encoded(t, tab, c, " "); !near(got, []float64{0, 0, 0, 0, 0, 0, 0, 1}) {
		t.Errorf("missing: %v", got)
	}
	if _, err := c.Encode(tab, "soon", func(int, float64) {}); err == nil ||
		!strings.Contains(err.Error(), `"soon" is not a date`) {
		t.Errorf("%v", err)
	}
	age, _ := stats(tab, &Column{Kind: Age, Until: "2020-01-01"}, "1980-01-01", "2000-01-01").Column("born")
	if math.Abs(age.Mean-30) > 0.01 || math.Abs(age.Std-10) > 0.01 || age.Features() != 1 {
		t.Errorf("%+v", age)
	}
	if got := encoded(t, tab, age, "1980-01-01"); !near(got, []float64{1}) {
		t.Errorf("the older one is %v", got)
	}
}

// The hash of words is what the documentation says it is, so that other programs can repeat it.
func TestEncodeText(t *testing.T) {
	tab := opened(t)
	c := Column{Name: "a", Kind: Text, Width: 16, Seed: 1}
	fnv := func(word string) uint64 {
		h := uint64(14695981039346656037)
		for _, b := range append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, word...) {
			h = (h ^ uint64(b)) * 1099511628211
		}
		return h
	}
	want := make([]float64, 16)
	for word, n := range map[string]float64{"über": 2, "fällig": 1, "2024": 1} {
		h := fnv(word)
		if h>>63 == 1 {
			n = -n
		}
		want[h%16] += n
	}
	norm := 0.0
	for _, v := range want {
		norm += v * v
	}
	for k := range want {
		want[k] /= math.Sqrt(norm)
	}
	for _, cell := range []string{"Über, über fällig (2024)!", "u\u0308ber U\u0308BER fa\u0308llig 2024"} {
		if got := encoded(t, tab, c, cell); !near(got, want) {
			t.Errorf("%q: %v, must be %v", cell, got, want)
		}
	}
	if got := encoded(t, tab, c, " .,; "); !near(got, make([]float64, 16)) {
		t.Errorf("no word: %v", got)
	}
	other := c
	other.Seed = 2
	if reflect.DeepEqual(encoded(t, tab, c, "some words of a text"), encoded(t, tab, other, "some words of a text")) {
		t.Error("another seed gives the same columns")
	}
}

func TestValid(t *testing.T) {
	for _, c := range []Column{{Kind: "x"}, {Kind: Text}, {Kind: Text, Width: MaxWidth + 1}, {Kind: Date},
		{Kind: Age, Std: 1, Until: "soon"}, {Kind: Numeric, Std: math.Inf(1)},
		{Kind: Categorical, Values: []string{"b", "a"}}} {
		if c.Valid() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func FuzzParseDate(f *testing.F) {
	for _, cell := range []string{"2024-03-31T12:30:15Z", "31.03.2024", "March 31, 2024",
		"Sun, 31 Mar 2024 10:00:00 GMT"} {
		f.Add(cell, true)
	}
	f.Fuzz(func(t *testing.T, cell string, monthFirst bool) {
		if d, ok := ParseDate(cell, monthFirst); ok && (math.IsNaN(d.Years()) || math.Abs(d.Years()) > 8001) {
			t.Errorf("%q is %v years after 2000", cell, d.Years())
		}
	})
}
