package kernels

func usable() []*set { return []*set{generic} }
