package dst

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// plantedTold are more faults of series, of notices and of the limits of a QOS.
var plantedTold = []plantedFault{
	{about: "a series has one occurrence more than was asked for", seed: 1, needs: []string{featureSeries}, says: "/v1/series", plant: func() *plant {
		return rewriting(http.MethodPost, "/v1/series", func(body []byte) []byte {
			return ofTimes.ReplaceAllFunc(body, func(is []byte) []byte {
				var n int
				_, _ = fmt.Sscanf(string(is), `"times":%d`, &n) // which matches
				return fmt.Appendf(nil, `"times":%d`, n+1)
			})
		})
	}},
	{about: "a series is promised again when its call is repeated", seed: 1, needs: []string{featureSeries, faultRepeat}, says: "POST /v1/series", plant: func() *plant { return keyless("/v1/series") }},
	{about: "a notice goes to a receiver of another user", seed: 7, needs: []string{featureNotice}, says: "and is of", plant: toOthers},
	{about: "a notice says that what was lost has ended", seed: 7, needs: []string{featureNotice}, says: "was told", plant: lostAsEnded},
	{about: "one reservation more than the limit of a QOS is promised", seed: 7, needs: []string{featureLimit}, says: "allows", plant: func() *plant {
		return &plant{config: func(c engine.Config) engine.Config {
			c.Limits = slices.Clone(c.Limits)
			for i := range c.Limits {
				if c.Limits[i].Name == policy.LimitActive && c.Limits[i].QOS == capped {
					c.Limits[i].Value++
				}
			}
			return c
		}}
	}},
	{about: "a request loses its QOS", seed: 4, needs: []string{featureLimit}, says: "qos", plant: func() *plant {
		return rewriting(http.MethodPost, "/v1/requests", func(body []byte) []byte { return ofQOS.ReplaceAll(body, nil) })
	}},
}

var (
	ofTimes = regexp.MustCompile(`"times":\d+`)
	ofQOS   = regexp.MustCompile(`,"qos":"[a-z]+"`)
)

// toOthers has each notice go to the receiver of another user as well.
func toOthers() *plant {
	return &plant{told: func(m service.Messenger, _ int) service.Messenger {
		return messenger{m, func(m service.Messenger, ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
			for _, r := range newReceivers() {
				if r.user != hook.User {
					other := *hook
					other.ID = r.id
					m.Send(ctx, &other, o)
					break
				}
			}
			return m.Send(ctx, hook, o)
		}}
	}}
}

// lostAsEnded has notices of what was lost be sent as of what has ended.
func lostAsEnded() *plant {
	return &plant{told: func(m service.Messenger, _ int) service.Messenger {
		return messenger{m, func(m service.Messenger, ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
			if o.Kind == notice.Lost {
				other := *o
				other.Kind, o = notice.Ended, &other
			}
			return m.Send(ctx, hook, o)
		}}
	}}
}
