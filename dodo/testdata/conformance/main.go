//go:build conformance

// Command conformance is a server for the official conformance suite: dodo's stack from the
// port to the SDK, with the tools, resources and prompts that the suite asks for by name.
//
// It prints its address, and serves until its input ends. Everybody with a token may come in;
// its arguments are web pages that may call.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/httpd"
	"localmcp/internal/fault"
	"localmcp/internal/mcpserve"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(origins []string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	l, err := httpd.Listen(0)
	if err != nil {
		return err
	}
	h := newServer(log).HTTP(mcpserve.HTTPOptions{Caller: httpd.CallerOf, Owner: httpd.OwnerOf})
	door := httpd.New(httpd.Config{
		Origins: origins, Issuer: fmt.Sprintf("http://127.0.0.1:%d", l.Port()), Port: l.Port(),
		// The suite asks hundreds of times in a second, as one login.
		Rates: httpd.Rates{Principal: httpd.Rate{PerSecond: 1000, Burst: 1000}, Address: httpd.DefaultRates.Address, Login: httpd.DefaultRates.Login},
		MCP:   h, Auth: everybody{}, Health: func() any { return "ok" }, Log: log,
	})
	ended := make(chan error, 1)
	go func() { ended <- door.Serve(l) }()
	fmt.Printf("http://127.0.0.1:%d\n", l.Port())
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	h.Close(ctx)
	if err := door.Close(ctx); err != nil {
		return err
	}
	return <-ended
}

// everybody lets in who has a token, whichever it is.
type everybody struct{}

// Verify takes the token for a name.
func (everybody) Verify(_ context.Context, bearer string) (httpd.Who, error) {
	if bearer == "" {
		return httpd.Who{}, fault.New(contract.AuthRequired, "no token")
	}
	return httpd.Who{Caller: bearer, Owner: bearer}, nil
}

// Challenge has nothing to tell.
func (everybody) Challenge(error) string { return "Bearer" }

// Handler is asked for nothing.
func (everybody) Handler() http.Handler { return http.NotFoundHandler() }

// Paths are none.
func (everybody) Paths() []string { return nil }
