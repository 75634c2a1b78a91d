package mcpserve

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxDepth is how deep the JSON of a request may be nested.
const maxDepth = 200

// peeked is what a message tells at first sight.
type peeked struct {
	method     string // of a batch, which only the era of sessions had: none
	versioned  bool   // it names the protocol version itself, as the modern era has it
	batch      bool
	initialize bool // it, or one of the batch, opens a session
}

// peek goes over a message and holds it against the bound of depth.
func peek(body []byte) (p peeked, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	var names [5]string // the names on the way to the value, by depth
	top := 1            // the depth of what a message has
	for {
		t, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return p, nil
		case err != nil:
			return p, err
		case d.StackDepth() > maxDepth:
			return p, fmt.Errorf("it is nested more than %d deep", maxDepth)
		}
		depth := d.StackDepth()
		if t.Kind() == '[' && depth == 1 {
			p.batch, top = true, 2
		}
		if t.Kind() != '"' || depth < top || depth >= len(names) {
			continue
		}
		inside, n := d.StackIndex(depth)
		switch isName := inside == '{' && n%2 == 1; {
		case isName:
			names[depth] = t.String()
			p.versioned = p.versioned || !p.batch && depth == 3 && names[1] == "params" && names[2] == "_meta" && names[3] == mcp.MetaKeyProtocolVersion
		case depth == top && inside == '{' && names[depth] == "method":
			p.initialize = p.initialize || t.String() == "initialize"
			if !p.batch {
				p.method = t.String()
			}
		}
	}
}
