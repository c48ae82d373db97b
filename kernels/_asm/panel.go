package main

const panelParameters = "(rows int, at, ends, col, val unsafe.Pointer, first, tall int, x unsafe.Pointer, ldx int, " +
	"y unsafe.Pointer, ldy int, acc bool)"

// panel writes the kernel of Y = S·X for eight vectors of columns and a panel of `tall` rows of X. In each row of S it
// processes edges from a given position on, as long as their columns are in the panel, and stores where it stopped.
func (w *writer) panel() {
	const vectors = 8
	w.function("panel", panelParameters, 89)
	w.text("\tPANELARGS\n\nrow:\n\tPLACES\n\tCMPB acc+88(FP), $0\n\tJNE  get")
	for v := range vectors {
		w.textf("\tZERO V%d", v)
	}
	w.text("\tJMP  edges\n\nget:")
	for v := range vectors {
		w.load("", v*w.bytes(), "DI", v)
	}
	value := either(w, "V15", "V31")
	w.textf("\nedges:\n\tCMPQ R8, CX\n\tJAE  put\n\nedge:\n\tWITHIN(put)\n\tVBROADCASTSS (R8)(R11*1), %s", value)
	for v := range vectors {
		w.textf("\tVFMADD231PS %d(AX), %s, V%d", v*w.bytes(), value, v)
	}
	w.text("\tADDQ $4, R8\n\tCMPQ R8, CX\n\tJB   edge\n\nput:")
	for v := range vectors {
		w.store("", v, v*w.bytes(), "DI")
	}
	w.text("\tSTOPPED\n\tADDQ R13, DI\n\tDECQ DX\n\tJNZ  row\n\tVZEROUPPER\n\tRET")
}
