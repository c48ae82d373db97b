package table

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// noWidth are invisible characters.
const noWidth = "\u00ad\u200b\u200e\u200f\u2060\ufeff"

// quotes may enclose a text.
const quotes = "\"'`´“”„‘’‚«»"

// tidyText removes invisible differences from a text: it returns Unicode form NFC without surrounding blanks and
// characters of no width, and with one blank for any blanks within it.
func tidyText(text string) string {
	last := byte(' ')
	for k := 0; ; k++ {
		if k == len(text) && (last != ' ' || k == 0) {
			return text
		}
		if k == len(text) || text[k] < ' ' || text[k] >= 0x7f || text[k] == ' ' && last == ' ' {
			break
		}
		last = text[k]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case strings.ContainsRune(noWidth, r):
			return -1
		}
		return r
	}, norm.NFC.String(text))
	return strings.Join(strings.Fields(text), " ")
}

// Key returns a text that all spellings of one value share. It ignores case, width of letters and enclosing quotes of
// texts. For numbers it ignores leading zeros, trailing zeros after the point, a comma as point, and an exponent.
func Key(text string) string {
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case text == "", strings.Trim(text, digits) == "" && text[0] != '0':
		return text
	case strings.IndexByte(letters, text[0]) >= 0 && strings.Trim(text, letters+digits+"_-.:/") == "":
		return strings.ToLower(text)
	}
	text = strings.ToLower(strings.ToUpper(tidyText(norm.NFKC.String(text)))) // upper case first: it has one sigma
	text = strings.ReplaceAll(text, "ß", "ss")
	if bare := strings.Trim(text, quotes); !strings.HasPrefix(text, bare) && !strings.HasSuffix(text, bare) {
		text = tidyText(bare)
	}
	mantissa, exponent, raised := strings.Cut(text, "e")
	if raised && !strings.ContainsAny(text, ".,+-") {
		return text // may be hexadecimal
	}
	sign := ""
	if mantissa = strings.TrimPrefix(mantissa, "+"); strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, rest, comma := strings.Cut(mantissa, ",")
	if !comma {
		whole, rest, _ = strings.Cut(mantissa, ".")
	}
	if whole+rest == "" || strings.Trim(whole+rest, digits) != "" || comma && len(rest) == 3 {
		return text // 1,000 may be a thousand
	}
	if raised {
		v, err := strconv.ParseFloat(whole+"."+rest+"e"+exponent, 64)
		if err != nil {
			return text
		}
		whole, rest, _ = strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
	}
	whole = cmp.Or(strings.TrimLeft(whole, "0"), "0")
	if rest = strings.TrimRight(rest, "0"); rest != "" {
		whole += "." + rest
	}
	if whole == "0" {
		return whole
	}
	return sign + whole
}

// Whole returns 7 for 7.0, as programs write whole numbers of a column with gaps, also after the type of a node. It
// returns any other text unchanged.
func Whole(name string) string {
	whole := strings.TrimRight(name, "0")
	if !strings.HasSuffix(whole, ".") || len(whole) == len(name) {
		return name
	}
	whole = whole[:len(whole)-1]
	digits := strings.TrimPrefix(whole[strings.LastIndexByte(whole, '/')+1:], "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return name
	}
	return whole
}

// Spellings are texts, indexed by themselves and by their keys.
type Spellings map[string]string

// NewSpellings returns the spellings of texts.
func NewSpellings(texts []string) Spellings {
	s := make(Spellings, len(texts))
	for _, text := range texts {
		if key := Key(text); s[key] == "" {
			s[key] = text
		}
	}
	for _, text := range texts {
		s[text] = text
	}
	return s
}

// Find returns the text of s that has the spelling text, itself before others, or text if there is none.
func (s Spellings) Find(text string) string {
	if _, ok := s[text]; ok {
		return s[text]
	}
	return cmp.Or(s[Key(text)], text)
}

// Must returns, as a clause, how to write a text that is another spelling of one of s; else "".
func (s Spellings) Must(text string) string {
	other := s.Find(text)
	if other == text {
		return ""
	}
	differ := "letters"
	switch a, b := tidyText(text), tidyText(other); {
	case strings.EqualFold(a, b):
		differ = "case"
	case strings.Trim(a+b, "0123456789+-") == "":
		differ = "zeros"
	case strings.Trim(a+b, "0123456789+-.,eE") == "":
		differ = "format of numbers"
	case strings.Trim(a, quotes) != a, strings.Trim(b, quotes) != b:
		differ = "quotes"
	}
	return fmt.Sprintf("written %.40q, with the same %s", other, differ)
}

// Unite leaves one spelling of each value in count, the most frequent one or one of chosen, and returns all spellings
// of the values that had several.
func Unite(count map[string]int, chosen ...string) (several []string) {
	groups := map[string][]string{}
	for text := range count {
		groups[Key(text)] = append(groups[Key(text)], text)
	}
	for key, group := range groups {
		if len(group) == 1 && len(chosen) == 0 {
			continue
		}
		slices.SortFunc(group, func(a, b string) int {
			return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
		})
		is := group[0]
		if k := slices.IndexFunc(chosen, func(c string) bool { return Key(c) == key }); k >= 0 {
			is = chosen[k]
		}
		text := fmt.Sprintf("%.40q (%d)", is, count[is])
		before := text
		for _, other := range group {
			if n := count[other]; other != is && !slices.Contains(chosen, other) {
				text += fmt.Sprintf(", %.40q (%d)", other, n)
				delete(count, other)
				count[is] += n
			}
		}
		if text != before {
			several = append(several, text)
		}
	}
	slices.Sort(several)
	return several
}
