// Command prescriptions writes the tables of the tutorial "new prescriptions": patients, drugs and doctors of three
// practices, who takes what and who treats whom. Nobody in them exists.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle/rng"
)

const (
	patients = 300
	drugs    = 40
	doctors  = 15
	ailments = 5 // of a patient, and what a drug is for: in no table
)

var practices = []string{"hill", "port", "mill"}

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "directory to write")
	seed := flag.Uint64("seed", 1, "random seed")
	flag.Parse()
	if err := os.MkdirAll(*out, 0o755); err != nil {
		log.Fatal(err)
	}
	for name, text := range tables(rng.New(*seed).FoldString("prescriptions")) {
		if err := os.WriteFile(filepath.Join(*out, name), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// tables returns the text of each table. A patient has an ailment, takes two to six drugs, most of them for it, and is
// treated by a doctor of the practice, who sees one or two ailments.
func tables(key rng.Key) map[string]string {
	t := map[string]*strings.Builder{}
	for name, head := range map[string]string{"patients.csv": "id,age,pulse,practice", "drugs.csv": "id,form,dose",
		"doctors.csv": "id,years,practice", "takes.csv": "patient,drug", "treats.csv": "doctor,patient"} {
		t[name] = new(strings.Builder)
		fmt.Fprintln(t[name], head)
	}
	unit := func(what string, i, k int) float64 { return key.FoldString(what).Fold(uint64(i)).Float64(uint64(k)) }
	pick := func(what string, i, k, n int) int { return int(unit(what, i, k) * float64(n)) }
	for d := range drugs {
		fmt.Fprintf(t["drugs.csv"], "d%02d,%s,%d\n", d, []string{"tablet", "drops", "patch"}[pick("form", d, 0, 3)],
			10*(1+d%ailments)+pick("dose", d, 0, 20))
	}
	for d := range doctors {
		fmt.Fprintf(t["doctors.csv"], "Dr%02d,%d,%s\n", d, 2+pick("years", d, 0, 30), practices[d%len(practices)])
	}
	for p := range patients {
		ailment, practice := pick("ailment", p, 0, ailments), pick("practice", p, 0, len(practices))
		fmt.Fprintf(t["patients.csv"], "p%03d,%d,%d,%s\n", p, 20+8*ailment+pick("age", p, 0, 30),
			60+pick("pulse", p, 0, 40), practices[practice])
		fmt.Fprintf(t["treats.csv"], "Dr%02d,p%03d\n", practice+len(practices)*ailment, p)
		taken := map[int]bool{}
		for k := range 2 + pick("many", p, 0, 5) {
			d := pick("any", p, k, drugs)
			if unit("fits", p, k) < 0.85 {
				d = d/ailments*ailments + ailment
			}
			if !taken[d] {
				taken[d] = true
				fmt.Fprintf(t["takes.csv"], "p%03d,d%02d\n", p, d)
			}
		}
	}
	text := map[string]string{}
	for name, b := range t {
		text[name] = b.String()
	}
	return text
}
