package federation

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disk"
)

// A token has at least leastToken characters, and its file at most mostToken bytes.
const leastToken, mostToken = 16, 4096

// cookieName names the cookie that a browser gets for a token.
const cookieName = "heddle-live"

// httpLock decides who may look: the holder of the token or, without one, every user of this machine.
type httpLock struct {
	token  []byte                                               // (nil = there is none)
	refuse func(w http.ResponseWriter, text string, status int) // answers those who may not
}

// Guard returns what a server answers: open and /healthz to anybody; locked, and /metrics with further ones about this
// process, only with the token of f or, without one, from this machine. refuse answers all others.
func (f HTTP) Guard(open, locked *http.ServeMux, metrics *prometheus.Registry,
	refuse func(w http.ResponseWriter, text string, status int)) (http.Handler, error) {
	guard, err := f.lock()
	if err != nil {
		return nil, err
	}
	guard.refuse = refuse
	metrics.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	locked.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	open.Handle("/", guard.over(locked))
	return guard.hosts(headers(open)), nil
}

// lock reads the token. An address that other machines can reach requires one.
func (f HTTP) lock() (httpLock, error) {
	host, _, err := net.SplitHostPort(f.Address)
	if err != nil {
		return httpLock{}, cli.Invalidf("--http must be HOST:PORT (got %q): %v", f.Address, err)
	}
	if f.Token == "" {
		if !isLoopback(host) {
			return httpLock{}, cli.Invalidf("--http %s can be reached from other machines: it requires "+
				"--http-token-file; without one use 127.0.0.1", f.Address)
		}
		return httpLock{}, nil
	}
	token, err := f.readToken()
	return httpLock{token: token}, err
}

func (f HTTP) readToken() ([]byte, error) {
	text, err := disk.ReadStart(f.Token, mostToken)
	if err != nil {
		return nil, cli.Invalidf("--http-token-file: %w", err)
	}
	token := bytes.TrimSpace(text)
	if len(token) < leastToken || len(text) > mostToken {
		return nil, cli.Invalidf("--http-token-file %s: a token must have %d to %d characters (got %d)", f.Token,
			leastToken,
			mostToken, len(token))
	}
	return token, nil
}

// isLoopback reports whether host is this machine only.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.IsLoopback()
}

// hosts refuses, if there is no token, requests in another machine's name. Otherwise a page from elsewhere could read
// this one through a name that it points to this machine.
func (l httpLock) hosts(next http.Handler) http.Handler {
	if l.token != nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !isLoopback(strings.Trim(host, "[]")) {
			l.refuse(w, "this page is for its own machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// over admits a request with the token, in the header Authorization, or once as ?token=, which a cookie then replaces.
func (l httpLock) over(next http.Handler) http.Handler {
	if l.token == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if given := r.URL.Query().Get("token"); given != "" && sameToken([]byte(given), l.token) {
			http.SetCookie(w, &http.Cookie{Name: cookieName, Value: l.cookie(), Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, r.URL.Path, http.StatusSeeOther)
			return
		}
		bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		cookie, err := r.Cookie(cookieName)
		if ok && sameToken([]byte(bearer), l.token) || err == nil && sameToken([]byte(cookie.Value),
			[]byte(l.cookie())) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="heddle"`)
		l.refuse(w, "a token is required: Authorization: Bearer TOKEN, or ?token=TOKEN in a browser",
			http.StatusUnauthorized)
	})
}

// cookie follows from the token, and does not reveal it.
func (l httpLock) cookie() string {
	h := hmac.New(sha256.New, l.token)
	h.Write([]byte(cookieName))
	return hex.EncodeToString(h.Sum(nil))
}

// sameToken compares a and b in a time that does not reveal where, or in how many characters, they differ.
func sameToken(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
