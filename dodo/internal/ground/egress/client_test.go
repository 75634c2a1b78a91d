package egress_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"localmcp/dodo/internal/ground/egress"
)

// TestClient: requests go where the owner lets them, also when an answer sends them on.
func TestClient(t *testing.T) {
	hidden := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer hidden.Close()
	open := httptest.NewServer(http.RedirectHandler(hidden.URL, http.StatusFound))
	defer open.Close()
	d, err := egress.New(egress.Config{Allow: []string{open.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTP_PROXY", hidden.URL)
	for _, url := range []string{open.URL, hidden.URL} {
		if r, err := d.Client(5 * time.Second).Get(url); err == nil {
			r.Body.Close()
			t.Errorf("%s: %s", url, r.Status)
		}
	}
}
