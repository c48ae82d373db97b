package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const dglData = "../../graph/dgl/testdata/"

// TestDGL makes shards of DGL's partition, trains on them, and writes them back.
func TestDGL(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"metis-4", "typed-random-2"} {
		parts, back := filepath.Join(dir, name), filepath.Join(dir, name+"-back")
		text := must(t, "import", "--dgl", dglData+name, "-o", parts)
		if !strings.Contains(text, "by dgl ") {
			t.Errorf("import said %q", text)
		}
		must(t, "inspect", parts)
		train(t, filepath.Join(dir, "run-"+name), "--shards", parts, "--encoder", "raw", "--transport", "memory")
		must(t, "export", "--shards", parts, "-o", back)
		again := must(t, "import", "--dgl", filepath.Join(back, "small.json"), "-o", back+"-parts")
		if cut := func(s string) string { return s[strings.Index(s, "\n")+1:] }; cut(again) != cut(text) {
			t.Errorf("%s: imported again it is\n%s, want\n%s", name, again, text)
		}
	}
}

func TestFormatFaults(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		want []string
	}{
		{"import -o " + dir + "/x", []string{"nodes", "dgl"}},
		{"import --dgl " + dir + " -o " + dir + "/x", []string{"no NAME.json"}},
		{"import --dgl " + dglData + "random-2 --label-column none -o " + dir + "/x", []string{`column "none"`}},
		{"import --dgl " + dglData + "random-2 --nodes n.csv -o " + dir + "/x", []string{"dgl", "nodes"}},
		{"export --shards " + dir + " -o " + dir + "/x", []string{"manifest.json"}},
	} {
		exit, _, stderr := call(t.Context(), strings.Fields(c.args)...)
		for _, w := range c.want {
			if exit != 2 || !strings.Contains(stderr, w) {
				t.Errorf("peer %s: exit %d, %q, want 2 and %q", c.args, exit, stderr, w)
			}
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("peer %s left %v (%v)", c.args, list, err)
		}
	}
}
