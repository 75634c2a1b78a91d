package httpd_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"localmcp/dodo/internal/door/httpd"
)

// everybody lets in whoever has a token, by its name.
type everybody struct{}

func (everybody) Verify(_ context.Context, bearer string) (httpd.Who, error) {
	return httpd.Who{Caller: bearer, Owner: bearer}, nil
}
func (everybody) Challenge(error) string { return "Bearer" }
func (everybody) Handler() http.Handler  { return http.NotFoundHandler() }
func (everybody) Paths() []string        { return nil }

// TestOneLoginLeavesRoom: the requests of one login that are not answered yet do not keep
// others out, and are bounded.
func TestOneLoginLeavesRoom(t *testing.T) {
	l, err := httpd.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	s := httpd.New(httpd.Config{
		Port: l.Port(), Auth: everybody{}, Log: slog.New(slog.DiscardHandler), Rates: httpd.Rates{Principal: httpd.Rate{PerSecond: 1000, Burst: 1000}},
		MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if httpd.OwnerOf(r) == "ann" {
				<-hold
			}
			_, _ = io.WriteString(w, httpd.CallerOf(r))
		}),
	})
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	get := func(who string) int {
		r, err := http.NewRequest("POST", "http://"+l.Addr().String()+"/mcp", nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set("Authorization", "Bearer "+who)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer res.Body.Close()
		_, _ = io.ReadAll(res.Body)
		return res.StatusCode
	}
	var mu sync.Mutex
	got := map[int]int{}
	var all sync.WaitGroup
	for range 140 {
		all.Go(func() {
			code := get("ann")
			mu.Lock()
			defer mu.Unlock()
			got[code]++
		})
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		refused := got[http.StatusTooManyRequests]
		mu.Unlock()
		if refused == 12 || time.Now().After(end) {
			break
		}
	}
	if code := get("bob"); code != http.StatusOK {
		t.Errorf("another's: %d", code)
	}
	close(hold)
	all.Wait()
	if got[http.StatusOK] != 128 || got[http.StatusTooManyRequests] != 12 {
		t.Errorf("%v", got)
	}
	if code := get("ann"); code != http.StatusOK {
		t.Errorf("afterwards: %d", code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
