package api

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	return c.write(status, data)
}

// sendAs writes an answer that is packed already, or plain.
func (c *call) sendAs(status int, kind string, data []byte, packed bool) error {
	h := c.w.Header()
	h.Set("Content-Type", kind)
	if h.Get("Vary") == "" {
		h.Set("Vary", "Accept-Encoding")
	}
	if packed {
		h.Set("Content-Encoding", "gzip")
	}
	return c.write(status, data)
}

func (c *call) write(status int, data []byte) error {
	c.rest() // a client may take its time
	c.w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(data) // who has gone need not be told
	return nil
}

// section is a part of what is packed, on whose packed form the others do not depend.
type section struct {
	data   []byte
	packed []byte // nil if it has to be made
}

// sectionSize is what is packed at a time, so that several processors can.
const sectionSize = 128 << 10

// deflaters are reused, since each has half a megabyte of tables.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic("api: " + err.Error())
	}
	return w
}}

// packed returns the gzip form (RFC 1952) of data, which consists of the sections, or is
// divided if there are none; those that were not packed are, each for itself, on all
// processors.
func packed(data []byte, sections []section) ([]byte, error) {
	if sections == nil {
		for part := range slices.Chunk(data, sectionSize) {
			sections = append(sections, section{data: part})
		}
	}
	workers := min(runtime.GOMAXPROCS(0), len(sections))
	failed := make([]error, workers)
	var next atomic.Int64
	work := func(worker int) {
		w := deflaters.Get().(*flate.Writer)
		defer deflaters.Put(w)
		for i := int(next.Add(1)) - 1; i < len(sections); i = int(next.Add(1)) - 1 {
			s := &sections[i]
			if s.packed != nil {
				continue
			}
			var out bytes.Buffer
			w.Reset(&out)
			_, err := w.Write(s.data)
			if err == nil {
				err = w.Flush() // ends on a whole byte, and refers to nothing before
			}
			if err != nil {
				failed[worker] = err
				return
			}
			s.packed = out.Bytes()
		}
	}
	var working sync.WaitGroup
	for worker := 1; worker < workers; worker++ {
		working.Go(func() { work(worker) })
	}
	work(0)
	working.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	size := 32
	for i := range sections {
		size += len(sections[i].packed)
	}
	out := append(make([]byte, 0, size), 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255) // deflated, fast, of no system
	for i := range sections {
		out = append(out, sections[i].packed...)
	}
	out = append(out, 1, 0, 0, 0xff, 0xff) // an empty block, the last one
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(data))
	return binary.LittleEndian.AppendUint32(out, uint32(len(data))), nil
}
