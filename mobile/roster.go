package mobile

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/heddle-gnn/heddle/internal/admission"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/disk"
)

// SetRoster sets the federation's roster, a file that its administrators have signed. The device then refuses a plan
// with a member that the roster does not admit, in this and later processes. The first roster of a device needs its
// fingerprint, at least 32 digits, from the same source as the app's code. A quorum of the administrators that the
// roster before lists must have signed a later one; its fingerprint is ignored. So plans and rosters may come from
// anywhere.
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
	fingerprint := c.fingerprint
	switch _, err := c.trusted().Read(); {
	case err == nil:
		fingerprint = ""
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
	return c.trusted().Update(next, fingerprint, now)
}

// admits returns why the roster in force does not admit the plan's members, or nil, also without a roster.
func (d *Device) admits(now time.Time) error {
	in, err := d.config.trusted().Read()
	if errors.Is(err, admission.ErrUnknownFederation) {
		return nil
	}
	if err == nil {
		err = disclosure.Admitted(*d.plan, in.Body, now)
	}
	if err != nil {
		return fmt.Errorf("roster: %w", err)
	}
	return nil
}
