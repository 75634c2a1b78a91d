package install

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// claude is Claude Code. Its listing is text for people, so every field must be there
// exactly once and say exactly what it should.
type claude struct{ base }

var claudeScope = regexp.MustCompile(`(?m)^  Scope: (User|Local|Project) config`)

var claudeMissing = regexp.MustCompile(`(?i)no mcp server [^\n]*\bmooncite\b`)

func (c *claude) probe(ctx context.Context) Finding {
	o, err := c.do(ctx, "mcp", "get", serverName)
	switch {
	case err != nil:
		return c.silent(o, err)
	case o.status != 0 && claudeMissing.MatchString(o.stdout+"\n"+o.stderr):
		return c.finding(Missing, "", "")
	case o.status != 0:
		return c.silent(o, nil)
	}
	if c.exact(o.stdout) {
		return c.finding(Exact, "", "")
	}
	scope := "user"
	if m := claudeScope.FindStringSubmatch(o.stdout); m != nil {
		scope = strings.ToLower(m[1])
	}
	// Without the scope the command refuses a name that is in two.
	return c.finding(Conflict, "Claude Code has another server of the name mooncite",
		"see it with `claude mcp get mooncite`; remove it with `claude mcp remove -s "+scope+" mooncite` and install again")
}

// exact reads the fields, such as "  Command: /path". Lines below "Environment:" are
// variables, of which there must be none.
func (c *claude) exact(text string) bool {
	fields := map[string][]string{}
	environment := false
	for line := range strings.SplitSeq(text, "\n") {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case ok && name == "  Environment":
			environment = true
			if value != "" {
				return false
			}
		case environment && strings.HasPrefix(line, "    "):
			return false
		case ok && strings.HasPrefix(name, "  ") && !strings.HasPrefix(name, "   "):
			fields[name[2:]] = append(fields[name[2:]], value)
		}
	}
	scope := fields["Scope"]
	return len(scope) == 1 && strings.HasPrefix(scope[0], "User config") &&
		slices.Equal(fields["Type"], []string{"stdio"}) &&
		slices.Equal(fields["Command"], []string{c.places.Program()}) &&
		slices.Equal(fields["Args"], []string{strings.Join(serveArgs, " ")})
}

func (c *claude) add(ctx context.Context) error {
	return c.change(ctx, "", append([]string{"mcp", "add", "--scope", "user", serverName, "--", c.places.Program()}, serveArgs...)...)
}

func (c *claude) remove(ctx context.Context, _ *record) error {
	return c.change(ctx, "", "mcp", "remove", "--scope", "user", serverName)
}

func (c *claude) left() (what, file string) {
	file = filepath.Join(c.dir("CLAUDE_CONFIG_DIR", ""), ".claude.json")
	var config struct {
		McpServers map[string]struct{ Command string } `json:"mcpServers"`
	}
	if err := readSmall(file, &config); err != nil {
		return unread, file
	}
	if config.McpServers[serverName].Command == c.places.Program() {
		return "the member \"" + serverName + "\" of \"mcpServers\"", file
	}
	return "", ""
}
