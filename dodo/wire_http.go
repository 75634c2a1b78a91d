package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/httpd"
	"localmcp/dodo/internal/door/oauth"
	"localmcp/dodo/internal/door/owner"
	"localmcp/dodo/internal/door/surface"
	"localmcp/internal/fault"
	"localmcp/internal/mcpserve"
)

// remoteServer serves clients over HTTP.
type remoteServer struct {
	*served
	door  *httpd.Server
	mcp   *mcpserve.HTTP
	auth  *oauth.Server // nil: nobody can log in
	owner *owner.Server

	issuer string
	locked string // why nobody can log in; empty: they can
	tools  int

	stop   func() // ends the run
	ending atomic.Bool
	ticks  sync.WaitGroup
	halt   context.CancelFunc // of the clock
}

// listen opens the doors of a server: its port of this machine, and the owner's.
func (s *served) listen(ctx context.Context, port int, stop func()) (h *remoteServer, err error) {
	h = &remoteServer{served: s, stop: stop}
	l, err := httpd.Listen(fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	if err := h.build(ctx, l.Port()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	c := httpd.Config{
		Listener: l, Hosts: s.config.AllowedHosts, Origins: s.config.AllowedOrigins, Public: h.publicHost(),
		MCP: func() http.Handler { return h.mcp }, Locked: h.locked, Health: h.health, Closed: h.ending.Load,
		MaxBody: int64(s.config.Limits.RequestBodyBytes) + frameRoom, Log: s.log,
	}
	if h.auth != nil {
		c.Auth = authorizer{h.auth}
	}
	h.door = httpd.New(c)
	if h.owner, err = s.ownerDoor(ctx, overHTTP, stop, h.ownerCommands()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return h, nil
}
