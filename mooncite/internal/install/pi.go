package install

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// pi is Pi. It loads the package as one of its own, with the extension and the skill. Pi
// 1.6 can start MCP servers too (pi mcp add), but shows their tools to the model only
// through its code mode unless told otherwise, and older ones cannot; so the extension is
// what is registered, and a server of our name in mcp.json would show everything twice.
type pi struct{ base }

func (c *pi) agentDir() string { return c.dir("PI_CODING_AGENT_DIR", ".pi/agent") }

func (c *pi) probe(ctx context.Context) Finding {
	if o, err := c.do(ctx, "--version"); err != nil || o.status != 0 {
		return c.silent(o, err)
	}
	var settings struct{ Packages []json.RawMessage }
	if err := c.read(piSettings, &settings); err != nil {
		return c.finding(Unavailable, "Pi's settings.json cannot be read", "try `pi list` in a terminal")
	}
	var mcp struct {
		McpServers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := c.read("mcp.json", &mcp); err != nil {
		return c.finding(Unavailable, "Pi's mcp.json cannot be read", "try `pi mcp list` in a terminal")
	}
	if _, there := mcp.McpServers[serverName]; there {
		return c.finding(Conflict, "Pi starts a server of the name mooncite from its mcp.json",
			"remove it with `pi mcp remove mooncite` and install again: the extension takes its place")
	}
	exact := 0
	for _, raw := range settings.Packages {
		source := packageSource(raw)
		switch {
		case c.ours(raw):
			exact++
		case namesUs(source):
			return c.finding(Conflict, "Pi has another package of the name mooncite: "+source,
				"remove it with `pi remove "+source+"` and install again")
		}
	}
	switch exact {
	case 0:
		return c.finding(Missing, "", "")
	case 1:
		return c.finding(Exact, "", "")
	}
	return c.finding(Conflict, "Pi's settings name the package more than once", "remove it with `pi remove "+c.places.Package()+"` and install again")
}

// packageSource is an entry's source: a string, or an object that has one.
func packageSource(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct{ Source string }
	_ = json.Unmarshal(raw, &o) // what has neither names nothing
	return o.Source
}

// resolved is the directory that a local source leads to, "" for one from elsewhere.
func (c *pi) resolved(source string) string {
	switch {
	case filepath.IsAbs(source):
		return filepath.Clean(source)
	case strings.HasPrefix(source, "~/"):
		return filepath.Join(c.places.home, source[2:])
	case strings.HasPrefix(source, "."):
		return filepath.Join(c.agentDir(), source)
	}
	return ""
}

// namesUs reports whether a source is a package of our name from somewhere else.
func namesUs(source string) bool {
	base := path.Base(strings.TrimSuffix(source, ".git"))
	base, _, _ = strings.Cut(base, "@")
	return strings.TrimPrefix(base, "npm:") == PluginName
}

// read decodes a file of Pi's agent directory; a missing one is empty.
func (c *pi) read(name string, v any) error {
	f, err := os.Open(filepath.Join(c.agentDir(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 4*maxSmall))
	if err != nil {
		return err
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil
	}
	return json.Unmarshal(data, v)
}

// announce also notes whether the list of packages will be ours, to go with the last.
func (c *pi) announce(r *record) {
	r.add(piName)
	data, err := os.ReadFile(c.settings(nil).path)
	s, ok := parseSettings(data)
	r.PiList = err == nil && ok && s.list < 0
}

func (c *pi) add(ctx context.Context) error {
	return c.settings(nil).change(ctx, func() error { return c.change(ctx, "", "install", c.places.Package()) })
}

func (c *pi) remove(ctx context.Context, r *record) error {
	return c.settings(r).change(ctx, func() error { return c.change(ctx, "", "remove", c.places.Package()) })
}

func (c *pi) resume(ctx context.Context, r *record) error { return c.settings(r).resume(ctx) }

// settings is settings.json. r is only asked whether the list of packages is ours.
func (c *pi) settings(r *record) tended {
	return tended{&c.base, filepath.Join(c.agentDir(), piSettings), func(before, after []byte) ([]byte, bool) {
		if want, ok := withPackage(before, after, c.ours); ok {
			return want, true
		}
		return withoutPackage(before, after, c.ours, r != nil && r.PiList)
	}, nil}
}

// ours reports whether an entry of the packages is the installed one.
func (c *pi) ours(raw []byte) bool { return c.resolved(packageSource(raw)) == c.places.Package() }
