// Package oauth is the authorization server that is built into dodo, and the verifier of the
// tokens it gave.
//
// What it is: the endpoints by which a client over HTTP gets from a registration to a token
// (discovery, registration, authorization, token, revocation, keys), the page that a browser
// waits at meanwhile, what the owner's commands do about logins, and the check of the bearer
// token of each call.
//
// What one may rely on: nobody gets anything without the owner's word on that one login, said
// on this machine, and then only the browser that began it carries the code; a code goes to an
// address that the client registered, compared as bytes, but for the port of a loopback one;
// while client or address are not certain nothing is sent anywhere; every answer says who gives
// it (RFC 9207); only PKCE with S256 is taken; a code is used once, a refresh token again only
// within its grace, and more than that ends the login; an access token counts only while its
// grant, the grant's marker and its client are there, for this issuer and this resource; codes,
// refresh tokens and secrets are kept as hashes; keys that cannot be read are refused and never
// made anew over what is there. Logins that wait for the owner end with the process; all else
// outlives a restart.
//
// What it deliberately does not do: it looks at no Host and no Origin header (but of the form on
// its page) and counts no requests, for the HTTP door does; it knows no workspace and gives
// access to none; it never reuses an earlier word of the owner (ADR 0020); it has one account, no password, no
// session, no userinfo, no introspection, no implicit flow, and verifies no token of others.
package oauth
