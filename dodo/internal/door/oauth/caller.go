package oauth

import (
	"strconv"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
)

// A Caller is who came with a token that holds.
type Caller struct {
	Grant, Client string
	Scopes        contract.Scopes // of the token and of its grant; may be none
	Expires       time.Time       // of the token
}

// callerMark begins the written form of a caller.
const callerMark = "oauth"

// String is the form in which a caller travels in op.Call.Caller.
func (c Caller) String() string {
	return strings.Join([]string{callerMark, c.Grant, strconv.FormatInt(c.Expires.Unix(), 10), strings.Join(c.Scopes.Words(), ","), c.Client}, " ")
}

// ParseCaller reads what String wrote, and nothing else.
func ParseCaller(s string) (c Caller, ok bool) {
	f := strings.Split(s, " ")
	if len(f) != 5 || f[0] != callerMark || f[1] == "" || f[4] == "" {
		return Caller{}, false
	}
	expires, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return Caller{}, false
	}
	c = Caller{Grant: f[1], Client: f[4], Expires: time.Unix(expires, 0).UTC()}
	if f[3] != "" {
		if c.Scopes, ok = contract.ParseScopes(strings.Split(f[3], ",")); !ok {
			return Caller{}, false
		}
	}
	if c.String() != s {
		return Caller{}, false
	}
	return c, true
}
