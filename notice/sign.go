package notice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// The headers of Standard Webhooks 1.0.0, https://www.standardwebhooks.com.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

const secretPrefix = "whsec_"

// SecretBytes is how long secrets are that are made here; the specification wants 24 to 64 bytes.
const SecretBytes = 32

// Secret writes down the bytes of a secret.
func Secret(key []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(key) }

// ParseSecret reads what Secret wrote. The error does not have the secret in it.
func ParseSecret(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil || !strings.HasPrefix(text, secretPrefix) {
		return nil, berth.Errorf(berth.Invalid, "secret", "not of the form %s and base64", secretPrefix)
	}
	return key, nil
}

// Signature returns the signature of a message, v1 (HMAC-SHA256): of its id, when it is sent, in
// seconds, and its body. With several keys, as while a secret is rotated, it has several, in
// their order.
func Signature(id string, at berth.Time, body []byte, keys ...[]byte) string {
	var list []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + strconv.FormatInt(int64(at), 10) + ".")) // never fails
		_, _ = mac.Write(body)
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(list, " ")
}
