package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var issued = time.Now().UnixNano()

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = a.sign(t, template)
	return a
}

// sign makes a key and a certificate of it, which an authority without one signs itself.
func (a *authority) sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by, with := template, key
	if a.cert != nil {
		by, with = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, with)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// issue writes a certificate of a name and its key into files.
func (a *authority) issue(t *testing.T, name, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	issued++
	cert, key := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(issued), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert.Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert
}

// spoken runs a command and returns its exit code and all that it says.
func spoken(args ...string) (int, string) {
	var out bytes.Buffer
	code := run(args, strings.NewReader(""), &out, &out)
	return code, out.String()
}

// A service that speaks TLS itself: to clients that know its authority, with a new
// certificate as soon as its files are replaced, and only to clients with certificates
// where that is asked for.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ours, others := newAuthority(t), newAuthority(t)
	for name, a := range map[string]*authority{"ca.pem": ours, "others.pem": others} {
		if err := os.WriteFile(file(name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := ours.issue(t, "one.example.org", file("cert.pem"), file("key.pem"))
	ours.issue(t, "alice", file("alice.pem"), file("alice.key"))
	others.issue(t, "mallory", file("mallory.pem"), file("mallory.key"))
	t.Setenv("XDG_CONFIG_HOME", file("settings"))
	data := file("data")
	start := func(more ...string) (address string, end func()) {
		ctx, stop := context.WithCancel(t.Context())
		a := &app{args: append([]string{"serve", "--data", data, "--cores", "1", "--listen", "127.0.0.1:0", "--tls-cert", file("cert.pem"), "--tls-key", file("key.pem")}, more...)}
		a.stdin = strings.NewReader("")
		a.stdout, a.stderr = &bytes.Buffer{}, &bytes.Buffer{}
		done := make(chan int, 1)
		go func() { done <- a.report(a.root().ExecuteContext(ctx)) }()
		for deadline := time.Now().Add(longest); ; time.Sleep(10 * time.Millisecond) {
			if text, err := os.ReadFile(filepath.Join(data, addressFile)); err == nil {
				address = strings.TrimSpace(string(text))
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the service does not start")
			}
		}
		return address, func() {
			stop()
			<-done
		}
	}
	token := filepath.Join(data, "operator.token")

	address, end := start()
	if !strings.HasPrefix(address, "https://") {
		t.Fatalf("the service is at %s", address)
	}
	if code, said := spoken("list", "--server", address, "--token-file", token); code != exitUnreachable || !strings.Contains(said, "certificate") {
		t.Errorf("without its authority: %d, %s", code, said)
	}
	t.Setenv(caVar, file("ca.pem"))
	if code, said := spoken("list", "--server", address, "--token-file", token); code != exitOK || strings.Contains(said, "warning") {
		t.Errorf("with its authority: %d, %s", code, said)
	}
	answer, err := http.Get("http" + strings.TrimPrefix(address, "https") + "/readyz")
	if err == nil {
		if answer.Body.Close(); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", answer.Status)
		}
	}
	t.Setenv(caVar, "")
	if code, said := spoken("journal", "compact", "--data", data); code != exitOK { // knows the certificate by the directory
		t.Errorf("compact: %d, %s", code, said)
	}

	// A new certificate, at first only half of it.
	shows := func() (*x509.Certificate, error) {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(address, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0], nil
	}
	until := func(want *x509.Certificate) {
		t.Helper()
		for deadline := time.Now().Add(longest); ; time.Sleep(50 * time.Millisecond) {
			got, err := shows()
			if err == nil && got.Equal(want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("it shows another certificate", err)
			}
		}
	}
	until(first)
	second := ours.issue(t, "two.example.org", file("new.pem"), file("new.key"))
	if err := os.Rename(file("new.pem"), file("cert.pem")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(filesEvery + 100*time.Millisecond) // it has looked once more
	until(first)
	if err := os.Rename(file("new.key"), file("key.pem")); err != nil {
		t.Fatal(err)
	}
	until(second)
	if code, said := spoken("journal", "compact", "--data", data); code != exitOK {
		t.Errorf("compact with the new certificate: %d, %s", code, said)
	}
	end()

	address, end = start("--tls-client-ca", file("ca.pem"))
	defer end()
	t.Setenv(caVar, file("ca.pem"))
	for _, c := range []struct {
		name string
		want int
	}{{"", exitUnreachable}, {"mallory", exitUnreachable}, {"alice", exitOK}} {
		t.Setenv(certVar, "")
		t.Setenv(keyVar, "")
		if c.name != "" {
			t.Setenv(certVar, file(c.name+".pem"))
			t.Setenv(keyVar, file(c.name+".key"))
		}
		if code, said := spoken("list", "--server", address, "--token-file", token); code != c.want {
			t.Errorf("as %q: %d, %s", c.name, code, said)
		}
	}
	t.Setenv(keyVar, file("no such file"))
	if code, said := spoken("list", "--server", address, "--token-file", token); code != exitUsage || !strings.Contains(said, certVar) {
		t.Errorf("without a key: %d, %s", code, said)
	}
	if _, err := overTLS(nil); err == nil || errors.Is(err, os.ErrExist) {
		t.Errorf("without a key: %v", err)
	}
}
