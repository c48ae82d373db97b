package table

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Moment is a cell's point in time.
type Moment struct {
	at    time.Time // UTC
	Clock bool      // not midnight
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// yearDays is the mean length of a year of the Gregorian calendar.
const yearDays = 365.2425

// Years returns the years since 2000.
func (m Moment) Years() float64 {
	return (float64(m.at.Unix()-epoch.Unix()) + float64(m.at.Nanosecond())/1e9) / 86400 / yearDays
}

// cycles returns the moment's positions in the year, the week and the day, each in [0, 1).
func (m Moment) cycles() [3]float64 {
	seconds := float64(m.at.Hour()*3600+m.at.Minute()*60+m.at.Second()) / 86400
	week := (float64((m.at.Weekday()+6)%7) + seconds) / 7 // from Monday
	_, year := math.Modf((float64(m.at.YearDay()-1) + seconds) / yearDays)
	return [3]float64{year, week, seconds}
}

// ParseDate reads a date, year first or last (2024-03-31, 2024/03/31, 31.03.2024, 31/03/2024, monthFirst: 03/31/2024)
// or with an English month (31 Mar 2024, 31-Mar-2024, March 31, 2024). An hour (12:30, 12:30:15.5, 1:30 PM) and its
// offset (Z, +01:00; default 0) may follow. Eight digits are a date, too: 20240331. Years are 1 to 9999, in four
// digits.
func ParseDate(cell string, monthFirst bool) (m Moment, ok bool) {
	cell = strings.TrimSpace(cell)
	if len(cell) < 8 || len(cell) > 40 {
		return m, false
	}
	fields, rest := dateFields(cell)
	if fields[0] == "" {
		return m, false
	}
	year, month, day, ok := inOrder(fields, monthFirst)
	if !ok {
		return m, false
	}
	seconds, nanos, ok := parseClock(rest)
	if !ok || month < 1 || month > 12 || year < 1 {
		return m, false
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Day() != day || date.Month() != time.Month(month) {
		return m, false
	}
	m.at = date.Add(time.Duration(seconds)*time.Second + time.Duration(nanos))
	m.Clock = !m.at.Equal(m.at.Truncate(24 * time.Hour))
	return m, true
}

// dateFields returns the three parts of the date at the start of a cell, and the rest.
func dateFields(cell string) (fields [3]string, rest string) {
	if digits(cell) == 8 && (len(cell) == 8 || cell[8] == 'T' || cell[8] == ' ') {
		return [3]string{cell[:4], cell[4:6], cell[6:8]}, cell[8:]
	}
	if name, after, ok := strings.Cut(cell, ", "); ok && len(name) >= 3 && weekday(name) {
		cell = after
	}
	sep := byte(0)
	for k := range fields {
		n := digits(cell)
		if n == 0 {
			n = letters(cell)
		}
		if n == 0 || n > 9 {
			return [3]string{}, ""
		}
		fields[k], cell = cell[:n], cell[n:]
		if k == 2 {
			break
		}
		if strings.HasPrefix(cell, ", ") && (sep == ' ' || sep == 0) {
			sep, cell = ' ', cell[2:]
			continue
		}
		if cell == "" || !strings.ContainsRune("-/. ", rune(cell[0])) || sep != 0 && cell[0] != sep {
			return [3]string{}, ""
		}
		sep, cell = cell[0], cell[1:]
	}
	return fields, cell
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func letters(s string) int {
	n := 0
	for n < len(s) && (s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z') {
		n++
	}
	return n
}

// inOrder decides which part is the year, the month and the day.
func inOrder(f [3]string, monthFirst bool) (year, month, day int, ok bool) {
	named := func(s string) (int, bool) {
		for k := time.January; k <= time.December; k++ {
			if len(s) >= 3 && strings.HasPrefix(strings.ToLower(k.String()), strings.ToLower(s)) {
				return int(k), true
			}
		}
		return 0, false
	}
	number := func(s string, most int) (int, bool) {
		v, err := strconv.Atoi(s)
		return v, err == nil && len(s) <= most && v > 0
	}
	place := [3]int{2, 1, 0} // indices of year, month, day
	_, first := named(f[0])
	switch {
	case len(f[0]) == 4 && !first:
		place = [3]int{0, 1, 2}
	case first || monthFirst && digits(f[1]) > 0:
		place = [3]int{2, 0, 1}
	}
	if len(f[place[0]]) != 4 {
		return 0, 0, 0, false
	}
	var fine [3]bool
	year, fine[0] = number(f[place[0]], 4)
	if month, fine[1] = named(f[place[1]]); !fine[1] {
		month, fine[1] = number(f[place[1]], 2)
	}
	day, fine[2] = number(f[place[2]], 2)
	return year, month, day, fine[0] && fine[1] && fine[2]
}

func weekday(name string) bool {
	for k := time.Sunday; k <= time.Saturday; k++ {
		if strings.HasPrefix(strings.ToLower(k.String()), strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// parseClock reads what follows a date, as seconds and nanoseconds since its midnight in UTC.
func parseClock(s string) (seconds, nanos int, ok bool) {
	if s == "" {
		return 0, 0, true
	}
	if s[0] != 'T' && s[0] != ' ' && s[0] != ',' {
		return 0, 0, false
	}
	s = strings.TrimSpace(strings.ToUpper(s[1:]))
	s = strings.Replace(s, "UTC", "Z", 1)
	s = strings.Replace(s, "GMT", "Z", 1)
	for _, layout := range []string{"15:04:05", "15:04", "3:04:05 PM", "3:04 PM", "3:04PM"} {
		for _, zone := range []string{"", "Z07:00", " Z07:00", "Z0700", " Z0700", "Z07"} {
			if at, err := time.Parse(layout+zone, s); err == nil {
				_, offset := at.Zone()
				return at.Hour()*3600 + at.Minute()*60 + at.Second() - offset, at.Nanosecond(), true
			}
		}
	}
	return 0, 0, false
}
