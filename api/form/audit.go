package form

// Audited is what was asked for, by whom, and how it came in. Kind is empty of what was answered without a decision.
type Audited struct {
	Number  uint64 `json:"number"` // of the record
	At      Time   `json:"at"`
	User    string `json:"user"`
	Role    string `json:"role"`
	Token   string `json:"token,omitempty"`
	Scopes  string `json:"scopes,omitempty"` // that the token was good for, with commas between them; all if it is missing
	Address string `json:"address,omitempty"`
	Call    string `json:"call,omitempty"` // its X-Request-Id
	Kind    string `json:"kind,omitempty"`
	ID      string `json:"id,omitempty"` // of what it was about
}

// Audit is a page of what was asked for, in order. Next is the page after this.
type Audit struct {
	Records []Audited `json:"records"`
	Next    string    `json:"next,omitempty"`
}
