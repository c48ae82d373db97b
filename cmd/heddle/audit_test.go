package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

func TestAuditCommands(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := admission.OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Append(admission.Record{Event: admission.Lost, Name: "north", Text: "gone"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	end, err := admission.VerifyLog(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	head := end.String()
	if out := must(t, "audit", "verify", path, "--head", head); !strings.Contains(out, "2 records") ||
		!strings.Contains(out, head) {
		t.Errorf("%q, must say 2 records and the head", out)
	}
	if out := must(t, "audit", "show", path, "--event", "lost"); strings.Count(out, "north") != 2 {
		t.Errorf("%q, must say both records", out)
	}
	if out := must(t, "audit", "show", path, "--event", "left"); out != "" {
		t.Errorf("%q, must be nothing", out)
	}
	refuse(t, 2, []string{"SEQ:HASH"}, "audit", "verify", path, "--head", "2")
	text := contents(t, path)
	if err := os.WriteFile(path, bytes.Replace(text, []byte("gone"), []byte("here"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	refuse(t, 2, []string{"line 2 does not follow"}, "audit", "verify", path)
	refuse(t, 2, []string{"unknown command"}, "audit", "nonsense")
}

// TestPolicyEndsARun: a site whose policy's bound is reached in a run ends and logs it; the others end and log the
// same.
func TestPolicyEndsARun(t *testing.T) {
	t.Parallel()
	f := found(t)
	port := testenv.FreePorts(t, 2)
	plan := []string{"plan", "--carrier", "tcp", "--port", fmt.Sprint(port), "--out", f.at("plan.yaml")}
	all := []string{"north", "south", "west"}
	for i, name := range all {
		at := "@127.0.0.1"
		if i == 2 {
			at = "" // dials out only, so two free ports are enough
		}
		plan = append(plan, name+"="+f.ids[i]+at)
	}
	must(t, plan...)
	text := string(contents(t, f.at("policy.yaml")))
	said := make([]string, 3)
	var done sync.WaitGroup
	for i, name := range all {
		bound := ""
		if i == 0 {
			bound = "max_bytes: 4000\n"
		}
		if err := os.WriteFile(f.at(name+".yaml"), []byte(text+bound), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, "approve", "--plan", f.at("plan.yaml"), "--policy", f.at(name+".yaml"), "--shard",
			f.at(fmt.Sprintf("parts/part-%d", i)), "--yes", "--identity", f.at(name+".key"), "-o", f.at(name+".json"))
		done.Go(func() {
			exit, stdout, stderr := call(t.Context(), "join", "--plan", f.at("plan.yaml"), "--roster",
				f.at("roster.json"), "--trusted", f.at("trusted.json"), "--policy", f.at(name+".yaml"), "--approval",
				f.at(name+".json"), "--identity", f.at(name+".key"), "--shard", f.at(fmt.Sprintf("parts/part-%d", i)),
				"--audit", f.at(name+".jsonl"), "-o", f.at(name), "--wait", "1m")
			said[i] = fmt.Sprint(exit, " ", stdout, stderr)
		})
	}
	done.Wait()
	for i := range all {
		want := []string{"1 ", "peer 0 (north): ended the run: ", "policy.max_bytes", "at most 4000",
			all[i] + ".jsonl, ends with "}
		for _, w := range want {
			if !strings.Contains(said[i], w) {
				t.Errorf("%s says %q, must contain %q", all[i], said[i], w)
			}
		}
	}
	for _, name := range all {
		count := 0
		if _, err := admission.VerifyLog(f.at(name+".jsonl"), func(r admission.Record) error {
			if r.Event == admission.Refused || r.Event == admission.Lost {
				if !strings.Contains(r.Text, "a run must send at most 4000 bytes") {
					t.Errorf("%s: %+v must have the reason", name, r)
				}
				if count++; r.Event != admission.Refused {
					t.Errorf("%s: %+v, must be %s", name, r, admission.Refused)
				}
			}
			if name == "north" && r.Event == admission.Ended && (r.Bytes == 0 || r.Bytes > 4000) {
				t.Errorf("north sent %d bytes, must be some and at most 4000", r.Bytes)
			}
			return nil
		}); err != nil || count != 1 {
			t.Errorf("%s: %d records of what went wrong (%v), must be one", name, count, err)
		}
	}
}
