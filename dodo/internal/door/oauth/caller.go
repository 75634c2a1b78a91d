package oauth

import (
	"time"

	"localmcp/dodo/internal/contract"
)

// A Caller is who came with a token that holds.
type Caller struct {
	Grant, Client string
	Scopes        contract.Scopes // of the token and of its grant; may be none
	Expires       time.Time       // of the token
}

// String is the form in which a caller travels in op.Call.Caller.
func (c Caller) String() string { return "" }

// ParseCaller reads what String wrote.
func ParseCaller(s string) (Caller, bool) { return Caller{}, false }
