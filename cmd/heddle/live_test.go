package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// fetched returns the status and the body at url (0 = nobody answers).
func fetched(url string) (int, string) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := c.Get(url)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// until waits until a page is as wanted, or the test's time is over.
func until(t *testing.T, url string, wanted func(status int, body string) bool) (body string) {
	t.Helper()
	for {
		status, body := fetched(url)
		if wanted(status, body) {
			return body
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %d\n%s", url, status, body)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// watched begins a run of three sites over QUIC; the first serves a page, and the last joins on request.
func watched(t *testing.T, settings ...string) (url string, last func(), wait func() error) {
	t.Helper()
	c := newCrew(t, 3)
	plan, at := c.plan(t, c.members, append([]string{"--port", fmt.Sprint(testenv.FreePorts(t, 3))}, settings...)...),
		"127.0.0.1:"+fmt.Sprint(testenv.FreePorts(t, 1))
	c.own = []string{"--checkpoint-every", "5"}
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error, 3)
	join := func(r int, more ...string) {
		go func() {
			exit, _, stderr := call(ctx, c.join(r, plan, append([]string{"--wait", "5m"}, more...)...)...)
			if exit != 0 && ctx.Err() == nil {
				ends <- fmt.Errorf("site-%d: exit %d: %s", r, exit, stderr)
				return
			}
			ends <- nil
		}()
	}
	join(0, "--http", at, "--audit", filepath.Join(t.TempDir(), "audit"))
	join(1)
	begun, ended := 2, false
	wait = func() (err error) {
		for ; begun > 0; begun-- {
			if one := <-ends; one != nil {
				err = one
			}
		}
		ended = true
		return err
	}
	t.Cleanup(func() {
		if cancel(); !ended {
			wait()
		}
	})
	return "http://" + at, func() { begun++; join(2) }, wait
}

// TestLivePage: the page of a real run shows for whom it waits, then that all are there, and ends with the run.
func TestLivePage(t *testing.T) {
	t.Parallel()
	url, last, wait := watched(t, "--rounds", "30")
	until(t, url+"/", func(status int, body string) bool {
		return status == 200 && strings.Contains(body, "Waiting for") &&
			strings.Contains(body, "has not been connected") && strings.Contains(body, "Audit log")
	})
	if status, body := fetched(url + "/readyz"); status != 503 || !strings.Contains(body, "waiting") {
		t.Errorf("while a site is missing readyz must be 503 (got %d, %s)", status, body)
	}
	last()
	var news struct {
		Version int
		Over    bool
		Main    string
	}
	text := ""
	for !news.Over {
		status, body := fetched(fmt.Sprintf("%s/news?seen=%d", url, news.Version))
		if err := json.Unmarshal([]byte(body), &news); err != nil || status != 200 {
			t.Fatalf("news: %d, %v: %s", status, err, body)
		}
		text += news.Main
	}
	for _, want := range []string{"connected: 3 of 3 sites", "training loss by round",
		"Bytes and messages sent", "1: began", "connected  site-2", "bytes by reduce", "is trained: validation",
		"The run is complete"} {
		if !strings.Contains(text, want) {
			t.Errorf("the news have no %q", want)
		}
	}
	if err := wait(); err != nil {
		t.Error(err)
	}
	if status, _ := fetched(url + "/healthz"); status != 0 {
		t.Errorf("the server must end with the run (status %d)", status)
	}
}
