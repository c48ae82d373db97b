package plan

import "github.com/heddle-gnn/heddle/nn"

// traits are the names by which the tag when asks for properties of a model's convolution.
var traits = map[string]func(nn.Convolution) bool{
	"hops":      func(c nn.Convolution) bool { return c.Hops },
	"restart":   nn.Convolution.Restarts,
	"relations": func(c nn.Convolution) bool { return c.Typed },
	"attention": func(c nn.Convolution) bool { return c.Heads },
}

// traitsOf returns the traits of a model.
func traitsOf(model string) (all []string) {
	conv, ok := nn.ConvolutionNamed(model)
	for name, has := range traits {
		if ok && has(conv) {
			all = append(all, name)
		}
	}
	return all
}
