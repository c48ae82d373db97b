package dataset

// Splits returns how many splits Read offers of the data set at path: the columns of its masks, 1
// where these have but one. It reads no more than the head of each mask.
func Splits(path string) (int, error) {
	a, _, err := openData(path)
	if err != nil {
		return 0, err
	}
	defer a.close()
	n := 1
	for _, name := range maskNames {
		if name == "" || !a.has(name) {
			continue
		}
		h, err := a.header(name)
		if err != nil {
			return 0, err
		}
		if len(h.shape) == 2 {
			n = max(n, h.shape[1])
		}
	}
	return n, nil
}
