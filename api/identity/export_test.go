package identity

import "time"

// SetGap has the provider be asked again after another time than usual.
func (p *Provider) SetGap(gap time.Duration) { p.gap = gap }
