package heddle_test

import (
	"os"
	"strings"
	"testing"
)

// TestREADME keeps the README's Go equal to the code that is compiled and run here. HEDDLE_WRITE=1 writes it there.
func TestREADME(t *testing.T) {
	const path = "README.md"
	source, err := os.ReadFile("example_train_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "\nfunc trainHospitals(")
	code, _, ok := strings.Cut("func trainHospitals("+code, "\n}\n")
	code += "\n}\n"
	before, rest, ok1 := strings.Cut(string(readme), "```go\n")
	shown, after, ok2 := strings.Cut(rest, "```\n")
	if !ok || !ok1 || !ok2 {
		t.Fatal("no func trainHospitals in example_train_test.go, or no Go in the README")
	}
	if shown == code {
		return
	}
	if os.Getenv("HEDDLE_WRITE") == "" {
		t.Fatal("the README's Go is not that of example_train_test.go: HEDDLE_WRITE=1 go test -run README .")
	}
	if err := os.WriteFile(path, []byte(before+"```go\n"+code+"```\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
