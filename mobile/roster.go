package mobile

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/internal/disk"
)

// SetRoster sets the federation's roster, a file that its administrators have signed: a plan with a
// member that the roster does not admit is refused. The first roster of a device needs its fingerprint,
// at least 32 digits of it, which the app has from where it has its own code; a later one must be signed by
// a quorum of those whom the one before names, and the fingerprint is not looked at. So plans and rosters
// may come from anywhere. A device that has had a roster refuses plans by it ever after.
func (c *Config) SetRoster(text []byte, fingerprint string) {
	c.roster, c.fingerprint = []byte(string(text)), fingerprint
}

// trusted is the roster in force at the device.
func (c *Config) trusted() admission.Trusted {
	return admission.Trusted(filepath.Join(c.directory, "roster.json"))
}

// update puts the roster that was set in force.
func (c *Config) update(now time.Time) error {
	if len(c.roster) == 0 {
		return nil
	}
	told := c.fingerprint
	switch _, err := c.trusted().Read(); {
	case err == nil:
		told = ""
	case !errors.Is(err, admission.ErrUnknownFederation):
		return err
	}
	path := filepath.Join(c.directory, "roster-given.json")
	if err := disk.MkdirAll(disk.OS{}, c.directory, 0o700); err != nil {
		return err
	}
	if err := disk.WriteFile(disk.OS{}, path, 0o600, c.roster); err != nil {
		return err
	}
	next, err := admission.ReadFile[admission.Roster](path)
	if err != nil {
		return err
	}
	return c.trusted().Update(next, told, now)
}

// admits returns why the roster in force does not admit the plan's members; nil where there is none.
func (d *Device) admits(now time.Time) error {
	in, err := d.config.trusted().Read()
	if errors.Is(err, admission.ErrUnknownFederation) {
		return nil
	}
	if err == nil {
		err = d.plan.Admitted(in.Body, now)
	}
	if err != nil {
		return fmt.Errorf("roster: %w", err)
	}
	return nil
}
