package api

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// worthPacking is the smallest answer that is packed. To pack and unpack a smaller one, such
// as five offers, costs as much as the rest of its call.
const worthPacking = 8 << 10

// packers are reused, since each has half a megabyte of tables.
var packers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("api: " + err.Error())
	}
	return w
}}

// takesGzip reports whether a client takes packed answers. Who weighs codings by a quality
// of 0 does not.
func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, given := strings.CutPrefix(strings.TrimSpace(quality), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			return !given || err == nil && weight > 0
		}
	}
	return false
}

// send writes an answer, packed if the client takes that and it is worth it.
func (c *call) send(status int, kind string, data []byte) error {
	h := c.w.Header()
	h.Set("Content-Type", kind)
	if len(data) >= worthPacking {
		if h.Get("Vary") == "" {
			h.Set("Vary", "Accept-Encoding")
		}
		if takesGzip(c.r) {
			var packed bytes.Buffer
			w := packers.Get().(*gzip.Writer)
			w.Reset(&packed)
			_, err := w.Write(data)
			if err == nil {
				err = w.Close()
			}
			packers.Put(w)
			if err != nil {
				return err
			}
			h.Set("Content-Encoding", "gzip")
			data = packed.Bytes()
		}
	}
	c.rest() // a client may take its time
	h.Set("Content-Length", strconv.Itoa(len(data)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(data) // who has gone need not be told
	return nil
}
