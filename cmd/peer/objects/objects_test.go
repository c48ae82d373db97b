package objects

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/heddle-gnn/heddle/cmd/peer/objects/gateway"
	"github.com/heddle-gnn/heddle/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// emptyTree starts a gateway and returns an empty tree in its bucket.
func emptyTree(t *testing.T) (*tree, map[string]string) {
	t.Helper()
	env := gateway.Start(t)
	all, err := open("s3://heddle/run", func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	return all, env
}

func written(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// large is the content of an object of several ranges, the last of which is short.
func large() []byte {
	b := make([]byte, 2*span+1<<20+7)
	for i := range b {
		b[i] = byte(i*i>>7 ^ i)
	}
	return b
}

// TestFetch: an object of several ranges is what was put, also over a connection that breaks off in the middle of each range.
func TestFetch(t *testing.T) {
	all, env := emptyTree(t)
	text := large()
	if err := all.PutFile(t.Context(), "big", written(t, text)); err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(env["AWS_ENDPOINT_URL_S3"])
	if err != nil {
		t.Fatal(err)
	}
	cuts := atomic.Int32{}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = back.Scheme, back.Host // the signed host stays
		}}
		p.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
		p.ModifyResponse = func(res *http.Response) error {
			if r.Method == http.MethodGet && cuts.Add(1) <= 4 {
				res.Body = struct {
					io.Reader
					io.Closer
				}{io.MultiReader(io.LimitReader(res.Body, 1<<20), broken{}), res.Body}
			}
			return nil
		}
		p.ServeHTTP(w, r)
	})}
	go proxy.Serve(listen)
	t.Cleanup(func() { proxy.Close() })
	env["AWS_ENDPOINT_URL_S3"] = "http://" + listen.Addr().String()
	through, err := open("s3://heddle/run", func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]*tree{"straight": all, "broken off": through} {
		to := filepath.Join(t.TempDir(), "copy")
		if err := from.Fetch(t.Context(), "big", to); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: the copy is another (%v)", name, err)
		}
	}
	if n := cuts.Load(); n < 7 { // three ranges, four of whose requests broke off
		t.Errorf("requests are %d, must be at least 7", n)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("cut") }

// TestFaults: errors name the object, and a wrong address or endpoint is refused.
func TestFaults(t *testing.T) {
	all, env := emptyTree(t)
	to := filepath.Join(t.TempDir(), "copy")
	if err := all.Fetch(t.Context(), "none", to); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "s3://heddle/run/none") {
		t.Errorf("a missing object is %v", err)
	}
	if err := all.Put(t.Context(), "one", []byte("1")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := all.fetchRange(t.Context(), f, "one", "other", 0, 1); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("an object of another tag is %v", err)
	}
	env["AWS_SECRET_ACCESS_KEY"] = "wrong"
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	stranger, err := open("s3://heddle/run", func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Read(t.Context(), "one"); err == nil || !strings.Contains(err.Error(), "s3://heddle/run/one") {
		t.Errorf("a wrong secret is %v", err)
	}
	for address, endpoint := range map[string]string{"s3://": "", "heddle": "", "s3://heddle": "localhost:9000"} {
		if _, err := open(address, func(name string) string { return map[string]string{"AWS_ENDPOINT_URL": endpoint}[name] }); err == nil {
			t.Errorf("%s at %q is accepted", address, endpoint)
		}
	}
}

// TestMirror: what is restored is the directory as it was at the last Save, and nothing else is stored.
func TestMirror(t *testing.T) {
	all, env := emptyTree(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	m := newMirror(all, dir)
	check := func(want ...string) {
		t.Helper()
		if err := m.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if err := newMirror(all, to).Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		names, err := filesBelow(to)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(to, name))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %s", name, text))
		}
		if !slices.Equal(got, want) {
			t.Errorf("restored files are %q, must be %q", got, want)
		}
		kept, err := filesBelow(filepath.Join(env["gateway"], "heddle", "run"))
		if err != nil || len(kept) != len(want)+1 {
			t.Errorf("objects are %q (%v), must be the list and %d more", kept, err, len(want))
		}
	}
	if err := m.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	write("state-1", "a")
	write("policy/note", "n")
	write(".state-2.tmp", "half")
	check("policy/note n", "state-1 a")
	write("state-2", "b")
	write("state-1", "c")
	check("policy/note n", "state-1 c", "state-2 b")
	if err := os.Remove(filepath.Join(dir, "state-1")); err != nil {
		t.Fatal(err)
	}
	check("policy/note n", "state-2 b")
	if err := all.Put(t.Context(), list, []byte(`[{"name":"../x","sha256":"00","size":1}]`)); err != nil {
		t.Fatal(err)
	}
	if err := newMirror(all, t.TempDir()).Restore(t.Context()); err == nil || !strings.Contains(err.Error(), `"../x"`) {
		t.Errorf("a file outside of the directory is %v", err)
	}
}
