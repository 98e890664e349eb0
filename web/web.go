// Package web holds the pages of the service for browsers, as they were built from web/ui,
// and serves them. What they show they ask the API for, like any other client; this package
// knows nothing of it.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// pages are the paths of the page application, which finds out itself what to show.
var pages = []string{"/", "/harbour", "/book", "/promises", "/workflow", "/operate", "/laboratory"}

// Handler serves the pages. prefix is the path below which browsers reach the service, such
// as /berth; empty if they reach it at its root. What is no page is for notFound.
func Handler(prefix string, notFound http.Handler) http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("web: " + err.Error()) // it is compiled in
	}
	return handler(files, prefix, notFound)
}

func handler(files fs.FS, prefix string, notFound http.Handler) http.Handler {
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		panic("web: " + err.Error())
	}
	hash := hashOf(files)
	below := "ui/" + hash + "/"
	index = bytes.Replace(index, []byte(`<base href="/" />`), []byte(`<base href="`+html.EscapeString(prefix+"/")+`" />`), 1)
	index = bytes.ReplaceAll(index, []byte(`="./`), []byte(`="`+below))
	mux := http.NewServeMux()
	for _, page := range pages {
		if page == "/" {
			page = "/{$}"
		}
		mux.HandleFunc("GET "+page, func(w http.ResponseWriter, _ *http.Request) { serveIndex(w, index) })
	}
	packed := packedOf(files)
	server := http.StripPrefix("/"+below, http.FileServerFS(files))
	mux.HandleFunc("GET /"+below+"{name}", func(w http.ResponseWriter, r *http.Request) {
		if info, err := fs.Stat(files, r.PathValue("name")); err != nil || info.IsDir() || path.Ext(r.PathValue("name")) == ".html" {
			notFound.ServeHTTP(w, r)
			return
		}
		guard(w.Header(), "default-src 'none'")
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // the hash is part of the path
		w.Header().Set("Vary", "Accept-Encoding")
		if small := packed[r.PathValue("name")]; small != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.PathValue("name"))))
			_, _ = w.Write(small()) // who has gone need not be told
			return
		}
		server.ServeHTTP(w, r)
	})
	mux.Handle("/", notFound)
	return mux
}

// packedOf returns the scripts and styles as browsers prefer them, a third of their size. Each
// is packed when it is asked for first.
func packedOf(files fs.FS) map[string]func() []byte {
	packed := map[string]func() []byte{}
	for _, pattern := range []string{"*.js", "*.css"} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			panic("web: " + err.Error())
		}
		for _, name := range names {
			packed[name] = sync.OnceValue(func() []byte {
				data, err := fs.ReadFile(files, name)
				var out bytes.Buffer
				w := gzip.NewWriter(&out)
				if err == nil {
					_, err = w.Write(data)
				}
				if err = errors.Join(err, w.Close()); err != nil {
					panic("web: " + err.Error()) // the files are compiled in, and memory takes everything
				}
				return out.Bytes()
			})
		}
	}
	return packed
}

// serveIndex answers with the page. Its styles, which the library writes as it goes, are
// allowed by a number of this answer alone.
func serveIndex(w http.ResponseWriter, index []byte) {
	nonce := rand.Text()
	h := w.Header()
	guard(h, strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self' 'nonce-" + nonce + "'", "connect-src 'self'", "img-src 'self' data: blob:",
		"font-src 'self'", "worker-src 'self'", "base-uri 'self'", "form-action 'self'", "frame-ancestors 'none'",
	}, "; "))
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(bytes.Replace(index, []byte(`name="nonce" content=""`), []byte(`name="nonce" content="`+nonce+`"`), 1)) // who has gone need not be told
}

func guard(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// hashOf returns a short hash of all files, which is another one whenever any is.
func hashOf(files fs.FS) string {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		_, _ = fmt.Fprintf(sum, "%s %d\n", name, len(data)) // a hash takes everything
		_, _ = sum.Write(data)
		return err
	})
	if err != nil {
		panic("web: " + err.Error())
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
