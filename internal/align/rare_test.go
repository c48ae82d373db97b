package align

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

const planted = "Ann Example 0176 555"

// rare writes tables of two sites of 40 patients each. South plants a text: in the note of nine patients, in column how
// of the edges of one patient, as the class of nine, and as the relation of all edges of one.
func rare(t *testing.T, class, relation bool) (configs []entrant) {
	t.Helper()
	dir := t.TempDir()
	for s, site := range sites[:2] {
		nodes, edges := "id,note,outcome\n", "source,target,how,relation\n"
		for i := range 40 {
			note, outcome := []string{"short", "long"}[i%2], []string{"ill", "well"}[i/2%2]
			if s == 1 && i < 9 {
				note = planted
				if class {
					outcome = planted
				}
			}
			nodes += fmt.Sprintf("%s%d,%s,%s\n", site, i, note, outcome)
		}
		for i := range 36 {
			from, to, how, kind := i, (i+1)%40, []string{"by post", "in person"}[i%2], "refers"
			if s == 1 && i >= 24 {
				from, to, how = 3, i, planted // twelve edges of one patient, in both directions
				if relation {
					kind = planted
				}
				if i%2 == 0 {
					from, to = to, from
				}
			}
			edges += fmt.Sprintf("%[1]s%[2]d,%[1]s%[3]d,%[4]s,%[5]s\n", site, from, to, how, kind)
		}
		put(t, dir, site, nodes)
		put(t, dir, site+"-edges", edges)
		c := config(dir, s, "", "relation")
		c.Sites, c.got, c.tables.MinTexts = sites[:2], &bytes.Buffer{}, 10
		c.tables.Site, c.tables.Split, c.tables.SourceSite, c.tables.TargetSite = "", "", "", ""
		c.tables.EdgeColumns = []string{"how"}
		configs = append(configs, c)
	}
	return configs
}

// TestRareTexts: a text that too few nodes of a site have is in no byte that another site receives, keeps or reports.
func TestRareTexts(t *testing.T) {
	absent := func(t *testing.T, got []byte, dir string, err error) {
		t.Helper()
		if bytes.Contains(got, []byte(planted)) || strings.Contains(fmt.Sprint(err), planted) {
			t.Errorf("north receives or reports the planted text: %v", err)
		}
		if err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(filepath.Join(dir, path))
			if bytes.Contains(text, []byte(planted)) {
				t.Errorf("%s has the planted text", path)
			}
			return err
		}); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
	configs := rare(t, false, false)
	dirs, errs := assemble(t.Context(), t, configs)
	parts := readParts(t, dirs, errs)
	absent(t, configs[0].got.Bytes(), dirs[0], errs[0])
	for _, want := range []string{"short", "long", "by post", "ill", "refers"} { // the others are sent
		if !bytes.Contains(configs[0].got.Bytes(), []byte(want)) {
			t.Errorf("north receives no %q", want)
		}
	}
	if string(parts[0].Encoding) != string(parts[1].Encoding) || bytes.Contains(parts[1].Encoding, []byte(planted)) {
		t.Errorf("encoding %s", parts[1].Encoding)
	}
	x := parts[1].X.Dense.Row(3) // long, short, other
	if !slices.Equal(x, []float32{0, 0, 1}) {
		t.Errorf("a patient with the planted text has features %v", x)
	}
	own, err := OpenSite(configs[1].tables)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(own.Sends()), "{[note how] [{outcome true [ill well] 0} {relation true [refers] 0} "+
		"{note false [long short] 1} {how false [by post in person] 1}] map[]}"; got != want {
		t.Errorf("south's page: %s, want %s", got, want)
	}

	for _, of := range []struct {
		class, relation bool
		column, remedy  string
	}{{true, false, "outcome", "option class-order with all classes at every site"},
		{false, true, "relation", "each relation a table (option edges, SOURCE-RELATION-TARGET=FILE)"}} {
		configs := rare(t, of.class, of.relation)
		dirs, errs := assemble(t.Context(), t, configs)
		absent(t, configs[0].got.Bytes(), dirs[0], errs[0])
		graphtest.Refused(t, errs[1], fmt.Sprintf("column %s: %q must be of at least 10 nodes at one of the sites, "+
			"as it is not sent otherwise: correct it, leave it empty, or give %s", of.column, planted, of.remedy))
		if errs[0] == nil || !strings.Contains(errs[0].Error(), "south") {
			t.Errorf("north: %v, want an error that names south", errs[0])
		}
	}
}
