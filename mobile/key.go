package mobile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// KeyLost begins the error of NewDevice if the directory has runs of a device whose key the store has no more.
const KeyLost = "the device's key is lost"

// identityKey is where a Store has the device's key (identity.Identity.Marshal), idNote the file of its peer ID.
const (
	identityKey = "heddle-identity"
	idNote      = "id"
)

// SetNewKey makes NewDevice replace a key that is lost (KeyLost), and remove the runs that it was for. The device has
// another ID then: a plan that lists phones must list it anew.
func (c *Config) SetNewKey(on bool) { c.newKey = on }

// identity returns the device's identity, whose key is in the store, and makes it at the first time. A backup or a
// transfer to another phone may bring the directory without the key: its runs are of a device that is no more.
func (c *Config) identity(s Store) (id identity.Identity, err error) {
	text, err := s.Get(identityKey)
	if err != nil {
		return id, fmt.Errorf("store: %w", err)
	}
	if len(text) > 0 {
		if id, err = identity.Parse(text); err != nil {
			return id, err
		}
	}
	path := filepath.Join(c.directory, idNote)
	known, err := os.ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return id, err
	case len(known) > 0 && len(text) > 0 && string(known) == id.PeerID():
		return id, nil
	case len(known) > 0 && !c.newKey:
		return id, fmt.Errorf("%s: the store must have the key of %s, whose runs are in %s "+
			"(after a transfer to another phone: SetNewKey(true) makes another device)", KeyLost, known, c.directory)
	case len(known) > 0:
		if err := removeRuns(c.directory, ""); err != nil {
			return id, err
		}
	}
	if len(text) == 0 {
		if id, err = identity.New(); err == nil {
			text, err = id.Marshal()
		}
		if err != nil {
			return id, err
		}
		if err := s.Put(identityKey, text); err != nil {
			return id, fmt.Errorf("store: %w", err)
		}
	}
	return id, errors.Join(disk.MkdirAll(disk.OS{}, c.directory, 0o700),
		disk.WriteFile(disk.OS{}, path, 0o600, []byte(id.PeerID())))
}
