// Package gateway starts object storage for tests: the program versitygw over a directory.
package gateway

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Start starts the gateway with an empty bucket, heddle, and returns the environment of its clients; under the name
// gateway it has the directory whose folders are buckets. Without versitygw it skips the test.
func Start(t testing.TB) (env map[string]string) {
	t.Helper()
	program, err := exec.LookPath("versitygw")
	if err != nil {
		t.Skip("SKIPPED: object storage: no versitygw (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "heddle"), 0o700); err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := listen.Addr().String()
	if err := listen.Close(); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--access", "heddle", "--secret", "secret-of-tests", "--port", at, "--quiet", "posix", dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", at); err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("versitygw does not listen")
		}
	}
	return map[string]string{"AWS_ACCESS_KEY_ID": "heddle", "AWS_SECRET_ACCESS_KEY": "secret-of-tests", "AWS_REGION": "us-east-1",
		"AWS_ENDPOINT_URL_S3": "http://" + at, "gateway": dir}
}
