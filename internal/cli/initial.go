package cli

import (
	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// ReadInitial reads the model file at path, from which training starts, or returns nil if the path is empty.
func ReadInitial(path string) (*heddle.Initial, error) {
	if path == "" {
		return nil, nil
	}
	m, card, err := modelfile.Read(path)
	if err != nil {
		return nil, Invalid(err)
	}
	return &heddle.Initial{Model: m, Card: card}, nil
}

// TakeInitial reads the model file that the setting init of given names on a command line, and puts the file's SHA-256
// in its place, as a plan has it.
func TakeInitial(given map[string]string) (*heddle.Initial, error) {
	i, err := ReadInitial(given["init"])
	if i == nil || err != nil {
		return nil, err
	}
	given["init"], err = i.Fingerprint()
	return i, Invalid(err)
}
