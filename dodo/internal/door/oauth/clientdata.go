package oauth

import (
	"fmt"
	"slices"
	"strings"

	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/text"
)

// clientData is what a client says of itself (RFC 7591): when it registers, or in a document
// of its own. What is not here is of no effect; a logo or a link is never shown.
type clientData struct {
	ID            string   `json:"client_id"`
	Name          string   `json:"client_name"`
	Redirects     []string `json:"redirect_uris"`
	Method        string   `json:"token_endpoint_auth_method"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	Application   string   `json:"application_type"`
	Secret        any      `json:"client_secret"`
}

// Bounds of what a client says.
const (
	mostRedirects = 10
	nameRunes     = 80
)

// client makes a client of what it says. Its id, kind and secret are the caller's to set.
func (d clientData) client() (o state.OAuthClient, bad *refusal) {
	if bad := checkRedirects(d.Redirects); bad != nil {
		return o, bad
	}
	if d.GrantTypes != nil && !slices.Contains(d.GrantTypes, typeCode) {
		return o, badData("grant_types must have authorization_code")
	}
	if d.ResponseTypes != nil && !slices.Contains(d.ResponseTypes, "code") {
		return o, badData("response_types must have code")
	}
	if d.Application == "" {
		d.Application = "web"
	}
	if d.Application != "web" && d.Application != "native" {
		return o, badData("application_type is web or native")
	}
	if !slices.Contains(methods, d.Method) {
		return o, badData("token_endpoint_auth_method is one of " + strings.Join(methods, ", "))
	}
	return state.OAuthClient{
		Name: plainName(d.Name), Redirects: d.Redirects, AuthMethod: d.Method, Application: d.Application,
		Refresh: d.GrantTypes == nil || slices.Contains(d.GrantTypes, typeRefresh),
	}, nil
}

func badData(why string) *refusal { return bad("invalid_client_metadata", why) }

func checkRedirects(list []string) *refusal {
	if len(list) == 0 || len(list) > mostRedirects {
		return bad("invalid_redirect_uri", fmt.Sprintf("redirect_uris has 1 to %d addresses", mostRedirects))
	}
	for i, raw := range list {
		if _, why := parseRedirect(raw); why != "" {
			return bad("invalid_redirect_uri", fmt.Sprintf("redirect_uris[%d]: %s", i, why))
		}
	}
	return nil
}

// plainName is a name that can stand on one line of a page or a terminal and turns nothing
// around. It is cut.
func plainName(s string) string {
	if len(s) > 4*nameRunes {
		s = s[:4*nameRunes]
	}
	s = strings.Join(strings.Fields(text.Visible(s)), " ")
	if r := []rune(s); len(r) > nameRunes {
		s = strings.TrimSpace(string(r[:nameRunes-1])) + "\u2026"
	}
	return s
}
