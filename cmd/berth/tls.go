package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
)

// tlsFiles are the files of a service that speaks TLS itself. Without a certificate it
// does not.
type tlsFiles struct {
	cert     string // the chain, the service's own first, in PEM
	key      string
	clientCA string // authorities of clients' certificates; empty asks for none
}

// check refuses files that are only half of what is needed, or do not go together.
func (f *tlsFiles) check() error {
	switch {
	case *f == tlsFiles{}:
		return nil
	case f.cert == "":
		return berth.Errorf(berth.Invalid, "tls-cert", "not given beside the key or the authority of clients; want the FILE of the service's certificate")
	case f.key == "":
		return berth.Errorf(berth.Invalid, "tls-key", "not given beside the certificate %s; want the FILE of its key", f.cert)
	}
	_, err := f.load()
	return err
}

// load reads the files.
func (f *tlsFiles) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "tls-cert", "%s with the key %s: %v", f.cert, f.key, err)
	}
	// What bounds connections and streams is about HTTP/1.
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if f.clientCA == "" {
		return config, nil
	}
	text, err := os.ReadFile(f.clientCA)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "tls-client-ca", "%v", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, berth.Errorf(berth.Invalid, "tls-client-ca", "%s: holds no certificate in PEM", f.clientCA)
	}
	return config, nil
}

// filesEvery is how often the files are looked at, when connections come.
const filesEvery = time.Second

// certificates are what the files say, read again when they have changed. Those that
// cannot be used change nothing, which is logged once: another file may still be written.
type certificates struct {
	files tlsFiles
	data  string // the service's directory, where commands find the certificate
	log   *slog.Logger

	mu     sync.Mutex
	config *tls.Config
	looked time.Time
	seen   string // of the files that config, or the last attempt, is of
}

// certificateFile is the file in a data directory with the certificate that its service
// shows, for commands that work on the directory: they know the service by it.
const certificateFile = "certificate.pem"

func openCertificates(files tlsFiles, data string, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, data: data, log: log, looked: time.Now(), seen: files.stamp()}
	return c, c.use()
}

// use reads the files and goes by them from now on.
func (c *certificates) use() error {
	config, err := c.files.load()
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: config.Certificates[0].Certificate[0]})
	if err := wholefile.Write(filepath.Join(c.data, certificateFile), text); err != nil {
		return err
	}
	c.config = config
	return nil
}

// stamp changes when a file does.
func (f *tlsFiles) stamp() string {
	var text strings.Builder
	for _, path := range []string{f.cert, f.key, f.clientCA} {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&text, "%d %d;", info.ModTime().UnixNano(), info.Size())
		}
	}
	return text.String()
}

// current returns what counts now.
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < filesEvery {
		return c.config
	}
	c.looked = time.Now()
	if now := c.files.stamp(); now != c.seen {
		c.seen = now
		if err := c.use(); err != nil {
			c.log.Warn("the new certificate cannot be used; the old one is shown until it can", "error", err)
		} else {
			c.log.Info("certificate read again", "file", c.files.cert)
		}
	}
	return c.config
}

// serve has a server speak TLS.
func (c *certificates) serve(server *http.Server) {
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){} // no HTTP/2
	server.TLSConfig = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
		GetCertificate:     func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c.current().Certificates[0], nil },
	}
}

// The variables that name what a client needs beyond the authorities of the machine.
const (
	caVar   = "BERTH_CA"
	certVar = "BERTH_CERT"
	keyVar  = "BERTH_KEY"
)

// overTLS returns a client of HTTP for what the variables name, nil if they name nothing.
// shown, if it is not nil, is the one certificate that is trusted.
func overTLS(shown *x509.Certificate) (*http.Client, error) {
	ca, cert, key := os.Getenv(caVar), os.Getenv(certVar), os.Getenv(keyVar)
	if ca == "" && cert == "" && key == "" && shown == nil {
		return nil, nil //nolint:nilnil // the default serves
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, berth.Errorf(berth.Invalid, caVar, "%v", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, berth.Errorf(berth.Invalid, caVar, "%s: holds no certificate in PEM", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, berth.Errorf(berth.Invalid, certVar, "%s with the key %s, which $%s names: %v", cert, key, keyVar, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if shown != nil {
		config.InsecureSkipVerify = true // the name is this machine's; what is compared is the whole certificate
		config.VerifyConnection = func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, shown.Raw) {
				return errors.New("it does not show the certificate that its data directory has")
			}
			return nil
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	return &http.Client{Transport: transport}, nil
}

// shownBy reads the certificate that the service of a data directory shows.
func shownBy(dir string) (*x509.Certificate, error) {
	text, err := os.ReadFile(filepath.Join(dir, certificateFile))
	if err != nil {
		return nil, fmt.Errorf("the certificate of its service cannot be read: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, berth.Errorf(berth.Invalid, "data", "%s holds no certificate", filepath.Join(dir, certificateFile))
	}
	return x509.ParseCertificate(block.Bytes)
}
