// Package objects reads and writes files in object storage that speaks S3: s3://BUCKET/KEY.
package objects

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"
)

const scheme = "s3://"

// Is reports whether a path names objects and no files.
func Is(path string) bool { return strings.HasPrefix(path, scheme) }

// Join appends names to a path of files or of objects.
func Join(at string, names ...string) string {
	if Is(at) {
		return scheme + path.Join(append([]string{strings.TrimPrefix(at, scheme)}, names...)...)
	}
	return filepath.Join(append([]string{at}, names...)...)
}

// tree is the objects below s3://BUCKET/PREFIX/, as a directory.
type tree struct {
	store  *minio.Core
	bucket string
	prefix string
}

// open returns the objects below an address. Credentials, region and endpoint are those of the environment, as for other
// programs: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the file of shared credentials, or the role of the machine or
// pod; AWS_REGION; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL where it is not Amazon. It asks nothing of the network.
func open(address string, env func(string) string) (*tree, error) {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(address, scheme), "/")
	if !Is(address) || bucket == "" {
		return nil, fmt.Errorf("objects: an address must be s3://BUCKET/KEY (got %q)", address)
	}
	endpoint := cmp.Or(env("AWS_ENDPOINT_URL_S3"), env("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com")
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("objects: environment: AWS_ENDPOINT_URL_S3 must be http://HOST or https://HOST (got %q)", endpoint)
	}
	client, err := minio.NewCore(at.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{}}),
		Secure: at.Scheme == "https", Region: cmp.Or(env("AWS_REGION"), env("AWS_DEFAULT_REGION")),
	})
	if err != nil {
		return nil, fmt.Errorf("objects: %s: %w", address, err)
	}
	return &tree{client, bucket, strings.Trim(prefix, "/")}, nil
}

// At returns the address of an object.
func (t *tree) At(name string) string { return scheme + path.Join(t.bucket, t.prefix, name) }

func (t *tree) key(name string) string { return path.Join(t.prefix, name) }

// fault names the object; an object that is not there is fs.ErrNotExist.
func (t *tree) fault(name string, err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case "NoSuchKey", "NoSuchBucket", "NotFound":
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return fmt.Errorf("objects: %s: %w", t.At(name), err)
}

// Read returns a small object.
func (t *tree) Read(ctx context.Context, name string) ([]byte, error) {
	body, info, _, err := t.store.GetObject(ctx, t.bucket, t.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, t.fault(name, err)
	}
	defer body.Close()
	const most = 1 << 26
	if info.Size > most {
		return nil, fmt.Errorf("objects: %s: must be at most %d bytes (got %d)", t.At(name), most, info.Size)
	}
	b, err := io.ReadAll(io.LimitReader(body, most))
	if err == nil && int64(len(b)) != info.Size {
		err = io.ErrUnexpectedEOF
	}
	return b, t.fault(name, err)
}

const (
	span     = 16 << 20 // bytes of a request
	parallel = 4        // requests at a time
	attempts = 5        // of each request, from where it stopped
)

// Fetch reads an object in ranges, several at a time, into the new file at path. If a range breaks off, Fetch
// continues it where it stopped. An object that changes meanwhile is an error.
func (t *tree) Fetch(ctx context.Context, name, path string) (err error) {
	info, err := t.store.StatObject(ctx, t.bucket, t.key(name), minio.StatObjectOptions{})
	if err != nil {
		return t.fault(name, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for lo := int64(0); lo < info.Size; lo += span {
		g.Go(func() error { return t.fetchRange(ctx, f, name, info.ETag, lo, min(lo+span, info.Size)) })
	}
	return g.Wait()
}

// fetchRange reads bytes [lo, hi) of an object into the same place of f.
func (t *tree) fetchRange(ctx context.Context, f *os.File, name, etag string, lo, hi int64) error {
	for attempt := 1; ; attempt++ {
		var o minio.GetObjectOptions
		err := errors.Join(o.SetRange(lo, hi-1), o.SetMatchETag(etag))
		var body io.ReadCloser
		if err == nil {
			body, _, _, err = t.store.GetObject(ctx, t.bucket, t.key(name), o)
		}
		if err == nil {
			var n int64
			n, err = io.Copy(io.NewOffsetWriter(f, lo), io.LimitReader(body, hi-lo))
			body.Close()
			if lo += n; lo == hi {
				return nil
			}
			if local := (*fs.PathError)(nil); errors.As(err, &local) {
				return fmt.Errorf("objects: %w", err) // the disk is full
			}
			err = cmp.Or(err, io.ErrUnexpectedEOF)
		}
		switch code := minio.ToErrorResponse(err).Code; {
		case code == "PreconditionFailed":
			return fmt.Errorf("objects: %s: has changed while it was read", t.At(name))
		case attempt == attempts || ctx.Err() != nil || code == "NoSuchKey" || code == "AccessDenied":
			return t.fault(name, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(attempt) * 200 * time.Millisecond):
		}
	}
}

// Put makes an object of bytes.
func (t *tree) Put(ctx context.Context, name string, b []byte) error {
	_, err := t.store.Client.PutObject(ctx, t.bucket, t.key(name), bytes.NewReader(b), int64(len(b)), minio.PutObjectOptions{})
	return t.fault(name, err)
}

// PutFile makes an object of a file; a large one goes in parts. It is there with all of its content or not at all.
func (t *tree) PutFile(ctx context.Context, name, path string) error {
	_, err := t.store.FPutObject(ctx, t.bucket, t.key(name), path, minio.PutObjectOptions{PartSize: span, NumThreads: 2})
	return t.fault(name, err)
}

// PutDir makes objects of the files of a directory, those named last behind all others.
func (t *tree) PutDir(ctx context.Context, dir string, last ...string) error {
	names, err := filesBelow(dir)
	if err != nil {
		return err
	}
	for _, end := range []bool{false, true} {
		for _, name := range names {
			if slices.Contains(last, name) == end {
				if err := t.PutFile(ctx, name, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// remove removes an object.
func (t *tree) remove(ctx context.Context, name string) error {
	return t.fault(name, t.store.RemoveObject(ctx, t.bucket, t.key(name), minio.RemoveObjectOptions{}))
}
