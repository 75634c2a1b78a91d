package oauth

import (
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// bodyBytes bounds what a request may bring.
const bodyBytes = 64 << 10

// answer writes JSON that nobody keeps.
func answer(w http.ResponseWriter, status int, v any) {
	raw, err := jsonv2.Marshal(v, jsonv2.Deterministic(true))
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	w.WriteHeader(status)
	w.Write(raw)
}

// A refusal is an error as OAuth writes it.
type refusal struct {
	status      int
	code        string
	description string
}

func (r *refusal) Error() string { return r.code + ": " + r.description }

func bad(code, description string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: code, description: description}
}

func refuse(w http.ResponseWriter, status int, code, description string) {
	answer(w, status, map[string]string{"error": code, "error_description": description})
}

// fail answers with an error. denied is the code for what the state says is not good.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error, denied string) {
	var ours *refusal
	if errors.As(err, &ours) {
		refuse(w, ours.status, ours.code, ours.description)
		return
	}
	f := fault.From(err)
	switch {
	case f.Code == contract.AuthRequired:
		refuse(w, http.StatusBadRequest, denied, quotable(f.Error()))
	case f.Code == contract.ResourceLimit:
		w.Header().Set("Retry-After", "60")
		refuse(w, http.StatusTooManyRequests, "temporarily_unavailable", quotable(f.Error()+"; "+f.Hint))
	case f.Retryable:
		w.Header().Set("Retry-After", "2")
		refuse(w, http.StatusServiceUnavailable, "temporarily_unavailable", quotable(f.Error()))
	default:
		s.logFailure(r, f)
		refuse(w, http.StatusInternalServerError, "server_error", "something went wrong inside dodo; its log says more")
	}
}

// logFailure notes what nobody outside is told. Who went away before the answer is no failure.
func (s *Server) logFailure(r *http.Request, f *fault.Error) {
	if r.Context().Err() != nil {
		return
	}
	s.log.LogAttrs(r.Context(), slog.LevelError, "an OAuth request failed", slog.String("path", r.URL.Path), slog.String("code", string(f.Code)),
		slog.String("error", f.Error()), slog.Any("cause", f.Err))
}

// readForm reads the parameters in the body of a request, each at most once but for the names
// that may come often.
func readForm(w http.ResponseWriter, r *http.Request, often ...string) (url.Values, *refusal) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, bad("invalid_request", "the body must be application/x-www-form-urlencoded")
	}
	raw, err := readBody(w, r)
	if err != nil {
		return nil, &refusal{status: http.StatusRequestEntityTooLarge, code: "invalid_request", description: "the body is too large or broke off"}
	}
	return parseForm(string(raw), often...)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytes))
}

// parseForm reads parameters. One that is there twice is refused (RFC 6749, 3.1), for two
// readers might each take another one; those that may come often are named.
func parseForm(raw string, often ...string) (url.Values, *refusal) {
	form, err := url.ParseQuery(raw)
	if err != nil || len(raw) > bodyBytes {
		return nil, bad("invalid_request", "the parameters cannot be read")
	}
	for name, values := range form {
		if len(values) > 1 && (!slices.Contains(often, name) || len(values) > mostValues) {
			return form, bad("invalid_request", quotable(short(name, 40))+" is there too often")
		}
	}
	return form, nil
}

// mostValues bounds how often a parameter may come.
const mostValues = 8

// short cuts a text for a message.
func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}
