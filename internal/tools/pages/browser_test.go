// Package pages looks at pages as a person with a browser does: in headless Chromium, on a phone and on a desk, light
// and dark, on paper, and with axe-core, which finds what hinders people with disabilities.
package pages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// axeVariable names the file axe.min.js of npm's axe-core.
const axeVariable = "HEDDLE_AXE"

// wait is how long a page may take on a busy machine.
const wait = 2 * time.Minute

// View is a way to look at a page.
type View struct {
	Width int64 // of the window, in CSS pixels
	Dark  bool
	Paper bool // printed, where nothing scrolls
}

// Views are those in which pages must be readable.
var Views = []View{{Width: 390}, {Width: 390, Dark: true}, {Width: 1280}, {Width: 1280, Dark: true}}

// paper is a sheet of A4 between its margins.
var paper = View{Width: 673, Paper: true}

// String names v as a part of a file's name.
func (v View) String() string {
	shade := "light"
	switch {
	case v.Dark:
		shade = "dark"
	case v.Paper:
		shade = "paper"
	}
	return fmt.Sprintf("%d-%s", v.Width, shade)
}

// Browser is a Chromium without a window.
type Browser struct {
	ctx context.Context
	axe string // its program (empty = there is none)
}

// Start starts a browser that ends with the test. Without Chromium the test is skipped.
func Start(t *testing.T) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: a browser takes some seconds")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); errors.Is(err, exec.ErrNotFound) {
		t.Skip("SKIPPED: there is no Chromium (Debian: apt-get install chromium)")
	} else if err != nil {
		t.Fatalf("Chromium: %v", err)
	}
	b := &Browser{ctx: ctx}
	if path := os.Getenv(axeVariable); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%s: %v", axeVariable, err)
		}
		b.axe = string(text)
	}
	return b
}

// look opens the page in a view, and returns the value of an expression in JavaScript there, which may be a promise.
// ready is what is true on the page, in JavaScript, once all is there.
func look[T any](b *Browser, url, ready string, v View, expression string) (value T, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, wait)
	defer cancel()
	err = b.open(ctx, url, ready, v)
	if err == nil {
		value, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	}
	return value, err
}

func (b *Browser) open(ctx context.Context, url, ready string, v View) error {
	scheme, media := "light", "screen"
	if v.Dark {
		scheme = "dark"
	}
	if v.Paper {
		media = "print"
	}
	_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: v.Width, Height: 844, DeviceScaleFactor: 1,
			Mobile: v.Width < 600})
	if err == nil {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Media: media,
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate(url))
	}
	if err == nil {
		// chromedp.Poll names a context of JavaScript, which may still be that of the page before.
		waiting := "(async () => { while (!(" + ready + ")) await new Promise(r => setTimeout(r, 50)); return true })()"
		_, err = chromedp.Run(ctx, chromedp.Evaluate[bool](waiting, chromedp.EvalAwaitPromise))
	}
	return err
}

// faults lists, in JavaScript, what cannot be read: elements beyond the window or their chart, tables of few columns
// that are wider than the window, charts and pictures without a text, and overlapping letters of a chart.
const faults = `(() => {
	const list = [], root = document.documentElement, cut = e => e.textContent.trim().slice(0, 40);
	if (root.scrollWidth > root.clientWidth) list.push("the page is " + root.scrollWidth + " pixels wide, in a window of " + root.clientWidth);
	for (const e of document.querySelectorAll("body *")) {
		if (e.closest("svg *") || e.closest(".scroll, pre") && !matchMedia("print").matches) continue;
		const r = e.getBoundingClientRect();
		if (r.width > 0 && (r.right > root.clientWidth + 1 || r.left < -1)) list.push("<" + e.localName + "> stands out: " + cut(e));
	}
	for (const e of document.querySelectorAll(".scroll, pre"))
		if (e.scrollWidth > e.clientWidth && e.tabIndex < 0) list.push("no key scrolls <" + e.localName + ">: " + cut(e));
	for (const e of document.querySelectorAll(".scroll")) {
		const columns = e.querySelector("tr").cells.length;
		if (columns <= 8 && e.scrollWidth > e.clientWidth + 1)
			list.push("a table of " + columns + " columns is cut off: " + e.getAttribute("aria-label") + ", " + e.scrollWidth + " pixels in " + e.clientWidth);
	}
	for (const e of document.querySelectorAll("img"))
		if (!e.alt) list.push("a picture has no alternative text");
	for (const svg of document.querySelectorAll("svg")) {
		const named = svg.querySelector("title");
		if (svg.getAttribute("aria-hidden") != "true" && (!named || !named.textContent.trim())) list.push("a chart has no title");
		const box = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll("text")].filter(e => e.textContent.trim());
		for (const e of texts) {
			const r = e.getBoundingClientRect();
			if (r.left < box.left - 2 || r.right > box.right + 2 || r.top < box.top - 2 || r.bottom > box.bottom + 2)
				list.push("a label stands out of its chart: " + cut(e));
		}
		texts.forEach((e, i) => texts.slice(i + 1).forEach(f => {
			const a = e.getBoundingClientRect(), b = f.getBoundingClientRect();
			if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.4 * Math.min(a.height, b.height))
				list.push("labels cover one another: " + cut(e) + " and " + cut(f));
		}));
	}
	return list;
})()`

// violations runs axe-core, in JavaScript.
const violations = `axe.run().then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + v.help + ": " + n.html.slice(0, 120))))`

// Check opens the page at url in all Views, and as it is printed, and reports what cannot be read there. ready is what
// is true on the page, in JavaScript, once all is there.
func (b *Browser) Check(t *testing.T, url, ready string) {
	t.Helper()
	for _, v := range append(slices.Clone(Views), paper) {
		list, err := look[[]string](b, url, ready, v, faults)
		if err == nil && b.axe != "" {
			var more []string
			more, err = look[[]string](b, url, ready, v, b.axe+";\n"+violations)
			list = append(list, more...)
		}
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		for _, one := range list {
			t.Errorf("%s: %s", v, one)
		}
	}
	if b.axe == "" {
		t.Logf("SKIPPED: axe-core (npm install axe-core; %s names its axe.min.js)", axeVariable)
	}
}

// Texts returns the texts of the elements that a CSS selector matches, once ready is true.
func (b *Browser) Texts(t *testing.T, url, ready, selector string) []string {
	t.Helper()
	all, err := look[[]string](b, url, ready, Views[0],
		fmt.Sprintf("[...document.querySelectorAll(%q)].map(e => e.textContent.trim())", selector))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Screenshots writes a picture of the page in each view, as PREFIX-VIEW.png, up to a number of pixels from its top.
func (b *Browser) Screenshots(t *testing.T, url, ready, prefix string, height float64) {
	t.Helper()
	for _, v := range Views {
		if err := b.screenshot(url, ready, v, prefix+"-"+v.String()+".png", height); err != nil {
			t.Fatalf("%s: %v", v, err)
		}
	}
}

func (b *Browser) screenshot(url, ready string, v View, path string, height float64) error {
	ctx, cancel := context.WithTimeout(b.ctx, wait)
	defer cancel()
	if err := b.open(ctx, url, ready, v); err != nil {
		return err
	}
	all := true
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &all,
		Clip: &page.Viewport{Width: float64(v.Width), Height: height, Scale: 0.75}})
	if err != nil {
		return err
	}
	return os.WriteFile(path, shot.Data, 0o644)
}
