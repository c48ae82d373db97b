package dataset

// Splits returns how many splits Read offers of the data set at path: the columns of its masks, 1
// where these have but one. It reads no more than the head of each mask.
func Splits(path string) (int, error) {
	a, _, err := openData(path)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	n := 1
	for _, name := range maskNames {
		if name == "" || !a.Has(name) {
			continue
		}
		h, err := a.Header(name)
		if err != nil {
			return 0, err
		}
		if len(h.Shape) == 2 {
			n = max(n, h.Shape[1])
		}
	}
	return n, nil
}
