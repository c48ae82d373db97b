package page

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// About is what a page of measurements begins with.
type About struct{ Name, Title, Text string }

// Write puts the measurement into dir/NAME.md under the heading, in place of what that section had.
// All other sections stay.
func (p *Page) Write(dir string, about About, heading string) error {
	if !p.begun {
		return fmt.Errorf("%s measured nothing that could be written", about.Name)
	}
	path := filepath.Join(dir, about.Name+".md")
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		old = fmt.Appendf(nil, "# %s\n\n%s\n\nThe program writes the sections below: "+
			"`go run ./bench %s -write -heading HEADING`.\n", about.Title, about.Text, about.Name)
	} else if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(replace(string(old), heading, p.body.String())), 0o666)
}

// replace returns a page whose section with this heading is body, the last section if there was
// none.
func replace(page, heading, body string) string {
	const mark = "\n## "
	section := mark + heading + "\n\n" + strings.TrimSpace(body) + "\n"
	before, old, found := strings.Cut(page, mark+heading+"\n")
	if !found {
		return strings.TrimRight(page, "\n") + "\n" + section
	}
	if next := strings.Index(old, mark); next >= 0 {
		section += old[next:]
	}
	return before + section
}
