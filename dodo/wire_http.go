package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// How long the end of a server may take: commands until they are killed, calls until they are
// left, and everything.
const (
	remoteJobWait  = 3 * time.Second
	remoteCallWait = 2 * time.Second
	remoteEndWait  = 8 * time.Second
)

// fetchTime is how long reading a client's description may take.
const fetchTime = 10 * time.Second

// remoteCalls is how many calls run at once, of all clients.
const remoteCalls = 256

// A remoteServer serves clients over HTTP.
type remoteServer struct {
	*served
	listener *httpd.Listener
	door     *httpd.Server
	mcp      *mcpserve.HTTP
	auth     *oauth.Server // nil: nobody can log in
	owner    *owner.Server

	issuer string // empty when nobody can log in
	locked string // why
	tools  toolFacts

	ending atomic.Bool
}

// toolFacts are how much clients have to read before they begin.
type toolFacts struct{ count, bytes int }

// opened is the server behind a port of this machine, with the owner's door open. stop ends it.
func (s *served) opened(ctx context.Context, l *httpd.Listener, stop func()) (h *remoteServer, err error) {
	h = &remoteServer{served: s, listener: l}
	if err := h.build(ctx); err != nil {
		return nil, err
	}
	if h.owner, err = s.ownerDoor(ctx, overHTTP, stop, h.ownerCommands()); err != nil {
		return nil, err
	}
	return h, nil
}

// build makes the parts.
func (h *remoteServer) build(ctx context.Context) error {
	c := h.config
	issuer, err := c.Issuer(h.listener.Port())
	switch {
	case err != nil:
		f := fault.From(err)
		h.locked = f.Msg + ". " + f.Hint
	default:
		o := oauth.Config{
			Store: h.store, Dir: h.dir, Issuer: issuer, Resource: issuer + "/mcp", Registration: c.ClientRegistration == config.On,
			AccessMode: h.accessMode, Log: h.log, Now: h.now(),
		}
		if c.ClientMetadata == config.On {
			o.Fetch = h.walls.dialer.Public().Client(fetchTime) // anybody can name an address
		}
		if h.auth, err = oauth.New(ctx, o); err != nil {
			return err
		}
		h.issuer = issuer
	}
	set := surface.Tools(h.surface, services{}.catalogue(), h.gate)
	h.tools = toolFacts{count: len(set.Ops())}
	for _, o := range set.Ops() {
		h.tools.bytes += len(o.Spec().Doc) + len(o.InputSchema()) + len(o.OutputSchema())
	}
	h.mcp = mcpserve.New(mcpserve.Options{
		Name: "dodo", Title: "Dodo", Version: version, Instructions: instructions, Set: set,
		MaxReply: wholeAnswers, MaxCalls: remoteCalls, Log: h.log,
	}).HTTP(mcpserve.HTTPOptions{Caller: httpd.CallerOf, Owner: httpd.OwnerOf, MaxBody: int64(c.Limits.RequestBodyBytes) + frameRoom})
	d := httpd.Config{
		Hosts: c.AllowedHosts, Origins: c.AllowedOrigins, Issuer: h.issuer, Port: h.listener.Port(),
		MCP: h.mcp, Locked: h.locked, Closed: h.ending.Load, Health: h.health, Log: h.log,
	}
	if h.auth != nil {
		d.Auth = logins{h.auth}
	}
	h.door = httpd.New(d)
	return nil
}

// accessMode is the owner's now.
func (h *remoteServer) accessMode() contract.AccessMode {
	_, mode, err := h.rules().standing(context.Background(), "")
	if err != nil {
		return contract.AccessManaged
	}
	return mode
}

// health is what everybody may know.
func (h *remoteServer) health() any {
	return struct {
		Status     string `json:"status"`
		Name       string `json:"name"`
		Version    string `json:"version"`
		Configured bool   `json:"authConfigured"`
		Selected   bool   `json:"workspaceSelected"`
	}{"ok", "dodo", version, h.auth != nil, h.host.Active() != nil}
}

// banner is what the owner reads when the server has begun.
func (h *remoteServer) banner() string {
	var b strings.Builder
	root := "no workspace: choose one with --root"
	if a := h.host.Active(); a != nil {
		root = line(a.Tree.Root())
	}
	fmt.Fprintf(&b, "dodo serves %s\n", root)
	switch {
	case h.locked != "":
		fmt.Fprintf(&b, "  locked:  http://127.0.0.1:%d: nobody can log in: %s\n", h.listener.Port(), h.locked)
	case h.issuer != fmt.Sprintf("http://127.0.0.1:%d", h.listener.Port()):
		fmt.Fprintf(&b, "  clients: %s/mcp, which must lead to http://127.0.0.1:%d\n", h.issuer, h.listener.Port())
	default:
		fmt.Fprintf(&b, "  clients: %s/mcp, on this machine\n", h.issuer)
	}
	fmt.Fprintf(&b, "  tools:   %d (%s)\n", h.tools.count, h.surface)
	switch {
	case h.run.bypass:
		b.WriteString("  this run: clients are trusted, and commands are NOT confined\n")
	case h.run.trusted:
		b.WriteString("  this run: clients are trusted, and may fetch pages of the web\n")
	}
	b.WriteString("  logins wait for you: dodo auth pending. To end: Ctrl-C, or dodo stop.")
	return b.String()
}

// serveUntil serves until ctx is done, and ends in the order of the contract (022): commands
// first, so that calls which wait for them answer, then what is open.
func (h *remoteServer) serveUntil(ctx context.Context) error {
	h.log.Info("serving", "transport", overHTTP, "surface", string(h.surface), "tools", h.tools.count, "schemaBytes", h.tools.bytes)
	clock, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	var ticking sync.WaitGroup
	if a := h.host.Active(); a != nil && a.Clock != nil {
		ticking.Go(func() {
			if err := a.Clock(clock); err != nil {
				h.log.Error("schedules are not started any more", "cause", err)
			}
		})
	}
	failed := make(chan error, 1)
	go func() { failed <- h.door.Serve(h.listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	h.ending.Store(true)
	halt()
	left := make(chan error, 1)
	go func() { left <- h.close(context.WithoutCancel(ctx), &ticking) }()
	select {
	case e := <-left:
		return errors.Join(err, e)
	case <-time.After(remoteEndWait):
		h.log.Warn("ended while a call was running")
		return err
	}
}

func (h *remoteServer) close(ctx context.Context, ticking *sync.WaitGroup) error {
	jobs, cancel := context.WithTimeout(ctx, remoteJobWait)
	err := h.host.Stop(jobs)
	cancel()
	ticking.Wait()
	calls, cancel := context.WithTimeout(ctx, remoteCallWait)
	defer cancel()
	h.mcp.Close(calls)
	err = errors.Join(err, h.door.Close(calls), h.owner.Close(), h.end(calls))
	if h.auth != nil {
		err = errors.Join(err, h.auth.Close())
	}
	h.installation.close(h.log)
	return err
}

// logins shows the authorization server to the door.
type logins struct{ *oauth.Server }

var _ httpd.Authorizer = logins{}

// Verify says who comes with a token.
func (l logins) Verify(ctx context.Context, bearer string) (httpd.Who, error) {
	c, err := l.Server.Verify(ctx, bearer)
	return httpd.Who{Caller: c.String(), Owner: c.Grant}, err
}

// Challenge says how to get a token.
func (l logins) Challenge(refused error) string {
	if refused == nil {
		return l.Server.Challenge(nil)
	}
	return l.Server.Challenge(fault.From(refused))
}

// ownerCommands are what the owner may ask of logins.
func (h *remoteServer) ownerCommands() map[string]owner.Command {
	decide := func(f func(context.Context, string) (oauth.Consent, error)) owner.Command {
		return withID(func(ctx context.Context, id string) (any, error) {
			if h.auth == nil {
				return nil, fault.New(contract.NotFound, "nobody can log in")
			}
			c, err := f(ctx, id)
			return shownConsent(c), err
		})
	}
	return map[string]owner.Command{
		cmdAuthPending: func(context.Context, json.RawMessage) (any, error) {
			list := []consentOut{}
			if h.auth != nil {
				for _, c := range h.auth.Pending() {
					list = append(list, shownConsent(c))
				}
			}
			return list, nil
		},
		cmdAuthApprove: decide(func(ctx context.Context, id string) (oauth.Consent, error) { return h.auth.Approve(ctx, id) }),
		cmdAuthDeny:    decide(func(ctx context.Context, id string) (oauth.Consent, error) { return h.auth.Deny(ctx, id) }),
	}
}
