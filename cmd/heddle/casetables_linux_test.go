package main

import (
	"fmt"
	"maps"
	"strings"
)

// imported is what an import prints that lost nothing of 90 patients.
const imported = `90 nodes, (\d+) edges.*edges: \d+ listed, \d+ kept; 0 isolated`

// tested is the figure of a run that came to its end.
const tested = "accuracy [0-9.]+ % test"

const byOutcome = " --label-column outcome --out "

var tableCases = []fieldCase{
	{"01-float-ids", "", func(c *trial) {
		nodes, edges := c.patients(90, 2, patientColumns, nil)
		floats, holes := []row{}, []row{}
		for k, e := range edges { // as pandas writes a column of integers with a gap
			floats = append(floats, row{"source": e["source"], "target": e["target"] + ".0"})
			holes = append(holes, maps.Clone(floats[k]))
			if k%40 == 0 {
				holes[k]["target"] = ""
			}
		}
		for _, x := range nodes {
			x["id"] = fmt.Sprintf("%06s", x["id"]) // as a spreadsheet that dropped the zeros elsewhere
		}
		c.write("padded.csv", asCSV(patientColumns, nodes))
		c.write("floats.csv", asCSV("source|target", floats))
		c.write("holes.csv", asCSV("source|target", holes))
		c.run(either, "heddle import --nodes n.csv --edges floats.csv"+byOutcome+"a",
			imported+`|"\d+\.0".{0,99}\b\d+\b`)
		c.run(2, "heddle import --nodes n.csv --edges holes.csv"+byOutcome+"b", "holes.csv: line 2, column target")
		c.run(either, "heddle import --nodes n.csv --edges holes.csv --on-error skip"+byOutcome+"b",
			`rows at fault must be under 90 %|skipped: [67]|[67] of \d+ rows? .*column target`)
		c.run(2, "heddle import --nodes padded.csv --edges e.csv"+byOutcome+"c", `"0+\d+"|zeros`)
		c.run(2, "heddle import --nodes padded.csv --edges e.csv --on-error skip"+byOutcome+"d",
			`rows at fault must be under 90 % .*(\d+) of \d+`)
	}},
	{"02-big-ids", "shared", func(c *trial) {
		nodes, pairs := patients(90, 2, 1)
		write := func(name string, id func(k int) string) {
			for k, x := range nodes {
				x["id"] = id(k)
			}
			c.write(name+".csv", asCSV(patientColumns, nodes))
			c.write(name+"-edges.csv", asCSV("source|target", ends(nodes, pairs)))
		}
		write("wide", func(k int) string {
			return []string{fmt.Sprint(-1 - k), fmt.Sprint(^uint64(0) - uint64(k))}[k%2]
		})
		write("big", func(k int) string {
			return fmt.Sprint(1582218195625938944 +
				k)
		}) // as floats 256 neighbours are one number
		rows := ends(nodes, pairs)
		for _, r := range rows {
			r["target"] = "1.582218195625939e+18"
		}
		c.write("floats.csv", asCSV("source|target", rows))
		c.run(0, "heddle import --nodes big.csv --edges big-edges.csv"+byOutcome+"a", imported)
		c.run(0, "heddle import --nodes wide.csv --edges wide-edges.csv"+byOutcome+"b", imported)
		c.run(2, "heddle import --nodes big.csv --edges floats.csv"+byOutcome+"c", `1\.582218195625939e\+18`)
		c.run(2, "tail -n +2 big-edges.csv | tr , ' ' > list.el; heddle import --edges list.el --out d",
			"line 1: .*must be 0 to 2147483646", "table|--nodes")
		c.run(0, "heddle import --nodes big.csv --edges list.el"+byOutcome+"e", imported)
		c.run(2, "heddle import --nodes "+c.shared+"/nodes.parquet --edges "+c.shared+"/edges-float.parquet"+byOutcome+
			"f",
			`1\.58221819562593\d*e\+18`)
		c.run(2, "heddle import --nodes "+c.shared+"/nodes-float.parquet "+
			"--edges "+c.shared+"/edges-float.parquet"+byOutcome+"g",
			`node "1\.58221819562593\d*e\+18" occurs on row \d+ already|no exact|float`)
	}},
	{"03-excel-csv", "", func(c *trial) {
		nodes, edges := c.patients(90, 2, patientColumns, nil)
		excel := func(columns string, rows []row) string { // with the empty rows at its end
			return strings.NewReplacer(",", ";", ".", ",", "\n",
				"\r\n").Replace(asCSV(columns, rows) + strings.Repeat(",",
				strings.Count(columns, "|")) + "\n\n")
		}
		c.write("sep.csv", "\ufeffsep=;\r\n"+excel(patientColumns, nodes))
		c.write("nosep.csv", "\ufeff"+excel(patientColumns, nodes))
		c.write("edges.csv", "\ufeffsep=;\r\n"+excel("source|target", edges))
		c.run(0, "heddle import --nodes sep.csv --edges edges.csv --decimal-comma"+byOutcome+"a", imported,
			"column age +numeric", "column dose +numeric")
		c.run(0, "heddle import --nodes nosep.csv --edges e.csv --decimal-comma"+byOutcome+"b", imported,
			"column age +numeric")
		c.run(0, "iconv -t utf-16 nosep.csv > utf16.csv; heddle import --nodes utf16.csv --edges e.csv"+byOutcome+"d",
			imported, "utf-16", "--decimal-comma")
		for k, x := range nodes {
			x["income"], x["share"], x["cost"] = fmt.Sprintf("%d,%03d", 20+k, 7*k), fmt.Sprintf("%d.%d %%", k%9, k%10),
				fmt.Sprintf("$ %d,%03d.50", 1+k, 3*k)
		}
		c.write("money.csv", asCSV(patientColumns+"|income|share|cost", nodes))
		c.run(0, "heddle import --nodes money.csv --edges e.csv"+byOutcome+"e",
			`warning: column income\b[^\n]*thousands`, `warning: column cost\b[^\n]*(thousands|unit|\$)`,
			`warning: column share\b[^\n]*(%|unit)`)
	}},
	{"04-gephi-neo4j", "", func(c *trial) {
		nodes, edges := c.patients(90, 2, patientColumns, nil)
		for _, x := range nodes {
			x["Id"], x["Label"], x["patient:ID(Patient)"], x["age:double"], x["wards:string[]"], x[":LABEL"] = x["id"],
				"patient "+x["id"], x["id"], x["age"], x["ward"]+";X", "Patient;Person"
		}
		for k, r := range edges {
			r["Source"], r["Target"], r["Type"], r["Id"], r["Weight"], r[" Source"], r[" Target"] = r["source"],
				r["target"], "Undirected", fmt.Sprint(k), "1.0", r["source"], r["target"]
			r["src"], r["dst"], r[":START_ID(Patient)"], r[":END_ID(Patient)"], r[":TYPE"], r["since:date"] =
				r["source"], r["target"], r["source"], r["target"], "KNOWS", fmt.Sprintf("2020-01-0%d", 1+k%9)
		}
		c.write("gnodes.csv", asCSV("Id|Label|timeset|age|outcome", nodes))
		c.write("gedges.csv", asCSV("Source|Target|Type|Id|Label|timeset|Weight", edges))
		c.write("gspace.csv", asCSV(" Source| Target", edges))
		c.write("uedges.csv", asCSV("src|dst", edges))
		c.write("neo.csv", asCSV("patient:ID(Patient)|age:double|wards:string[]|outcome|:LABEL", nodes))
		c.write("neoedges.csv", asCSV(":START_ID(Patient)|since:date|:END_ID(Patient)|:TYPE", edges))
		for _, flags := range []string{"--edges gedges.csv --ignore Label,timeset", "--edges gspace.csv",
			"--edges uedges.csv",
			"--edges gedges.csv --id-column Id --source-column Source --target-column " +
				"Target --weight-column Weight --ignore Label,timeset"} {
			c.run(0, "rm -rf a; heddle import --nodes gnodes.csv "+flags+byOutcome+"a", imported)
		}
		neo := "rm -rf a; heddle import --nodes neo.csv --edges neoedges.csv --id-column " +
			"'patient:ID(Patient)' --source-column ':START_ID(Patient)' --target-column ':END_ID(Patient)'" +
			" --relation-column :TYPE --ignore :LABEL" + byOutcome + "a --edge-columns "
		c.run(0, neo+"since:date", imported, "column age:double +numeric", `column wards:string\[\] +categorical`,
			"edge column since:date +date")
		c.run(0, neo+"since:date:date", imported, "edge column since:date +date")
	}},
	{"05-odd-columns", "", func(c *trial) {
		nodes, _ := c.patients(90, 2, patientColumns, nil)
		for k, x := range nodes {
			x["lab.result"], x["cost, total"], x["out come"], x["a=b"], x["Straße 🏥"], x[`say "x"`] = x["age"],
				x["dose"],
				x["outcome"], x["dose"], x["ward"], x["age"]
			x["visit:date"] = fmt.Sprintf("%02d/%02d/2024", 1+k%12, 1+k%28)
		}
		c.write("odd.csv", asCSV(`id|lab.result|visit:date|cost, total|out come|a=b|Straße 🏥|say "x"`, nodes))
		c.write("dup.csv", asCSV("id|age|age|outcome|", nodes))
		odd := "rm -rf a; heddle import --nodes odd.csv --edges e.csv --label-column 'out come' --out a "
		c.run(0, odd+"--ignore lab.result", imported, "column lab.result +dropped")
		c.run(either, odd+"--ignore 'cost, total'", `column cost, total +dropped|no column "cost".*("|quot)`)
		c.run(0, odd+`--ignore '"cost, total"'`, imported, "column cost, total +dropped")
		c.run(0, odd+"--date visit:date", imported, "column visit:date +date")
		c.run(0, odd+"--date visit:date:mdy", imported, "column visit:date +date")
		c.run(0, odd+"--numeric a=b", imported, "column a=b +numeric", "column lab.result +numeric",
			`column say "x" +numeric`, "column Straße 🏥 +categorical")
		c.run(0, "heddle train --data a"+oneMachine+"--rounds 5 --out r && heddle predict --model "+
			"r/model.safetensors --nodes odd.csv --edges e.csv --out p.csv", "p.csv: 90 nodes")
		c.run(2, "heddle import --nodes dup.csv --edges e.csv --label-column outcome --out h",
			"column age occurs twice")
	}},
	{"06-equals-in-path", "", func(c *trial) {
		c.patients(90, 2, patientColumns, nil)
		c.run(0,
			`mkdir -p run=7/day=1 "my data (v2)/Ärzte" out part/day=1; cp n.csv e.csv run=7/day=1
			cp n.csv e.csv "my data (v2)/Ärzte"; cp n.csv part/day=1`)
		for _, d := range []string{"", "./", "$PWD/"} {
			c.run(0, "rm -rf a; heddle import --nodes "+d+"run=7/day=1/n.csv --edges "+d+"run=7/day=1/e.csv"+byOutcome+
				"a",
				imported)
		}
		c.run(0, `d="my data (v2)/Ärzte" s="my data (v2)/set Ü" r="out/läuft gut"
			heddle import --nodes "$d/n.csv" --edges "$d/e.csv"`+byOutcome+`"$s" &&
			heddle train --data "$s"`+oneMachine+`--rounds 5 --out "$r" &&
			heddle predict --model "$r/model.safetensors" --data "$s" --out "$r/p 1.csv" && heddle inspect "$r"`,
			imported, "p 1.csv: 90 nodes", "trained on n .90 nodes")
		c.run(2, "heddle import --nodes part --edges e.csv"+byOutcome+"d", "day=1")
	}},
	{"07-spark-folders", "", func(c *trial) {
		_, edges := c.patients(90, 2, patientColumns, nil)
		for _, mark := range []string{"_SUCCESS", ".part-2.csv.crc", "_committed_1", "._part-2.csv"} {
			c.write("nodes/"+mark, "x")
		}
		c.write("edges/part-0.csv", asCSV("source|target", edges[:100]))
		c.write("edges/part-1.csv", asCSV("source|target", edges[100:]))
		c.run(0, `: > nodes/part-0.csv; head -1 n.csv > nodes/part-1.csv; sed -n 1,40p n.csv > nodes/part-2.csv
			(head -1 n.csv; sed -n 41,70p n.csv) | gzip > nodes/part-3.csv.gz
			((head -1 n.csv; sed -n 71,80p n.csv) | gzip; sed -n '81,$p' n.csv | gzip) > nodes/part-4.csv.gz
			mkdir one more; : > one/part-0.csv
			head -40 n.csv > more/a.csv
			(head -1 n.csv; sed -n '41,$p' n.csv) | awk -F, -v OFS=, '{print $1,$3,$2,$4,$5}' > more/b.csv`)
		c.run(0, "heddle import --nodes nodes --edges edges"+byOutcome+"a", imported, fmt.Sprintf("edges: %d listed, "+
			"%[1]d kept", len(edges)))
		c.run(2, "heddle import --nodes one --edges edges"+byOutcome+"b", "empty|no rows")
		c.run(either, "heddle import --nodes more --edges edges"+byOutcome+"d",
			`more/b.csv: columns must be id, age, dose, ward, outcome.*\(got id, dose, age, ward, outcome\)|`+imported)
		c.run(either, "heddle import --nodes <(cat n.csv) --edges <(cat e.csv)"+byOutcome+"e",
			imported+"|must be a file.* pipe")
	}},
	{"09-parquet-types", "shared", func(c *trial) {
		at := c.shared + "/data/"
		parquet := "rm -rf a; heddle import --edges " + at + "edges.parquet" + byOutcome + "a --nodes " + at
		c.run(0, parquet+"zoo.parquet", imported, "bool_null +categorical with 3 values, 18 missing",
			`emb\[3\] +numeric`,
			"ts_tz +date", "dec256 +numeric", "warning: column empty is dropped")
		c.run(2, parquet+"hard.parquet", "column map", "ignore", "column nested")
		c.run(2, parquet+"hard.parquet --ignore map,nested", "row 1, column bin: .*ignore the column")
		c.run(0, parquet+"hard.parquet --ignore map,nested,bin", imported)
		for _, packed := range []string{"snappy", "gzip", "brotli", "lz4", "zstd", "none", "v2", "dict",
			"delta", "bss"} {
			c.run(0, parquet+"c-"+packed+".parquet; [ -f snappy ] || cp a/graph.npz snappy; cmp a/graph.npz snappy",
				imported)
		}
		c.run(0, parquet+"emb.parquet", imported, `emb\[2\] +numeric, 2 features, 3 missing`)
		for _, kind := range []string{"int64", "uint64", "large", "dict"} {
			c.run(0, fmt.Sprintf("rm -rf a; heddle import --nodes %[1]sid-%[2]s.parquet --edges %[1]sed-%[2]s.parquet",
				at,
				kind)+byOutcome+"a", imported)
		}
	}},
	{"11-spellings-across-sites", "", func(c *trial) {
		// each column by itself: two classes, categories or truths in two spellings must stay two
		for column, southern := range map[string]func(x row){
			"outcome": func(x row) { x["outcome"] = strings.ToUpper(x["outcome"][:1]) + x["outcome"][1:] },
			"ward":    func(x row) { x["ward"] = strings.ToLower(x["ward"]) + " " },
			"smoker":  func(x row) { x["smoker"] = map[string]string{"False": "0", "True": "1"}[x["smoker"]] },
		} {
			columns := "id|age|dose|ward|smoker|outcome"
			c.sites(60, map[string]string{"north": columns, "south": columns}, func(site string, k int, x row) {
				x["smoker"] = []string{"False", "True"}[k/3%2]
				if site == "south" {
					southern(x)
				}
			})
			c.plan("")
			text := c.run(0, "meet plan.yaml")
			if strings.Contains(text, "north exits 0") {
				c.run(0, "for x in north south; do heddle inspect $x-part/part-*; done", "2 classes",
					"!4 classes", "!ward +categorical with [89]",
					"smoker +(categorical with 2|numeric)")
				continue
			}
			c.run(0, "cat north.log south.log", map[string]string{"outcome": `\bill\b.*\bIll\b|\bIll\b.*\bill\b`,
				"ward": `\bA\b.*"a ?"|"a ?".*\bA\b`, "smoker": "smoker.* at north .* at south"}[column])
			for _, site := range []string{"north", "south"} {
				if !strings.Contains(text, site+" exits 2") {
					c.fault("%s must refuse two spellings of %s\n%s", site, column, text)
				}
			}
		}
	}},
	{"12-schemas-across-sites", "", func(c *trial) {
		for name, k := range map[string]struct {
			columns string
			change  func(k int, x row)
			want    []string
		}{
			"order": {"outcome|ward|id|dose|age", nil, []string{"north exits 0", "south exits 0"}},
			"extra": {patientColumns + "|note_id", func(k int, x row) { x["note_id"] = fmt.Sprint(k) },
				[]string{`south has a column "note_id".*north exits 2`, "south exits 2", "ignore"}},
			"missing": {"id|age|ward|outcome", nil, []string{`south has no column "dose".*north exits 2`,
				"south exits 2"}},
			"empty": {"", func(k int, x row) { x["dose"] = "" }, []string{"north exits 0", "south exits 0",
				"dose +numeric, .*60 missing"}},
			"text": {"", func(k int, x row) {
				if k == 3 || k == 17 {
					x["dose"] = "unknown"
				}
			}, []string{`north\.log|dose.*unknown.*south exits 2`, "south. cannot take part.*north exits [12]"}},
			"mg": {"", func(k int, x row) { x["dose"] += " mg" }, []string{`"dose".*at north.*at south.*north exits 2`,
				`"dose".*at south.*south exits 2`}},
			"case": {"id|Age|dose|ward|outcome", func(k int, x row) { x["Age"] = x["age"] },
				[]string{`"age".*north exits 2`, `"age".*south exits 2`}},
			"text-label": {"", func(k int, x row) {
				if k == 5 {
					x["outcome"] = "n/a"
				}
			}, []string{"north exits 0",
				"ill 29, well 30; 1 without a label.*south exits 0|ill 30, well 29; 1 without " +
					"a label.*south exits 0"}},
		} {
			c.sites(60, map[string]string{"south": k.columns}, func(site string, i int, x row) {
				if site == "south" && k.change != nil {
					k.change(i, x)
				}
			})
			c.plan("")
			if name == "text" { // no site waits without a message
				k.want = append(k.want, "!waiting for south[^\n]*10s of")
			}
			c.run(0, "meet plan.yaml", k.want...)
		}
	}},
	{"14-quotes-and-tokens", "", func(c *trial) {
		nodes, _ := c.patients(90, 2, patientColumns+"|note", func(k int, x row) {
			x["note"] = []string{"",
				"line one\nline \"two\", with comma\r\nthree"}[k%2]
		})
		c.run(0, "heddle import --nodes n.csv --edges e.csv --text note:16"+byOutcome+"a", imported,
			"note +text, 16 features.*45 missing")
		lines := strings.Split(asCSV(patientColumns, nodes), "\n")
		lines[5] += ",extra"
		lines[9] = lines[9][:strings.LastIndex(lines[9], ",")]
		lines[20] = lines[20][:3] + "\x00" + lines[20][3:]
		c.write("ragged.csv", strings.Join(lines, "\n"))
		lines[12] = strings.Replace(lines[12], ",", `,"`, 1)
		c.write("quote.csv", strings.Join(lines, "\n"))
		c.run(2, "heddle import --nodes ragged.csv --edges e.csv"+byOutcome+"b", "line 6: there must be 5 cells.*got 6",
			"line 10: there must be 5 cells.*got 4")
		c.run(2, "heddle import --nodes quote.csv --edges e.csv"+byOutcome+"b", "quote that opens on line 13",
			"line 6: there must be 5 cells.*got 6")
		c.run(2, "heddle import --nodes quote.csv --edges e.csv --on-error skip"+byOutcome+"b",
			"quote that opens on line 13")
		tokens := []string{"", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "#DIV/0!", ".", "?",
			"<NA>", " NA ", "none"}
		infinite := []string{"inf", "-inf", "Infinity", "1e400"}
		c.patients(90, 2, patientColumns+"|lab", func(k int, x row) {
			x["lab"] = fmt.Sprint(3 + k/5)
			if k < len(tokens) {
				x["lab"] = tokens[k]
			}
		})
		c.run(0, "heddle import --nodes n.csv --edges e.csv"+byOutcome+"d", imported,
			"lab +numeric, 2 features, 16 missing")
		c.patients(90, 2, patientColumns+"|lab", func(k int, x row) {
			x["lab"] = fmt.Sprint(k)
			if k < len(infinite) {
				x["lab"] = infinite[k]
			}
		})
		c.run(2, "heddle import --nodes n.csv --edges e.csv"+byOutcome+"e",
			`line 2, column lab: must be a number.*"inf"`, `line 3.*"-inf"`, `line 4.*"Infinity"`, `line 5.*"1e400"`)
		for _, text := range []string{"NA", "nan", "NULL"} {
			c.patients(90, 2, patientColumns, func(k int, x row) {
				if k%5 == 0 {
					x["outcome"] = text
				}
			})
			c.run(0, "rm -rf l; heddle import --nodes n.csv --edges e.csv"+byOutcome+"l && heddle inspect l",
				"ill 36, well 36; 18 without a label.*ill 36, well 36; 18 without a label")
		}
	}},
	{"16-npz-mistakes", "", func(c *trial) {
		const n = 60
		nodes, pairs := patients(n, 3, 1)
		_ = nodes
		m := len(pairs)
		edge := func(shift int64) []int64 {
			return list(2*m, func(k int) int64 { return int64(pairs[k%m][k/m]) + shift })
		}
		with := func(v []int64, first int64) []int64 { v[0] = first; return v }
		mask := func(from, to int) []bool { return list(n, func(k int) bool { return from <= k%5 && k%5 <= to }) }
		ints := func(f func(k int) int64) array { return array{"<i8", []int{n}, list(n, f)} }
		x := list(2*n, func(k int) float64 { return float64(k/2%3) + float64(k%7)/10 })
		floats := list(2*n, func(k int) float32 { return float32(x[k]) })
		for name, k := range map[string]struct {
			exit int
			with map[string]array
			want []string
		}{
			"good": {0, nil, []string{tested}},
			"transposed": {2, map[string]array{"edge_index": {"<i8", []int{m, 2}, edge(0)}},
				[]string{fmt.Sprintf(`edge_index.*\[%d, 2\].*transpose`, m)}},
			"out-of-range": {2, map[string]array{"edge_index": {"<i8", []int{2, m}, with(edge(0), n)}},
				[]string{`edge_index: entry \[0, 0\] must be a node, 0 to 59 \(got 60\)`}},
			"negative": {2, map[string]array{"edge_index": {"<i8", []int{2, m}, with(edge(0), -1)}},
				[]string{`edge_index: entry \[0, 0\] must be a node, 0 to 59 \(got -1\)`}},
			"from-one": {2, map[string]array{"edge_index": {"<i8", []int{2, m}, with(edge(1), 60)}},
				[]string{`edge_index: entry \[0, 0\] must be a node, 0 to 59 \(got 60\)`}},
			"y-column": {0, map[string]array{"y": {"<i8", []int{n, 1}, list(n,
				func(k int) int64 { return int64(k % 3) })}}, []string{tested}},
			"y-from-one": {0, map[string]array{"y": ints(func(k int) int64 { return 1 + int64(k%3) })},
				[]string{tested}},
			"y-gaps": {either, map[string]array{"y": ints(func(k int) int64 { return 10 * (1 + int64(k%3)) })},
				[]string{"class.*(gap|without|no node|must|not used)"}},
			"y-float": {either, map[string]array{"y": {"<f8", []int{n},
				list(n, func(k int) float64 { return float64(k % 3) })}},
				[]string{"class|--task|integer"}},
			"y-onehot": {either, map[string]array{"y": {"<i8", []int{n, 3}, list(3*n,
				func(k int) int64 { return map[bool]int64{true: 1}[k/3%3 == k%3] })}},
				[]string{"one class"}},
			"masks-overlap": {2, map[string]array{"val_mask": {"|b1", []int{n}, mask(2, 4)}},
				[]string{"val_mask: node 2 is in train_mask too"}},
			"masks-uint8": {0, map[string]array{"train_mask": {"|u1", []int{n}, list(n,
				func(k int) byte { return map[bool]byte{true: 1}[k%5 < 3] })}}, []string{tested}},
			"masks-indices": {2, map[string]array{"train_mask": {"<i8", []int{36}, list(36,
				func(k int) int64 { return int64(k) })}}, []string{`array train_mask: (dtype|shape) must be`}},
			"no-masks": {2, map[string]array{"train_mask": {}, "val_mask": {}, "test_mask": {}},
				[]string{"no training node|train_mask must mark"}},
			"no-y":      {2, map[string]array{"y": {}}, []string{"array y: missing"}},
			"x-float64": {0, map[string]array{"x": {"<f8", []int{n, 2}, x}}, []string{tested}},
			"x-short": {2, map[string]array{"x": {"<f4", []int{n - 1, 2}, floats[2:]}},
				[]string{`array x: shape must be \[60, any\] \(got \[59, 2\]\)`}},
			"x-flat": {2, map[string]array{"x": {"<f4", []int{n}, floats[n:]}},
				[]string{`array x: shape must be \[60, any\] \(got \[60\]\)`}},
			"weights-zero": {2, map[string]array{"edge_weight": {"<f4", []int{m}, make([]float32, m)}},
				[]string{"edge_weight: entry 0 must be a finite number above 0"}},
			"weights-column": {either,
				map[string]array{"edge_weight": {"<f4", []int{m, 1}, list(m, func(int) float32 { return 1 })}},
				[]string{fmt.Sprintf(`edge_weight: shape must be \[%d\] \(got \[%[1]d, 1\]\)|accuracy [0-9.]+ %% test`,
					m)}},
		} {
			arrays := map[string]array{"edge_index": {"<i8", []int{2, m}, edge(0)}, "x": {"<f4", []int{n, 2}, floats},
				"y":          ints(func(k int) int64 { return int64(k % 3) }),
				"train_mask": {"|b1", []int{n}, mask(0, 2)}, "val_mask": {"|b1", []int{n}, mask(3, 3)},
				"test_mask": {"|b1",
					[]int{n}, mask(4, 4)}}
			maps.Copy(arrays, k.with)
			c.npz(name, arrays)
			c.run(k.exit, "heddle train --data "+name+oneMachine+"--rounds 10 --out r-"+name, k.want...)
		}
	}},
}
