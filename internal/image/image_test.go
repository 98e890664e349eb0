package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// entry is a file of an archive as a program that reads it finds it.
type entry struct {
	header *tar.Header
	text   string
}

func unpack(t *testing.T, r io.Reader) (list []entry) {
	t.Helper()
	for in := tar.NewReader(r); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, entry{header, string(text)})
	}
}

func installed() fstest.MapFS {
	return fstest.MapFS{
		"usr/bin/berth":                           {Data: []byte("program"), Mode: 0o755},
		"usr/share/doc/berth/LICENSE":             {Data: []byte("terms"), Mode: 0o644},
		"usr/share/doc/berth/sbom.cdx.json":       {Data: []byte("{}"), Mode: 0o644},
		"usr/share/man/man1/berth.1.gz":           {Data: []byte("manual"), Mode: 0o644},
		"usr/lib/systemd/system/berth.service":    {Data: []byte("unit"), Mode: 0o644},
		"usr/share/bash-completion/completions/b": {Data: []byte("words"), Mode: 0o644},
	}
}

// What the index names is there, of the size and hash that is said, down to the layer; that has the program, what it was
// made of, its account and its folders. The same input gives the same bytes, whenever its files were written.
func TestTheImageIsWhatItSays(t *testing.T) {
	o := options{arch: "amd64", version: "1.2.0~rc1+b", revision: "c0ffee", created: time.Unix(1_700_000_000, 0).UTC()}
	var out, again bytes.Buffer
	later := installed()
	for _, f := range later {
		f.ModTime = time.Unix(1_800_000_000, 0)
	}
	if err := errors.Join(write(&out, installed(), &o), write(&again, later, &o)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("the image is another the second time")
	}
	parts := map[string]string{}
	for _, e := range unpack(t, &out) {
		parts[e.header.Name] = e.text
		if sum, is := strings.CutPrefix(e.header.Name, "blobs/sha256/"); is && digest([]byte(e.text)) != "sha256:"+sum {
			t.Errorf("%s has another hash", e.header.Name)
		}
	}
	if parts["oci-layout"] != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("its layout is %s", parts["oci-layout"])
	}
	named := 0
	read := func(d descriptor, kind string) []byte {
		t.Helper()
		named++
		text, is := parts["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if !is || int64(len(text)) != d.Size || d.MediaType != kind {
			t.Fatalf("%+v is not there, or is %d bytes", d, len(text))
		}
		return []byte(text)
	}
	decode := func(text []byte, v any) {
		t.Helper()
		if err := json.Unmarshal(text, v); err != nil {
			t.Fatalf("%v of %s", err, text)
		}
	}
	var top index
	decode([]byte(parts["index.json"]), &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Notes[noteName] != "berth:1.2.0-rc1-b" || *top.Manifests[0].Platform != (platform{"amd64", "linux"}) {
		t.Fatalf("its index is %+v", top)
	}
	var m manifest
	decode(read(top.Manifests[0], typeManifest), &m)
	var c config
	decode(read(m.Config, typeConfig), &c)
	if c.Architecture != "amd64" || c.OS != "linux" || c.Config.User != "65532:65532" || !slices.Equal(append(c.Config.Entrypoint, c.Config.Cmd...), []string{"/usr/bin/berth", "serve", "--config", "/etc/berth/berth.yaml"}) ||
		len(c.Config.Volumes) != 1 || c.Config.Labels["org.opencontainers.image.revision"] != "c0ffee" {
		t.Errorf("it is run as %+v", c)
	}
	packed, err := gzip.NewReader(bytes.NewReader(read(m.Layers[0], typeLayer)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Layers) != 1 || len(c.RootFS.Diffs) != 1 || c.RootFS.Diffs[0] != digest(plain) {
		t.Errorf("its layers are %+v, unpacked %v", m.Layers, c.RootFS.Diffs)
	}
	if blobs := len(parts) - 2; blobs != named {
		t.Errorf("it has %d blobs, and names %d", blobs, named)
	}

	type about struct {
		kind  byte
		mode  int64
		owner int
	}
	want := map[string]about{
		"etc/": {tar.TypeDir, 0o755, 0}, "etc/berth/": {tar.TypeDir, 0o755, 0}, "etc/group": {tar.TypeReg, 0o644, 0}, "etc/passwd": {tar.TypeReg, 0o644, 0}, "tmp/": {tar.TypeDir, 0o1777, 0},
		"usr/": {tar.TypeDir, 0o755, 0}, "usr/bin/": {tar.TypeDir, 0o755, 0}, "usr/bin/berth": {tar.TypeReg, 0o755, 0}, "usr/share/": {tar.TypeDir, 0o755, 0}, "usr/share/doc/": {tar.TypeDir, 0o755, 0},
		"usr/share/doc/berth/": {tar.TypeDir, 0o755, 0}, "usr/share/doc/berth/LICENSE": {tar.TypeReg, 0o644, 0}, "usr/share/doc/berth/sbom.cdx.json": {tar.TypeReg, 0o644, 0},
		"var/": {tar.TypeDir, 0o755, 0}, "var/lib/": {tar.TypeDir, 0o755, 0}, "var/lib/berth/": {tar.TypeDir, 0o700, uid},
	}
	got := map[string]about{}
	for _, e := range unpack(t, bytes.NewReader(plain)) {
		h := e.header
		got[h.Name] = about{h.Typeflag, h.Mode, h.Uid}
		if h.Gid != h.Uid || !h.ModTime.Equal(o.created) {
			t.Errorf("%s is of group %d and of %s", h.Name, h.Gid, h.ModTime)
		}
		if dir := path.Dir(strings.TrimSuffix(h.Name, "/")); dir != "." && got[dir+"/"].kind != tar.TypeDir {
			t.Errorf("%s comes before its folder", h.Name)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("its layer has %v, want %v", got, want)
	}
}

// Without the program there is no image, and a link, whose target may be elsewhere, is refused.
func TestNoImageOfWhatIsMissing(t *testing.T) {
	o := options{arch: "amd64", version: "1"}
	none := installed()
	delete(none, "usr/bin/berth")
	linked := installed()
	linked["usr/share/doc/berth/NOTICE"] = &fstest.MapFile{Data: []byte("../../../../etc/shadow"), Mode: 0o777 | fs.ModeSymlink}
	for want, stage := range map[string]fstest.MapFS{"usr/bin/berth": none, "NOTICE: is no regular file": linked} {
		if err := write(io.Discard, stage, &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
