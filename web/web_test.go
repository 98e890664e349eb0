package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/nodetest"
)

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return rec
}

// The page names files that exist alone, below the path of the service, and may load nothing
// from elsewhere and run nothing that stands in it.
func TestThePageIsWhole(t *testing.T) {
	for _, prefix := range []string{"", "/berth"} {
		h := Handler(prefix, http.NotFoundHandler())
		page := get(h, "/")
		text := page.Body.String()
		if page.Code != 200 || !strings.Contains(text, `<base href="`+prefix+`/" />`) || page.Header().Get("Cache-Control") != "no-cache" {
			t.Fatalf("%q: %d %v\n%s", prefix, page.Code, page.Header(), text)
		}
		files := regexp.MustCompile(`(?:src|href)="(ui/[^"]+)"`).FindAllStringSubmatch(text, -1)
		if len(files) < 2 {
			t.Fatalf("%d files in\n%s", len(files), text)
		}
		for _, f := range files {
			file := get(h, "/"+f[1])
			if file.Code != 200 || !strings.Contains(file.Header().Get("Cache-Control"), "immutable") || file.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %d %v", f[1], file.Code, file.Header())
			}
		}
		if strings.Contains(text, "<style") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(text) || regexp.MustCompile(`https?://`).MatchString(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")) {
			t.Errorf("the page has something in it that its policy forbids:\n%s", text)
		}
		nonce := regexp.MustCompile(`name="nonce" content="(\w+)"`).FindStringSubmatch(text)
		policy := page.Header().Get("Content-Security-Policy")
		if nonce == nil || !strings.Contains(policy, "style-src 'self' 'nonce-"+nonce[1]+"'") {
			t.Fatalf("nonce %v, policy %s", nonce, policy)
		}
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'self'", "connect-src 'self'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("the policy lacks %s: %s", part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || page.Header().Get("Referrer-Policy") != "no-referrer" || page.Header().Get("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Error(page.Header())
		}
		if again := get(h, "/book").Body.String(); !strings.Contains(again, "<base") || strings.Contains(again, nonce[1]) {
			t.Error("the nonce is that of another answer")
		}
	}
}

// Browsers get the scripts and styles packed, others as they are.
func TestFilesArePacked(t *testing.T) {
	h := Handler("", http.NotFoundHandler())
	hash := regexp.MustCompile(`ui/(\w+)/`).FindStringSubmatch(get(h, "/").Body.String())[1]
	for _, name := range []string{"index.js", "index.css", "licences.txt"} {
		request := httptest.NewRequest(http.MethodGet, "/ui/"+hash+"/"+name, http.NoBody)
		request.Header.Set("Accept-Encoding", "gzip, br")
		small, plain := httptest.NewRecorder(), get(h, "/ui/"+hash+"/"+name)
		h.ServeHTTP(small, request)
		if small.Code != 200 || small.Header().Get("Vary") != "Accept-Encoding" || small.Header().Get("Content-Type") != plain.Header().Get("Content-Type") || plain.Header().Get("Content-Encoding") != "" {
			t.Fatalf("%s: %d %v, plain %v", name, small.Code, small.Header(), plain.Header())
		}
		if packed := small.Header().Get("Content-Encoding") == "gzip"; packed != (name != "licences.txt") {
			t.Fatalf("%s: packed is %t", name, packed)
		} else if packed {
			in, err := gzip.NewReader(small.Body)
			if err != nil {
				t.Fatal(err)
			}
			if data, err := io.ReadAll(in); err != nil || !bytes.Equal(data, plain.Body.Bytes()) || 2*small.Body.Len() > len(data) {
				t.Errorf("%s: %d bytes of %d, %v", name, len(data), plain.Body.Len(), err)
			}
		}
	}
}

func TestWhatIsNoPageIsNotFound(t *testing.T) {
	h := Handler("", http.NotFoundHandler())
	hash := regexp.MustCompile(`ui/(\w+)/`).FindStringSubmatch(get(h, "/").Body.String())[1]
	for _, path := range []string{"/x", "/ui/", "/ui/" + hash, "/ui/" + hash + "/", "/ui/" + hash + "/x.js", "/ui/" + hash + "/index.html", "/ui/0123456789abcdef/index.js", "/dist/index.js", "/index.html", "/ui/" + hash + "/..%2fweb.go"} {
		if rec := get(h, path); rec.Code != 404 {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	if rec.Code == 200 {
		t.Error("POST / is answered")
	}
}

// The first load stays within 260 kB, packed, and all that can be loaded within 350 kB. What
// scripts of the first load import is named by the page, so that no file waits for another.
func TestTheFirstLoadIsSmall(t *testing.T) {
	const first, most = 260_000, 350_000
	page, err := fs.ReadFile(dist, "dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	named := []string{"index.html"}
	for _, f := range regexp.MustCompile(`(?:src|href)="\./([^"]+)"`).FindAllStringSubmatch(string(page), -1) {
		named = append(named, f[1])
	}
	atFirst, all := 0, 0
	entries, err := dist.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "build.json" || e.Name() == "licences.txt" {
			continue // no page loads them
		}
		data, err := fs.ReadFile(dist, "dist/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(data)
		_ = w.Close()
		all += packed.Len()
		if !slices.Contains(named, e.Name()) {
			continue
		}
		atFirst += packed.Len()
		for _, imported := range regexp.MustCompile(`(?:from|import)"\./([^"]+)"`).FindAllStringSubmatch(string(data), -1) {
			if !slices.Contains(named, imported[1]) {
				t.Errorf("%s imports %s, which the page does not name", e.Name(), imported[1])
			}
		}
	}
	if atFirst > first || all > most {
		t.Errorf("the first load is %d bytes, packed, and all pages are %d; want at most %d and %d", atFirst, all, first, most)
	}
	t.Logf("the first load is %d bytes, packed, and all pages are %d", atFirst, all)
}

// The build is of the sources that stand beside it. This needs no Node: vite.config.ts notes
// a hash of the same list.
func TestTheBuildIsOfTheseSources(t *testing.T) {
	sources := []string{"index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"}
	entries, err := os.ReadDir("ui/src")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		sources = append(sources, "src/"+e.Name())
	}
	sum := sha256.New()
	for _, name := range sources {
		data, err := os.ReadFile(filepath.Join("ui", name))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(sum, "%s\n%s\n", name, data)
	}
	data, err := dist.ReadFile("dist/build.json")
	if err != nil {
		t.Fatal(err)
	}
	var build struct{ Sources string }
	if err := json.Unmarshal(data, &build); err != nil {
		t.Fatal(err)
	}
	if is := hex.EncodeToString(sum.Sum(nil)); is != build.Sources {
		t.Errorf("web/dist is of other sources than web/ui has: run make web, and commit both")
	}
}

// The sources pass their own tests, and build what is in the repository, byte for byte.
func TestTheBuildIsRepeated(t *testing.T) {
	if testing.Short() {
		t.Skip("short: npm fetches what the pages are built from")
	}
	nodetest.Need(t)
	folder := t.TempDir()
	ui := filepath.Join(folder, "ui")
	for _, name := range []string{"index.html", "package.json", "package-lock.json", "tsconfig.json", "tsconfig.test.json", "vite.config.ts"} {
		copyTo(t, filepath.Join("ui", name), filepath.Join(ui, name))
	}
	for _, part := range []string{"src", "test"} {
		entries, err := os.ReadDir(filepath.Join("ui", part))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			copyTo(t, filepath.Join("ui", part, e.Name()), filepath.Join(ui, part, e.Name()))
		}
	}
	if out, err := npm(t, ui, "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		nodetest.Absent(t, fmt.Sprintf("web/dist is not rebuilt: npm ci: %v: %.1000s", err, out))
	}
	if out, err := npm(t, ui, "test"); err != nil {
		t.Fatalf("the tests of the pages: %v\n%s", err, out)
	}
	if out, err := npm(t, ui, "run", "build"); err != nil {
		t.Fatalf("npm run build: %v\n%s", err, out)
	}
	built, err := os.ReadDir(filepath.Join(folder, "dist"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	if len(built) != len(kept) {
		t.Errorf("%d files are built, %d are in web/dist", len(built), len(kept))
	}
	for _, e := range built {
		is, err := os.ReadFile(filepath.Join(folder, "dist", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		was, err := os.ReadFile(filepath.Join("dist", e.Name()))
		if err != nil || !bytes.Equal(is, was) {
			t.Errorf("web/dist/%s is not what is built (%d and %d bytes): run make web, and commit it: %v", e.Name(), len(was), len(is), err)
		}
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func npm(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "npm", args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	return string(out), err
}
