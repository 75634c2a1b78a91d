package install

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// codex is Codex.
type codex struct{ base }

var codexMissing = regexp.MustCompile(`(?i)no mcp server named '?"?mooncite\b`)

// codexServer is what `codex mcp get --json` says.
type codexServer struct {
	Name      string
	Enabled   *bool // older ones do not say
	Transport struct {
		Type    string
		Command string
		Args    []string
		Env     map[string]string
		EnvVars []json.RawMessage `json:"env_vars"`
		Cwd     *string
	}
}

func (c *codex) probe(ctx context.Context) Finding {
	o, err := c.do(ctx, "mcp", "get", serverName, "--json")
	switch {
	case err != nil:
		return c.silent(o, err)
	case o.status != 0 && codexMissing.MatchString(o.stderr):
		return c.finding(Missing, "", "")
	case o.status != 0:
		return c.silent(o, nil)
	}
	var s codexServer
	if err := json.Unmarshal([]byte(o.stdout), &s); err == nil {
		t := s.Transport
		if s.Name == serverName && t.Type == "stdio" && t.Command == c.places.Program() && slices.Equal(t.Args, serveArgs) &&
			len(t.Env) == 0 && len(t.EnvVars) == 0 && t.Cwd == nil {
			if s.Enabled != nil && !*s.Enabled {
				return c.switchedOff("Codex has mooncite switched off (enabled = false)",
					"to have it again, take that line out of [mcp_servers."+serverName+"] in Codex's config.toml")
			}
			return c.finding(Exact, "", "")
		}
	}
	return c.finding(Conflict, "Codex has another server of the name mooncite",
		"see it with `codex mcp get mooncite`; remove it with `codex mcp remove mooncite` and install again")
}

func (c *codex) add(ctx context.Context) error {
	return c.config().change(ctx, func() error {
		return c.change(ctx, "", append([]string{"mcp", "add", serverName, "--", c.places.Program()}, serveArgs...)...)
	})
}

func (c *codex) remove(ctx context.Context, _ *record) error {
	return c.config().change(ctx, func() error { return c.change(ctx, "", "mcp", "remove", serverName) })
}

func (c *codex) resume(ctx context.Context, _ *record) error { return c.config().resume(ctx) }

// config is config.toml. There is no reader of TOML here, so Codex itself is asked whether
// it still reads what was put in order.
func (c *codex) config() tended {
	return tended{&c.base, filepath.Join(c.dir("CODEX_HOME", ".codex"), codexConfig), func(before, after []byte) ([]byte, bool) {
		if want, ok := withTable(before, after); ok {
			return want, true
		}
		return withoutTable(before, after)
	}, c.probe}
}

// left looks for the path of the program, which every entry of ours has.
func (c *codex) left() (what, file string) {
	file = c.config().path
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", ""
	case err != nil:
		return unread, file
	}
	for _, written := range []string{c.places.Program(), string(indented(c.places.Program()))} {
		if written = strings.Trim(written, "\"\n"); strings.Contains(string(data), written) {
			return "the table [mcp_servers." + serverName + "]", file
		}
	}
	return "", ""
}
