package node

import (
	"context"
	"log/slog"
	"sync"

	"github.com/libp2p/go-libp2p/gologshim"
)

// libp2p logs to stderr what it takes for errors, such as a listener closed on purpose. Callers get
// errors that matter, so libp2p's lines go to slog's default logger as details.
var quietLibp2p = sync.OnceFunc(func() { gologshim.SetDefaultHandler(detail{}) })

// detail hands records to the default logger's handler at level Debug.
type detail struct{ attrs []slog.Attr }

func (d detail) Enabled(ctx context.Context, _ slog.Level) bool {
	return slog.Default().Enabled(ctx, slog.LevelDebug)
}

func (d detail) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, slog.LevelDebug, r.Message, r.PC)
	out.AddAttrs(d.attrs...)
	r.Attrs(func(a slog.Attr) bool { out.AddAttrs(a); return true })
	return slog.Default().Handler().Handle(ctx, out)
}

func (d detail) WithAttrs(attrs []slog.Attr) slog.Handler {
	return detail{append(d.attrs[:len(d.attrs):len(d.attrs)], attrs...)}
}

func (d detail) WithGroup(string) slog.Handler { return d }
