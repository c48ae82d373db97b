package page

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/heddle-gnn/heddle/kernels"
)

// machine names what the program runs on, and what runs it.
func machine() string {
	return fmt.Sprintf("%s, %d processors (%d used), kernels %s, %s/%s, %s", processor(),
		runtime.NumCPU(), runtime.GOMAXPROCS(0), kernels.Name(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// processor is the model that Linux knows.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, model, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "processor of unknown model"
}

// Version is the commit of the working directory.
func Version() string {
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown version"
	}
	changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output()
	if err != nil || len(changes) > 0 {
		return strings.TrimSpace(string(commit)) + " with changes"
	}
	return strings.TrimSpace(string(commit))
}
