package identity

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/berth-hpc/berth"
)

// Tokens takes JSON web tokens of a site's Slurm: HS256 with the key of AuthAltParameters=jwt_key, the
// user in the claim sun. It is safe for concurrent use.
type Tokens struct{ key []byte }

const (
	// minKey is the least key of HS256, by RFC 7518, section 3.2; Slurm asks for the same.
	minKey = 32
	maxKey = 4096
	// jwtLeeway is by how much clocks may differ.
	jwtLeeway = 5 * time.Second
)

// ReadKey reads the key from its file, as Slurm does: all of its bytes. The error is of code Invalid.
func ReadKey(path string) (*Tokens, error) {
	key, err := os.ReadFile(path)
	switch {
	case err != nil:
		return nil, berth.Errorf(berth.Invalid, "slurm_jwt", "%v; want the file of jwt_key in AuthAltParameters of slurm.conf, readable for the service", err)
	case len(key) < minKey || len(key) > maxKey:
		return nil, berth.Errorf(berth.Invalid, "slurm_jwt", "%s: %d bytes; want a key of %d to %d", path, len(key), minKey, maxKey)
	}
	return &Tokens{key}, nil
}

// slurmClaims is what Slurm says in a token.
type slurmClaims struct {
	jwt.RegisteredClaims
	User string `json:"sun"` // the Slurm user name
}

// check returns whose token it is and until when it is good.
func (t *Tokens) check(text string, now berth.Time) (user string, expires berth.Time, err error) {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(jwtLeeway),
		jwt.WithTimeFunc(func() time.Time { return time.Unix(int64(now), 0) }))
	var claims slurmClaims
	_, err = parser.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) { return t.key, nil })
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return "", 0, noToken("has expired; scontrol token makes another one")
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return "", 0, noToken("was signed with another key than this site's")
	case err != nil:
		return "", 0, noToken(fmt.Sprintf("is no good: %v", err))
	case claims.User == "":
		return "", 0, noToken("names no user in its claim sun")
	}
	return claims.User, berth.Time(claims.ExpiresAt.Unix()), nil
}

func noToken(why string) error {
	return berth.Errorf(berth.Denied, "Authorization", "the Slurm token %s", why)
}
