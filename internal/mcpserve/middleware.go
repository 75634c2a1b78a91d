package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	firstModern = "2026-07-28"
	lastLegacy  = "2025-11-25"
	// legacyNotFound is what initialize-era clients know; the modern era uses
	// invalid params.
	legacyNotFound = -32002
)

// middleware stands around every method: it contains panics and mends the places
// where the two eras meet on one pipe.
func (s *Server) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.opts.Log.Error("panic", "method", method, "value", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "something went wrong inside the program"}
			}
		}()
		if r, ok := req.(*mcp.ServerRequest[*mcp.InitializeParams]); ok && r.Session.InitializeParams() != nil {
			return s.again(r.Params), nil
		}
		res, err = next(ctx, method, req)
		if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
			s.show(list)
		}
		if method == "resources/read" && err != nil && !modern(req) {
			err = notFoundInLegacy(err)
		}
		return res, err
	}
}

// show gives a list of tools their schemas and their order.
func (s *Server) show(list *mcp.ListToolsResult) {
	all := s.tools()
	for i, t := range list.Tools {
		list.Tools[i] = all[t.Name].Tool
	}
	slices.SortStableFunc(list.Tools, func(a, b *mcp.Tool) int { return all[a.Name].place - all[b.Name].place })
}

// again answers an initialize on a session that is already open: a client probes
// with server/discover and then falls back, or simply repeats itself.
func (s *Server) again(p *mcp.InitializeParams) *mcp.InitializeResult {
	version := lastLegacy
	if p != nil && p.ProtocolVersion < firstModern && slices.Contains(mcp.SupportedProtocolVersions(), p.ProtocolVersion) {
		version = p.ProtocolVersion
	}
	return &mcp.InitializeResult{
		ProtocolVersion: version,
		Capabilities:    s.caps,
		Instructions:    s.opts.Instructions,
		ServerInfo:      s.self,
	}
}

// modern reports whether a request carries its own protocol version.
func modern(req mcp.Request) bool {
	p := req.GetParams()
	if p == nil {
		return false
	}
	_, ok := p.GetMeta()[mcp.MetaKeyProtocolVersion]
	return ok
}

// notFound says in the modern era's words that a resource is not there, or no longer.
func notFound(uri string) *jsonrpc.Error {
	data, _ := json.Marshal(map[string]string{"uri": uri})
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Resource not found", Data: data}
}

func notFoundInLegacy(err error) error {
	var w *jsonrpc.Error
	if errors.As(err, &w) && w.Code == jsonrpc.CodeInvalidParams && w.Message == "Resource not found" {
		c := *w
		c.Code = legacyNotFound
		return &c
	}
	return err
}
