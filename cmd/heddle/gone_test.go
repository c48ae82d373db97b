package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// goneSettings are names that settings had and no longer have.
var goneSettings = strings.Fields(`mode preset balanced label_augmentation leaves warm_start
	label_epsilon clip_means update_norm least_in_sum min_peers colluding
	batch_clusters blocks by_weight clip_norm clusters draws failed_rows failure_wait fanout_order grace_period hard_negatives huber_delta
	budget hops_kept rounds_alone single withhold_few
	link_relations loss quantile relation_fanouts round_limit straggler warmup with_replacement`)

// aboutPrivacy are the deleted settings that privacy depended on: a user who asks for one must not be led to another
// one.
var aboutPrivacy = []string{"label_epsilon", "clip_means", "update_norm", "least_in_sum", "min_peers", "colluding",
	"failed_rows"}

// TestGoneSettings: a deleted setting is refused as unknown, as a flag and in a text, and one about privacy is not
// answered by the name of another one.
func TestGoneSettings(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	plan := string(contents(t, c.plan(t, c.members, "--port", fmt.Sprint(testenv.FreePorts(t, 2)))))
	for _, name := range goneSettings {
		flag := "--" + strings.ReplaceAll(name, "_", "-")
		for _, args := range [][]string{{"train", flag, "1"}, {"plan", flag, "1"}, {"train", flag}} {
			exit, _, stderr := call(t.Context(), args...)
			if exit != 2 || !strings.Contains(stderr, "unknown flag: "+flag) {
				t.Errorf("%q: exit %d, %s", args, exit, stderr)
			}
			if slices.Contains(aboutPrivacy, name) && strings.Contains(stderr, "did you mean") {
				t.Errorf("%q must be answered by no other name: %s", args, stderr)
			}
		}
		for text, want := range map[string]string{
			name + ": 1\n":                       `unknown field "` + name + `"`,
			"experimental:\n  " + name + ": 1\n": name + ": unknown setting",
		} {
			for _, args := range [][]string{{"train", "--data", c.dir, "--config", write(t, text)},
				c.join(0, write(t, text+plan))} {
				exit, _, stderr := call(t.Context(), args...)
				if exit != 2 || !strings.Contains(stderr, want) || strings.Contains(stderr, "did you mean") {
					t.Errorf("%s with %q: exit %d, must refuse it by %q: %s", args[0], text, exit, want, stderr)
				}
			}
		}
	}
}

// TestGonePolicyFields: a deleted field of a policy is refused, too.
func TestGonePolicyFields(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	plan := c.plan(t, c.members, "--port", fmt.Sprint(testenv.FreePorts(t, 2)))
	const policy = "federation: f\nmethods: [layer-wise]\nencoders: [raw]\nlayer_outputs: [hidden]\nmin_members: 2\n" +
		"min_members_in_sum: 2\n"
	check := func(text string) []string {
		return []string{"check", "--plan", plan, "--shard", filepath.Join(c.parts, "part-0"), "--policy",
			write(t, text)}
	}
	must(t, check(policy)...)
	for _, name := range []string{"modes", "solvers", "presets", "failures", "least_in_sum", "min_peers",
		"max_label_epsilon", "label_epsilon", "clip_means"} {
		exit, _, stderr := call(t.Context(), check(policy+name+": 1\n")...)
		if exit != 2 || !strings.Contains(stderr, `unknown field "`+name+`"`) ||
			strings.Contains(stderr, "did you mean") {
			t.Errorf("%s: exit %d, %s", name, exit, stderr)
		}
	}
}

// TestSettingsOfOneSite: a site sets by flags of heddle join what its machine decides; no plan with members has it.
func TestSettingsOfOneSite(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2)
	port := fmt.Sprint(testenv.FreePorts(t, 2))
	plans := map[string]string{}
	for _, method := range []string{"full-batch", "mini-batch"} {
		plans[method] = c.plan(t, c.members, "--port", port, "--method", method)
	}
	help := must(t, "join", "--help-all")
	for name, method := range map[string]string{"memory": "full-batch", "prefetch": "full-batch",
		"checkpoint_every": "full-batch", "feature_cache": "mini-batch"} {
		flag := "--" + strings.ReplaceAll(name, "_", "-")
		if !strings.Contains(help, " "+flag+" ") {
			t.Errorf("heddle join --help-all has no %s", flag)
		}
		refuse(t, 2, []string{"unknown flag: " + flag}, "plan", flag, "5")
		text := string(contents(t, plans[method]))
		if strings.Contains(text, name) {
			t.Errorf("a plan with members must have no %s:\n%s", name, text)
		}
		site := write(t, strings.Replace(text, "_batch:\n", "_batch:\n  "+name+": 5\n", 1))
		want := []string{site, name + " is a setting of one site, not of the plan: use heddle join " + flag}
		refuse(t, 2, want, c.join(0, site)...)
		refuse(t, 2, want, "check", "--plan", site, "--shard", filepath.Join(c.parts, "part-0"))
		refuse(t, 2, []string{name + " must be at least"}, c.join(0, plans[method], flag, "-7")...)
		// it is taken, and nobody else is there
		refuse(t, 1, []string{"site-1"}, c.join(0, plans[method], flag, "5", "--wait", "1ms")...)
	}
	refuse(t, 2, []string{"feature_cache: unknown setting of full-batch; it belongs to mini-batch"},
		c.join(0, plans["full-batch"], "--feature-cache", "5")...)
}

// TestMethodOfLinks: on one machine links are learned by all layers at once, between sites by one layer after the
// other.
func TestMethodOfLinks(t *testing.T) {
	t.Parallel()
	if text := must(t, "plan", "--task", "links"); !strings.Contains(text, "method: layer-wise\n") {
		t.Errorf("a plan for sites must be of method layer-wise:\n%s", text)
	}
	out := filepath.Join(t.TempDir(), "run")
	must(t, "train", "--data", sites(t), "--task", "links", "--rounds", "2", "--hidden", "4", "--transport", "memory",
		"-q", "-o", out)
	equal(t, "method", figures(t, filepath.Join(out, "result.json")).Method, "full-batch")
}
