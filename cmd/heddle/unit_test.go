package main

import (
	"strings"
	"testing"
)

// TestServiceUnit: this program takes the commands of the systemd unit and of the pod, and the unit treats its exit
// codes as they are meant.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	of := map[string]string{}
	for line := range strings.Lines(string(contents(t, "../../packaging/systemd/heddle-peer.service"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			of[name] = value
		}
	}
	if of["SuccessExitStatus"] != "143" || of["RestartPreventExitStatus"] != "2" || of["Restart"] != "on-failure" {
		t.Errorf("exit codes: %v", of)
	}
	words := strings.Fields(of["ExecStart"])
	if len(words) < 2 || words[0] != "/usr/local/bin/peer" {
		t.Fatalf("ExecStart: %q", words)
	}
	site := strings.Join(strings.Fields(string(contents(t, "../../packaging/k8s/site.yaml"))), " ")
	_, site, _ = strings.Cut(site, "args: [")
	site, _, _ = strings.Cut(site, "]")
	takes(t, words)
	takes(t, append([]string{"peer"}, strings.Split(strings.ReplaceAll(site, `"`, ""), ", ")...))
}

// takes fails the test unless the program takes a command to join.
func takes(t *testing.T, words []string) {
	t.Helper()
	root, _ := program.Root(nil)
	c, args, err := root.Find(words[1:])
	if err == nil {
		err = c.ParseFlags(args)
	}
	if err == nil {
		err = c.ValidateRequiredFlags()
	}
	if err != nil || c.Name() != "join" || c.Flags().NArg() > 0 {
		t.Errorf("%q: %v", words, err)
	}
}
