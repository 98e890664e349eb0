package policy

// NewForgetfulMGA returns mga, which works out each area whenever it needs it.
func NewForgetfulMGA(o BatchOptions) Batch { return mga{options: o} }
