package install

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
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
	exact, off := 0, false
	for _, raw := range settings.Packages {
		source := packageSource(raw)
		switch {
		case c.ours(raw):
			exact++
			off = leavesOut(raw)
		case namesUs(source):
			return c.finding(Conflict, "Pi has another package of the name mooncite: "+source,
				"remove it with `pi remove "+source+"` and install again")
		}
	}
	switch exact {
	case 0:
		return c.finding(Missing, "", "")
	case 1:
		if off {
			return c.switchedOff("Pi has the extension of the package mooncite switched off", "to have it again, call `pi config`, or take \"extensions\" out of the package's entry in Pi's settings.json")
		}
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

// leavesOut reports whether an entry of ours picks extensions without the only one.
func leavesOut(raw json.RawMessage) bool {
	var o struct{ Extensions *[]string }
	if json.Unmarshal(raw, &o) != nil || o.Extensions == nil {
		return false
	}
	some, picked := false, false
	for _, e := range *o.Extensions {
		pattern := strings.TrimLeft(e, "!+-")
		match, _ := path.Match(path.Clean(pattern), extensionRel) // a bad pattern matches nothing
		if strings.HasPrefix(e, "!") || strings.HasPrefix(e, "-") {
			if match {
				return true
			}
			continue
		}
		some, picked = true, picked || match
	}
	return some && !picked || len(*o.Extensions) == 0
}

// read decodes a file of Pi's agent directory; a missing one is empty.
func (c *pi) read(name string, v any) error { return readSmall(filepath.Join(c.agentDir(), name), v) }

func (c *pi) left() (what, file string) {
	file = c.settings(nil).path
	var settings struct{ Packages []json.RawMessage }
	if c.read(piSettings, &settings) != nil {
		return unread, file
	}
	if slices.ContainsFunc(settings.Packages, func(raw json.RawMessage) bool { return c.ours(raw) }) {
		return "the element of \"packages\" that leads to mooncite's package", file
	}
	return "", ""
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
