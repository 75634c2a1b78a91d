// Package web reads pages of the public network.
//
// What it is: the operation fetch_url over the dialer of package egress.
//
// What one may rely on: it is off until the owner allows it. Only https is spoken, with the
// host's certificate checked; five requests at most are made, and every one of them, also
// after a redirect, goes where the owner's rules for the network let it. Nothing of the
// owner's is sent: no cookie, no password, no referrer, no proxy of the system. How much is
// read, how long it takes, what a compressed page becomes and how much of it is shown are
// bounded. What a page says is returned as data and marked so, with characters that are not
// seen made visible.
//
// What it deliberately does not do: it runs no script, so a page that is made by one is
// empty; it draws nothing, and text that a page hides by its style is shown like all other;
// it keeps nothing, so a page is fetched anew each time.
package web
