package install

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
)

// omp is OMP. It links the package as a plugin, and takes the server from its .mcp.json
// and the skill.
type omp struct{ base }

// ompPlugins is what `omp plugin list --json` says.
type ompPlugins struct {
	NPM []struct {
		Name    string `json:"name"`
		Path    string `json:"path"`
		Enabled *bool  `json:"enabled"` // older ones do not say
	} `json:"npm"`
	Marketplace []struct {
		ID string `json:"id"` // the name, "@" and the marketplace
	} `json:"marketplace"`
}

// ompNames are what a plugin that is mooncite may be called: the second one is the
// earlier program's.
var ompNames = []string{PluginName, "@whenmoon-afk/mooncite"}

func (c *omp) probe(ctx context.Context) Finding {
	o, err := c.do(ctx, "plugin", "list", "--json")
	if err != nil || o.status != 0 {
		return c.silent(o, err)
	}
	var list ompPlugins
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil {
		return c.finding(Unavailable, "`omp plugin list --json` gives no list", "try it in a terminal")
	}
	ours, off, others := 0, false, ""
	for _, p := range list.NPM {
		switch {
		case p.Name == PluginName && c.isPackage(p.Path):
			ours++
			off = p.Enabled != nil && !*p.Enabled
		case slices.Contains(ompNames, p.Name):
			others = p.Name
		}
	}
	for _, p := range list.Marketplace {
		if i := strings.LastIndex(p.ID, "@"); i > 0 && slices.Contains(ompNames, p.ID[:i]) {
			others = p.ID
		}
	}
	switch {
	case others != "" || ours > 1:
		return c.finding(Conflict, "OMP has another plugin of the name mooncite",
			"see it with `omp plugin list`; remove it with `omp plugin uninstall "+cmp.Or(others, PluginName)+"` and install again")
	case ours == 0:
		return c.finding(Missing, "", "")
	case off:
		return c.switchedOff("OMP has the plugin mooncite switched off", "to have it again, call `omp plugin enable "+PluginName+"`")
	}
	return c.finding(Exact, "", "")
}

func (c *omp) isPackage(path string) bool {
	end, err := filepath.EvalSymlinks(path)
	return err == nil && end == c.places.Package()
}

func (c *omp) add(ctx context.Context) error {
	return c.change(ctx, "", "plugin", "link", c.places.Package())
}

// remove also works where OMP is a program by itself: it calls bun to take the plugin out
// of a list of dependencies, in which a linked one never is. Where there is no bun, one
// that does nothing stands in for it.
func (c *omp) remove(ctx context.Context, _ *record) error {
	args := []string{"plugin", "uninstall", PluginName}
	if _, err := c.run.find("bun", ""); err == nil {
		return c.change(ctx, "", args...)
	}
	dir, err := os.MkdirTemp("", "mooncite-bun-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.WriteFile(filepath.Join(dir, "bun"), []byte("#!/bin/sh\nexit 0\n"), 0o700)
	}
	if err != nil {
		return fault.Wrap(evidence.CodeClient, err, "a temporary directory for OMP's command cannot be made").WithHint("look at TMPDIR")
	}
	return c.change(ctx, dir, args...)
}

// left looks where OMP keeps plugins: below its own directory, or below the data home for
// those who moved it there.
func (c *omp) left() (what, file string) {
	dirs := []string{filepath.Join(c.places.home, cmp.Or(c.run.env["PI_CONFIG_DIR"], ".omp"))}
	if data := c.run.env["XDG_DATA_HOME"]; data != "" {
		dirs = append(dirs, filepath.Join(data, "omp"))
	}
	for _, dir := range dirs {
		if link := filepath.Join(dir, "plugins", "node_modules", PluginName); c.isPackage(link) {
			return "the link", link
		}
	}
	return "", ""
}
