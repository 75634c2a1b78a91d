// Package httpd is the public door: the one port of this machine on which clients reach dodo
// over HTTP.
//
// What it is: the listener, the guards in front of every route, and the routes (routes.go).
// A request passes, in this order: the names it may call the server by, the web page it may
// come from, how many there are, who it is from, and only then its size and content (spec
// dodo-behaviour 2.7).
//
// What one may rely on: nothing below a guard runs for a request that does not pass it; who
// calls is established anew for each request and never kept for a connection; a flood from
// elsewhere does not use up what this machine's own requests have; headers, bodies,
// connections and waiting are bounded, and a stream is not; a panic ends one request; no
// answer has a path, a stack or a token in it. docs/adr/0021 says why it is so.
//
// What it deliberately does not do: it speaks no TLS (a tunnel or a proxy of the owner does),
// listens on this machine alone, gives nobody the owner's rights, and believes no header
// about where a request came from.
package httpd
