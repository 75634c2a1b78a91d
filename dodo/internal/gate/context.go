package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Context says where a call is to happen. A nil member was absent.
type Context struct {
	WorkspaceID, WorkspaceEpoch, TargetProjectID *string
}

// The names of the context's members.
const (
	memberWorkspace = "workspaceId"
	memberEpoch     = "workspaceEpoch"
	memberTarget    = "targetProjectId"
)

const longestContext = 128 // characters of an id in a context

// Split takes the context out of the arguments of a direct call. The rest keeps its bytes.
// Arguments that are no JSON object are INVALID_INPUT.
func Split(args json.RawMessage) (c Context, rest json.RawMessage, err error) {
	if len(bytes.TrimSpace(args)) == 0 {
		return c, nil, nil
	}
	places := map[string]**string{memberWorkspace: &c.WorkspaceID, memberEpoch: &c.WorkspaceEpoch, memberTarget: &c.TargetProjectID}
	rest = make(json.RawMessage, 0, len(args))
	rest = append(rest, '{')
	err = members(args, func(name string, raw []byte, value jsontext.Value) error {
		place, ours := places[name]
		if !ours {
			if len(rest) > 1 {
				rest = append(rest, ',')
			}
			rest = append(append(append(rest, raw...), ':'), value...)
			return nil
		}
		if value.Kind() == 'n' {
			return nil
		}
		var text string
		if json.Unmarshal(value, &text) != nil || text == "" || len(text) > longestContext {
			return invalid("%s must be a text of 1 to %d characters", name, longestContext)
		}
		if *place != nil {
			return invalid("%s is given twice", name)
		}
		*place = &text
		return nil
	})
	if err != nil {
		return Context{}, nil, err
	}
	return c, append(rest, '}'), nil
}

// Nested refuses a context where only arguments may stand.
func Nested(args json.RawMessage) error {
	if len(bytes.TrimSpace(args)) == 0 {
		return nil
	}
	return members(args, func(name string, _ []byte, _ jsontext.Value) error {
		switch name {
		case memberWorkspace, memberEpoch, memberTarget:
			return invalid("args must not contain %s: the workspace is given beside operation and args", name)
		}
		return nil
	})
}

// members calls f with each member of a JSON object: its name, and name and value as they
// stand.
func members(object json.RawMessage, f func(name string, raw []byte, value jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return invalid("the arguments must be a JSON object")
	}
	for {
		if d.PeekKind() == '}' {
			_, _ = d.ReadToken()
			break
		}
		raw, err := d.ReadValue()
		if err != nil {
			return broken(err)
		}
		key := bytes.Clone(raw)
		var name string
		if err := json.Unmarshal(key, &name); err != nil {
			return broken(err)
		}
		value, err := d.ReadValue()
		if err != nil {
			return broken(err)
		}
		if err := f(name, key, value); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return invalid("the arguments must be one JSON object")
	}
	return nil
}

func broken(err error) error {
	return fault.Wrap(contract.InvalidInput, err, "the arguments are not valid JSON").WithHint("give one JSON object")
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(contract.InvalidInput, "%s", fmt.Sprintf(format, args...))
}
