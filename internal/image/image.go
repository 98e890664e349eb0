// Command image writes a container image as a tar in the layout of the Open Container Initiative (image-spec 1.1), from a
// folder with what packages install. It needs no container program, and the same input gives the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

func main() {
	var o options
	created := flag.Int64("created", 0, "time of all that is in it, in `SECONDS` since 1970")
	flag.StringVar(&o.arch, "arch", "", "architecture of the program, as Go names it")
	flag.StringVar(&o.version, "version", "", "version of the program")
	flag.StringVar(&o.revision, "revision", "", "commit that the program was built from")
	flag.Parse()
	o.created = time.Unix(*created, 0).UTC()
	if flag.NArg() != 1 || o.arch == "" || o.version == "" {
		fmt.Fprintln(os.Stderr, "usage: image -arch ARCH -version VERSION [-revision COMMIT] [-created SECONDS] FOLDER >image.tar")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.DirFS(flag.Arg(0)), &o); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type options struct {
	arch, version, revision string
	created                 time.Time
}

const (
	// uid is the account of the service in the image, and its group: a number that distributions give no one.
	uid = 65532

	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	noteName     = "org.opencontainers.image.ref.name"
)

// accounts are what programs find out about the account of the service by.
var accounts = map[string]string{
	"etc/passwd": fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nberth:x:%d:%d:Berth:/var/lib/berth:/sbin/nologin\n", uid, uid),
	"etc/group":  fmt.Sprintf("root:x:0:\nberth:x:%d:\n", uid),
}

// folders are what the image has beside the folders of its files, by mode; those with mine belong to the account of the service.
var folders = []struct {
	name string
	mode int64
	mine bool
}{{"etc/berth", 0o755, false}, {"tmp", 0o1777, false}, {"var/lib/berth", 0o700, true}}

// taken is what of the packages the image has: the program, and what it was made of and under which terms.
var taken = []string{"usr/bin/berth", "usr/share/doc/berth"}

type descriptor struct {
	MediaType string            `json:"mediaType"`
	Digest    string            `json:"digest"`
	Size      int64             `json:"size"`
	Platform  *platform         `json:"platform,omitempty"`
	Notes     map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type config struct {
	Created time.Time `json:"created"`
	platform
	Config  run       `json:"config"`
	RootFS  rootFS    `json:"rootfs"`
	History []history `json:"history"`
}

// run is how a container of the image is run.
type run struct {
	User       string
	Ports      map[string]struct{} `json:"ExposedPorts"`
	Env        []string
	Entrypoint []string
	Cmd        []string
	Volumes    map[string]struct{}
	WorkingDir string
	Labels     map[string]string
	StopSignal string
}

type rootFS struct {
	Type  string   `json:"type"`
	Diffs []string `json:"diff_ids"`
}

type history struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Notes         map[string]string `json:"annotations,omitempty"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

// write writes the image of a folder.
func write(w io.Writer, stage fs.FS, o *options) error {
	files, err := filesOf(stage)
	if err != nil {
		return err
	}
	var plain, packed bytes.Buffer
	if err := writeTar(&plain, files, o.created); err != nil {
		return err
	}
	squeeze, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := squeeze.Write(plain.Bytes()); err != nil {
		return err
	}
	if err := squeeze.Close(); err != nil {
		return err
	}

	all := []file{{name: "oci-layout", mode: 0o644, text: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	blob := func(kind string, text []byte) descriptor {
		sum := digest(text)
		all = append(all, file{name: "blobs/sha256/" + strings.TrimPrefix(sum, "sha256:"), mode: 0o644, text: text})
		return descriptor{MediaType: kind, Digest: sum, Size: int64(len(text))}
	}
	document := func(kind string, v any) (descriptor, error) {
		text, err := json.Marshal(v)
		return blob(kind, text), err
	}
	notes := map[string]string{
		"org.opencontainers.image.title":    "berth",
		"org.opencontainers.image.version":  o.version,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://github.com/berth-hpc/berth",
		"org.opencontainers.image.created":  o.created.Format(time.RFC3339),
	}
	if o.revision != "" {
		notes["org.opencontainers.image.revision"] = o.revision
	}
	on := platform{Architecture: o.arch, OS: "linux"}
	m := manifest{SchemaVersion: 2, MediaType: typeManifest, Layers: []descriptor{blob(typeLayer, packed.Bytes())}, Notes: notes}
	m.Config, err = document(typeConfig, &config{
		Created: o.created, platform: on,
		Config: run{
			User: fmt.Sprintf("%d:%d", uid, uid), Ports: map[string]struct{}{"7117/tcp": {}},
			Env:        []string{"PATH=/usr/bin", "HOME=/var/lib/berth", "STATE_DIRECTORY=/var/lib/berth"},
			Entrypoint: []string{"/usr/bin/berth", "serve"}, Cmd: []string{"--config", "/etc/berth/berth.yaml"},
			Volumes: map[string]struct{}{"/var/lib/berth": {}}, WorkingDir: "/var/lib/berth", Labels: notes, StopSignal: "SIGTERM",
		},
		RootFS:  rootFS{Type: "layers", Diffs: []string{digest(plain.Bytes())}},
		History: []history{{o.created, "internal/image"}},
	})
	if err != nil {
		return err
	}
	root, err := document(typeManifest, &m)
	if err != nil {
		return err
	}
	root.Platform, root.Notes = &on, map[string]string{noteName: "berth:" + tag(o.version)}
	text, err := json.Marshal(&index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{root}})
	if err != nil {
		return err
	}
	all = append(all, file{name: "index.json", mode: 0o644, text: text})
	return writeTar(w, all, o.created)
}

// tag returns a version as a tag of an image, which has neither ~ nor +.
func tag(version string) string { return strings.NewReplacer("~", "-", "+", "-").Replace(version) }

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// file is a file of an archive, or a folder.
type file struct {
	name   string // without a slash at its end
	mode   int64
	owner  int
	folder bool
	text   []byte
}

// filesOf returns what the layer has, with the folders of each file, by name.
func filesOf(stage fs.FS) ([]file, error) {
	var files []file
	for _, f := range folders {
		own := file{name: f.name, mode: f.mode, folder: true}
		if f.mine {
			own.owner = uid
		}
		files = append(files, own)
	}
	for name, text := range accounts {
		files = append(files, file{name: name, mode: 0o644, text: []byte(text)})
	}
	for _, top := range taken {
		err := fs.WalkDir(stage, top, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if !info.Mode().IsRegular() {
				return fmt.Errorf("%s: is no regular file", name)
			}
			text, err := fs.ReadFile(stage, name)
			files = append(files, file{name: name, mode: int64(info.Mode().Perm()), text: text})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	there := map[string]bool{".": true}
	for _, f := range files {
		there[f.name] = true
	}
	for _, f := range slices.Clone(files) {
		for dir := path.Dir(f.name); !there[dir]; dir = path.Dir(dir) {
			there[dir] = true
			files = append(files, file{name: dir, mode: 0o755, folder: true})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// writeTar writes an archive of files in their order.
func writeTar(w io.Writer, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for i := range files {
		f := &files[i]
		header := tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.text)), ModTime: at, Format: tar.FormatUSTAR}
		if f.folder {
			header.Typeflag, header.Name = tar.TypeDir, f.name+"/"
		}
		if err := t.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := t.Write(f.text); err != nil {
			return err
		}
	}
	return t.Close()
}
