package oauth

import (
	"bytes"
	"crypto/subtle"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

//go:embed page
var pageFiles embed.FS

var pages = template.Must(template.ParseFS(pageFiles, "page/*.html"))

// asset answers with a file of the pages.
func asset(name, kind string) http.HandlerFunc {
	raw, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is built in
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		w.Write(raw)
	}
}

// show writes a page. form are the places, beside our own, that its form may lead to.
func (s *Server) show(w http.ResponseWriter, status int, name, form string, data any) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		s.log.Error("a page could not be made", "page", name, "error", err)
		http.Error(w, "dodo could not make the page", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action "+form)
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer browsers would send the form from nowhere (Origin: null).
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}

// problem tells a person in a browser what is wrong. Nothing is sent to a client.
func (s *Server) problem(w http.ResponseWriter, status int, sentence string) {
	s.show(w, status, "problem.html", "'none'", sentence)
}

func (s *Server) problemOf(w http.ResponseWriter, r *http.Request, err error) {
	f := fault.From(err)
	switch {
	case f.Code == contract.InvalidInput:
		s.problem(w, http.StatusBadRequest, f.Error())
	case f.Code == contract.ResourceLimit:
		w.Header().Set("Retry-After", "60")
		s.problem(w, http.StatusTooManyRequests, f.Error())
	case f.Retryable:
		w.Header().Set("Retry-After", "2")
		s.problem(w, http.StatusServiceUnavailable, f.Error())
	default:
		s.logFailure(r, f)
		s.problem(w, http.StatusInternalServerError, "something went wrong inside dodo; its log says more")
	}
}

// cookieName is the name of the cookie that ties a login to the browser that began it.
const cookieName = "dodo_login"

func (s *Server) cookieName() string {
	if s.secure() {
		return "__Secure-" + cookieName
	}
	return cookieName
}

// cookie is sent back to the page of one login only.
func (s *Server) cookie(id, secret string) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(), Value: secret, Path: "/interaction/" + id, MaxAge: int((consentLife + consentShown).Seconds()),
		HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteLaxMode,
	}
}

const (
	notHere  = "This login is not here any more: it was completed, it ended, or dodo was started again. Begin it again in the client."
	notYours = "This login was begun in another browser. If you did not begin it, do not approve it. If you did, open it where you began it, or begin it again in the client."
)

// own finds the login that a request is about, if its browser began it. Otherwise it has
// answered.
func (s *Server) own(w http.ResponseWriter, r *http.Request) (x waiting, ok bool) {
	var secret string
	if list := r.CookiesNamed(s.cookieName()); len(list) == 1 {
		secret = list[0].Value
	}
	x, found, mine := s.consents.of(r.PathValue("id"), secret)
	switch {
	case !found:
		s.problem(w, http.StatusNotFound, notHere)
	case !mine:
		s.problem(w, http.StatusForbidden, notYours)
	}
	return x, mine
}

// view is what the page shows.
type view struct {
	Consent
	Form     string
	Personal bool
	Custom   bool
	Rights   []string
	Stays    bool
}

// rights says in words what scopes are for.
var rights = []struct{ scope, words string }{
	{string(contract.ScopeRead), "read files, and what dodo knows of your projects"},
	{string(contract.ScopeWrite), "change, make and delete files"},
	{string(contract.ScopeExec), "run commands, and fetch web pages"},
	{scopeOpenID, "know that it is you again, without a name or an address"},
}

// page shows a login to the browser that began it.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	x, ok := s.own(w, r)
	if !ok {
		return
	}
	v := view{
		Consent: x.Consent, Form: x.form, Personal: s.accessMode() == contract.AccessPersonal,
		Custom: x.request.redirect.kind == redirectCustom, Stays: x.request.client.Refresh,
	}
	for _, right := range rights {
		if slices.Contains(x.Scopes, right.scope) {
			v.Rights = append(v.Rights, right.words)
		}
	}
	s.show(w, http.StatusOK, "consent.html", "'self' "+x.request.redirect.source(), v)
}

// status tells the script of the page how far the login is.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	if x, ok := s.own(w, r); ok {
		answer(w, http.StatusOK, map[string]string{"status": string(x.Status)})
	}
}

// complete sends the browser to the client with what the owner answered. It must be the
// browser that began the login, and its page that sends the form.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	x, ok := s.own(w, r)
	if !ok {
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != s.cfg.Issuer {
		s.problem(w, http.StatusForbidden, "The form was sent from another site.")
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		s.problem(w, http.StatusForbidden, "The form was sent from another site.")
		return
	}
	form, wrong := readForm(w, r)
	if wrong != nil || subtle.ConstantTimeCompare([]byte(form.Get("form")), []byte(x.form)) != 1 {
		s.problem(w, http.StatusForbidden, "The form was not sent from the page of this login.")
		return
	}
	if x.Status == ConsentPending {
		w.Header().Set("Location", "/interaction/"+x.ID) // the owner has not answered: the page says so
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	x, ok = s.consents.take(x.ID)
	if !ok {
		s.problem(w, http.StatusConflict, notHere)
		return
	}
	gone := s.cookie(x.ID, "")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	if x.Status == ConsentDenied {
		s.sendBack(w, x.request, url.Values{"error": {"access_denied"}, "error_description": {"the owner denied it"}})
		return
	}
	code := random(secretBytes)
	_, err := s.cfg.Store.AddGrant(r.Context(), state.Login{
		Client: x.request.client, Scopes: x.request.scopes, Resource: x.Resource,
		Code: state.Code{
			Hash: hashOf(code), Redirect: x.Redirect, Challenge: x.request.challenge, Scope: x.request.scope, Nonce: x.request.nonce, Expires: s.now().Add(codeLife),
		},
	})
	switch {
	case errors.Is(err, contract.NotFound):
		s.problem(w, http.StatusForbidden, "The client was deleted meanwhile.")
	case err != nil:
		s.problemOf(w, r, err)
	default:
		s.sendBack(w, x.request, url.Values{"code": {code}})
	}
}
