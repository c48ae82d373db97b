package cli

import (
	"errors"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// ReadInitial reads the file at path, from which training starts, or returns nil if the path is empty. The file is a
// model file, or has the state dict of layers of PyTorch Geometric, which names no Heddle.
func ReadInitial(path string) (*heddle.Initial, error) {
	if path == "" {
		return nil, nil
	}
	m, card, err := modelfile.Read(path)
	if errors.Is(err, modelfile.ErrForeign) {
		layers, err := modelfile.ReadPyG(path)
		return &heddle.Initial{Layers: layers}, Invalid(err)
	}
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
