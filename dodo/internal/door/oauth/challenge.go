package oauth

import (
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Challenge is the value of WWW-Authenticate for a refusal of Verify; nil: no token was sent.
// Where the metadata is comes first, and is absolute: some clients read no further.
func (s *Server) Challenge(f *fault.Error) string {
	value := `Bearer resource_metadata="` + s.cfg.Issuer + resourceMetadata + `/mcp", scope="` + strings.Join(contract.NewScopes(contract.AllScopes...).Words(), " ") + `"`
	if f != nil {
		value += `, error="invalid_token", error_description="` + quotable(f.Error()) + `"`
	}
	return value
}

// quotable leaves in a text what may stand between quotation marks in a challenge (RFC 6750,
// 3).
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			return '\''
		}
		return r
	}, s)
}
