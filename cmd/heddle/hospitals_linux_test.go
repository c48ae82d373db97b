package main

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestHospitals goes through all steps of three hospitals, from tables as each of them keeps them to reports and
// predictions. The tables have Latin-1, UTF-16 and UTF-8, semicolons with a decimal comma, dates in three forms, a
// tenth of the labels missing in three spellings, one patient in eight with the class that matters, and a note that one
// patient has.
func TestHospitals(t *testing.T) {
	t.Parallel()
	c := &trial{T: t, dir: t.TempDir()}
	defer c.end("hospitals")
	names := []string{"munich", "cologne", "ulm"}
	const each, columns, note = 100, "patient|alter|crp|aufnahme|station|notiz|sepsis",
		"Frau Grünwald bittet um Rückruf 0171 5550123"
	r := rand.New(rand.NewPCG(7, 1))
	nodes := map[string][]row{}
	id := func(i int) string { return fmt.Sprintf("%s-%03d", []string{"MÜ", "KÖ", "UL"}[i/each], i%each) }
	ill := func(i int) bool { return i%8 == 3 }
	for i := range 3 * each {
		site, day := names[i/each], 1+r.IntN(28)
		shift := 0.0
		if ill(i) {
			shift = 1
		}
		x := row{"patient": id(i), "alter": fmt.Sprintf("%.1f", 55+9*shift+12*r.NormFloat64()),
			"crp": fmt.Sprintf("%.2f", 40+15*shift+12*r.NormFloat64()),
			"aufnahme": fmt.Sprintf([]string{"%02[1]d.%02[2]d.2024", "%02[2]d/%02[1]d/2024",
				"2024-%02[2]d-%02[1]d"}[i/each],
				day, 1+i%12),
			"station": []string{"Innere", "Gynäkologie", "Chirurgie"}[r.IntN(3)], "sepsis": map[bool]string{true: "ja",
				false: "nein"}[ill(i)]}
		if i%10 == 9 {
			x["sepsis"] = []string{"", "NA", "NULL"}[i/each]
		}
		if i == 42 {
			x["notiz"] = note
		}
		nodes[site] = append(nodes[site], x)
	}
	edges := map[string][]row{}
	for i := range 3 * each {
		for range 3 {
			j := r.IntN(3 * each)
			if i == j || ill(i) != ill(j) && r.Float64() < 0.7 {
				continue
			}
			for _, p := range [][2]int{{i, j}, {j, i}} {
				e := row{"von": id(p[0]), "nach": id(p[1])}
				if p[0]/each != p[1]/each {
					e["haus"] = names[p[1]/each]
				} else if p[0] != i {
					continue
				}
				edges[names[p[0]/each]] = append(edges[names[p[0]/each]], e)
			}
		}
	}
	german := func(text string) string { return strings.NewReplacer(",", ";", ".", ",").Replace(text) }
	for k, name := range names {
		var tables [2]string
		for i, text := range []string{asCSV(columns, nodes[name]), asCSV("von|nach|haus", edges[name])} {
			var err error
			switch k {
			case 0:
				dates := strings.NewReplacer(",2024", ".2024") // only numbers have a comma
				text = german(text)
				for month := range 13 {
					text = strings.ReplaceAll(text, fmt.Sprintf(",%02d,2024", month), fmt.Sprintf(".%02d.2024", month))
				}
				text, err = charmap.ISO8859_1.NewEncoder().String(dates.Replace(strings.ReplaceAll(text, "\n", "\r\n")))
			case 1:
				text, err = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String("sep=;\r\n" +
					german(text))
			}
			if err != nil {
				t.Fatal(err)
			}
			tables[i] = text
		}
		c.write(name+"-nodes.csv", tables[0])
		c.write(name+"-edges.csv", tables[1])
	}

	c.run(0,
		`args=(); for x in munich cologne ulm; do args+=("$x=$(heddle init --identity $x.key)@127.0.0.1"); done
		heddle plan --out plan.yaml --port `+
			fmt.Sprint(testenv.FreePorts(t, 3))+` "${args[@]}"`)
	c.run(0, `declare -A own=([munich]='--decimal-comma --categorical notiz'
			[cologne]='--decimal-comma --date aufnahme:mdy')
		pids=()
		for x in munich cologne ulm; do
			timeout 60 "$PEER" match --plan plan.yaml --identity $x.key --nodes $x-nodes.csv --edges $x-edges.csv \
				--id-column patient --source-column von --target-column nach \
				--target-site-column haus --label-column sepsis --wait 30s ${own[$x]} --out $x-part > $x.log 2>&1 &
			pids+=($!)
		done
		for p in ${pids[@]}; do wait $p || code=1; done; cat *.log; exit ${code:-0}`,
		"alter +numeric", "crp +numeric", "aufnahme +date", "station +categorical with 3 values",
		"nodes of each class: ja 10, nein 80; 10 without a label")
	joined := c.run(0, `pids=()
		for x in munich cologne ulm; do
			timeout 90 "$PEER" join --plan plan.yaml --identity $x.key --shard $x-part/part-* --wait 30s -q \
				--out $x-run > $x.log 2>&1 & pids+=($!)
		done
		for p in ${pids[@]}; do wait $p || code=1; done; cat *.log; exit ${code:-0}`,
		`auc [0-9.]+( to [0-9.]+)? % test`, `\bja\b`)
	if len(c.faults) > 0 {
		return
	}
	var scores []float64
	var labels []bool
	for _, name := range names {
		text := string(contents(t, filepath.Join(c.dir, name+"-run", "predictions.csv")))
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) != each+1 {
			t.Fatalf("%d rows of %s, %v", len(rows), name, err)
		}
		at := map[string]int{}
		for k, column := range rows[0] {
			at[column] = k
		}
		for k, cells := range rows[1:] {
			equal(t, "a patient's row", cells[at["id"]], nodes[name][k]["patient"])
			if cells[at["split"]] == "test" {
				var p float64
				fmt.Sscan(cells[at["p_ja"]], &p)
				scores, labels = append(scores, p), append(labels, cells[at["label"]] == "ja")
			}
		}
	}
	won, pairs := 0.0, 0.0
	for i, a := range scores {
		for j, b := range scores {
			if labels[i] && !labels[j] {
				pairs++
				if a > b {
					won++
				} else if a == b {
					won += 0.5
				}
			}
		}
	}
	for _, said := range regexp.MustCompile(`auc (\d+(\.\d+)?) (?:to (\d+) )?% test`).FindAllStringSubmatch(joined,
		-1) {
		var low, high float64
		fmt.Sscan(said[1], &low)
		if unit := math.Pow10(-max(len(said[2])-1, 0)); said[3] == "" { // as far as rounding and half a digit go
			low, high = low-unit, low+unit
		} else {
			fmt.Sscan(said[3], &high)
		}
		if auc := 100 * won / pairs; auc < low || auc > high {
			c.fault("by hand %.2f %% of %d nodes, but %s", auc, len(scores), said[0])
		}
	}

	// the one patient's note stays at her hospital, and is not in the model either
	for _, dir := range []string{"cologne-part", "cologne-run", "ulm-part", "ulm-run", "munich-run"} {
		filepath.WalkDir(filepath.Join(c.dir, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			for _, part := range []string{"Grünwald", "5550123"} {
				if strings.Contains(string(contents(t, path)), part) {
					c.fault("%s has %q of a note that one patient has", path, part)
				}
			}
			return nil
		})
	}
	if info, err := os.Stat(filepath.Join(c.dir, "ulm-run",
		"model.safetensors")); err != nil || info.Mode().Perm() != 0o600 {
		c.fault("the model's mode: %v, %v", info.Mode(), err)
	}

	fresh := slices.Clone(nodes["ulm"][:12])
	for k, x := range fresh {
		fresh[k] = maps.Clone(x)
		fresh[k]["patient"] = fmt.Sprint("N-", k)
	}
	c.write("new.csv", asCSV("patient|alter|crp|aufnahme|station|notiz", fresh))
	c.write("links.csv", asCSV("von|nach", []row{{"von": "N-0", "nach": "N-3"}}))
	c.run(0, "heddle predict --model ulm-run/model.safetensors --nodes new.csv --edges links.csv "+
		"--out new-p.csv; cat new-p.csv", "new-p.csv: 12 nodes", "p_ja,p_nein.*N-11,(ja|nein),")
}
