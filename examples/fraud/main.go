// Command fraud writes the raw files of the tutorial "a bank's fraud table" as a bank's systems export
// them: in Latin-1, with semicolons, decimal commas, dates, free text, repeated edges and a few rows
// at fault. Nobody in them exists.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/rng"
)

const (
	accounts  = 900
	transfers = 3600
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "directory to write")
	seed := flag.Uint64("seed", 1, "random seed")
	flag.Parse()
	if err := os.MkdirAll(*out, 0o755); err != nil {
		log.Fatal(err)
	}
	for name, text := range files(*seed) {
		if err := os.WriteFile(filepath.Join(*out, name), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// files returns the text of each file, in Latin-1.
func files(seed uint64) map[string]string {
	b := newBank(rng.New(seed).FoldString("bank"))
	return map[string]string{"accounts.csv": latin1(b.accounts()), "transfers.csv": latin1(b.transfers())}
}

// latin1 writes a text with a byte for each character, which must be below 256.
func latin1(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteByte(byte(r))
	}
	return b.String()
}

// bank samples its customers.
type bank struct {
	key   rng.Key
	fraud []bool
}

func newBank(key rng.Key) *bank {
	b := &bank{key: key, fraud: make([]bool, accounts)}
	for i := range b.fraud {
		b.fraud[i] = b.unit("fraud", i) < 0.15
	}
	return b
}

func (b *bank) unit(what string, i int) float64 { return b.key.FoldString(what).Float64(uint64(i)) }

func (b *bank) pick(what string, i int, list []string) string {
	return list[int(b.unit(what, i)*float64(len(list)))]
}

// day returns a date between two years, day first.
func (b *bank) day(what string, i, from, to int) string {
	first := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)
	days := time.Date(to, 1, 1, 0, 0, 0, 0, time.UTC).Sub(first).Hours() / 24
	return first.AddDate(0, 0, int(b.unit(what, i)*days)).Format("02.01.2006")
}

// money writes an amount with a decimal comma and points between thousands.
func money(v float64) string {
	text := fmt.Sprintf("%.2f", v)
	whole, cents, _ := strings.Cut(text, ".")
	if n := len(whole); n > 3 {
		whole = whole[:n-3] + "." + whole[n-3:]
	}
	return whole + "," + cents
}

var (
	names    = []string{"Jürgen", "Käthe", "Søren", "Zoë", "Anna", "Björn", "Inès", "Paul"}
	families = []string{"Müller", "Größe", "Weiß", "Schön", "Åberg", "Núñez", "Koch", "Lefèvre"}
	branches = []string{"Köln", "Düsseldorf", "Münster", "Lübeck", "Würzburg", "Nürnberg", "Görlitz"}
	regions  = []string{"north", "south", "west"}
	usual    = []string{"Miete für die Wohnung", "Gehalt März", "Stromabschlag", "Rechnung für Möbel",
		"Geschenk zum Geburtstag", "Beitrag für den Verein"}
	odd = []string{"dringend Gebühr für Freigabe", "Gutschein Karte", "Erbschaft Vorschuss",
		"Rückzahlung Krypto Gewinn"}
)

func (b *bank) accounts() string {
	var t strings.Builder
	t.WriteString("account;holder;born;opened;balance;branch;region;note;chargebacks;fraud\n")
	for i, fraud := range b.fraud {
		from, notes, strange, back, label := 2004, usual, 0.08, 0, "no"
		if fraud {
			from, strange, back, label = 2014, 0.45, 1+int(b.unit("back", i)*3), "yes"
		}
		if b.unit("odd", i) < strange {
			notes = odd
		}
		balance := money(100 + 9000*b.unit("balance", i)*b.unit("poor", i))
		if b.unit("unknown", i) < 0.05 {
			balance = ""
		}
		if i == 17 {
			balance = "n. v." // a row at fault
		}
		holder := fmt.Sprintf("%s %s-%d", b.pick("name", i, names), b.pick("family", i, families), i)
		note := b.pick("note", i, notes) + " " + b.pick("second", i, usual)
		fmt.Fprintf(&t, "K%04d;%s;%s;%s;%s;%s;%s;%s;%d;%s\n", i, holder, b.day("born", i, 1940, 2004),
			b.day("opened", i, from, 2024), balance, b.pick("branch", i, branches), b.pick("region", i, regions), note,
			back, label)
	}
	t.WriteString("K0003;twice;01.01.1980;01.01.2020;1,00;Köln;north;;0;no\n") // another
	return t.String()
}

func (b *bank) transfers() string {
	var t strings.Builder
	t.WriteString("source;target;amount;day\n")
	var rings []int
	for i, fraud := range b.fraud {
		if fraud {
			rings = append(rings, i)
		}
	}
	for k := range transfers {
		from := int(b.unit("from", k) * accounts)
		to := int(b.unit("to", k) * accounts)
		if b.fraud[from] && b.unit("ring", k) < 0.6 { // money moves within rings
			to = rings[int(b.unit("member", k)*float64(len(rings)))]
		}
		line := fmt.Sprintf("K%04d;K%04d;%s;%s\n", from, to, money(5+2000*b.unit("amount", k)*b.unit("small", k)),
			b.day("day", k, 2023, 2024))
		t.WriteString(line)
		if b.unit("again", k) < 0.1 { // a standing order
			t.WriteString(line)
		}
	}
	t.WriteString("K0001;K9999;10,00;01.02.2023\nK0002;K0004;;01.02.2023\n") // an account that is gone, no amount
	return t.String()
}
