package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/egress"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// A Setting is one value of the configuration, by its dotted name.
type Setting struct {
	Name   string
	Doc    string // what it is for, with its unit
	Bounds string // what it may be

	get   func(*Config) any
	set   func(*Config, []string) error
	check func(*Config) error
}

// Value is what it is: a string, true or false, a number or a list of strings.
func (s Setting) Value(c Config) any { return s.get(&c) }

// Set changes it in c, or names what is wrong with the words. A list takes any number of
// words; every other setting takes one.
func (s Setting) Set(c *Config, words []string) error {
	changed := *c
	if err := s.set(&changed, words); err != nil {
		return err
	}
	if err := s.check(&changed); err != nil {
		return err
	}
	*c = changed
	return nil
}

// Find is the setting of a name.
func Find(name string) (Setting, bool) {
	for _, s := range Settings() {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}

// Settings are all that can be set, in the order of the file.
func Settings() []Setting {
	list := []Setting{
		word("accessMode", "whether every client the owner let in may use every project (personal), or only what was granted workspace by workspace (managed)",
			func(c *Config) *string { return (*string)(&c.AccessMode) }, string(contract.AccessPersonal), string(contract.AccessManaged)),
		word("toolSurface", "which tools clients see; empty: full over stdio, compact over HTTP",
			func(c *Config) *string { return &c.ToolSurface }, "", "full", "compact", "hybrid"),
		word("searchBackend", "what searches files; in this version both are dodo's own",
			func(c *Config) *string { return &c.SearchBackend }, "auto", "builtin"),
		patterns("secretDeny", "more names of files that are secret, as patterns", func(c *Config) *[]string { return &c.SecretDeny }, maxDeny),
		patterns("secretAllow", "names of files that are not secret though they look it, as patterns", func(c *Config) *[]string { return &c.SecretAllow }, maxAllow),
		word("commandSandbox", "how commands are confined: in namespaces or not at all run (require), as well as the machine can (prefer), or not (off)",
			func(c *Config) *string { return &c.CommandSandbox }, string(sandbox.Require), string(sandbox.Prefer), string(sandbox.Off)),
		word("jobNetwork", "what commands reach: public addresses through dodo's proxy (proxy), nothing (none), or all that this machine does, its own services too (host)",
			func(c *Config) *string { return &c.JobNetwork }, string(sandbox.Proxy), string(sandbox.NoNetwork), string(sandbox.Host)),
		words("envAllowlist", "variables of dodo's environment that commands get, too", "names", func(c *Config) *[]string { return &c.EnvAllowlist }, maxNames, variable),
		words("sandboxReadPaths", "directories outside of the workspace that confined commands may read, such as a toolchain", "absolute paths",
			func(c *Config) *[]string { return &c.SandboxReadPaths }, maxPaths, readPath),
		word("gitHooks", "whether git_commit runs the repository's hooks, which only ever run confined", func(c *Config) *string { return &c.GitHooks }, "off", "sandbox"),
		flag("allowWebFetch", "whether clients may fetch public pages with fetch_url", func(c *Config) *bool { return &c.AllowWebFetch }),
		words("egressAllow", "what the network is used for, by jobs and fetch_url: host or host:port, where host is a name, *.name, an address, a range or * "+
			"for everything public; none: the same as *; without a port: 80 and 443; an entry may name a private address", "entries",
			func(c *Config) *[]string { return &c.EgressAllow }, maxEntries, egressEntry),
		words("egressDeny", "what the network is never used for, whatever egressAllow says; without a port: every port", "entries",
			func(c *Config) *[]string { return &c.EgressDeny }, maxEntries, egressEntry),
		text("publicUrl", "the address under which clients elsewhere reach this server, such as through a tunnel; empty: clients of this machine only",
			"an https origin, or empty", func(c *Config) *string { return &c.PublicURL }, publicURL),
		number("port", "where `dodo start` listens on this machine", 1, 65535, func(c *Config) *int { return &c.Port }),
		words("allowedHosts", "more names by which this server may be called, beside this machine's and that of publicUrl", "names or name:port",
			func(c *Config) *[]string { return &c.AllowedHosts }, maxHosts, hostName),
		words("allowedOrigins", "more web pages, by their origin, that may call this server", "origins",
			func(c *Config) *[]string { return &c.AllowedOrigins }, maxHosts, origin),
		word("clientRegistration", "whether clients may register themselves; one can do nothing until you approve its login on this machine",
			func(c *Config) *string { return &c.ClientRegistration }, On, Off),
		word("clientMetadata", "whether clients may name themselves by the https address of their description, which dodo then reads from the network",
			func(c *Config) *string { return &c.ClientMetadata }, On, Off),
		text("startupProject", "id of the project that `dodo start` opens when no directory is named; `dodo start --root` sets it",
			"a project's id, or empty", func(c *Config) *string { return &c.StartupProject }, projectID),
	}
	var l contract.Limits
	l.Each(func(f contract.LimitField) {
		name := f.Name
		list = append(list, number("limits."+name, "limit on callers; "+unit(name), f.Min, f.Max, func(c *Config) *int {
			var at *int
			c.Limits.Each(func(f contract.LimitField) {
				if f.Name == name {
					at = f.Value
				}
			})
			return at
		}))
	})
	return list
}

func unit(name string) string {
	switch {
	case strings.HasSuffix(name, "Ms"):
		return "milliseconds"
	case strings.HasSuffix(name, "Days"):
		return "days"
	case strings.Contains(name, "Bytes"):
		return "bytes"
	}
	return "a count"
}

// one is the single word that most settings take.
func one(name string, words []string) (string, error) {
	if len(words) != 1 {
		return "", refused(name, "it takes one value, not %d", len(words))
	}
	return words[0], nil
}

func word(name, doc string, at func(*Config) *string, allowed ...string) Setting {
	bounds := strings.Trim(strings.Join(allowed, ", "), ", ")
	return Setting{
		Name: name, Doc: doc, Bounds: bounds,
		get: func(c *Config) any { return *at(c) },
		set: func(c *Config, words []string) (err error) {
			*at(c), err = one(name, words)
			return err
		},
		check: func(c *Config) error {
			if !slices.Contains(allowed, *at(c)) {
				return refused(name, "it must be one of %s", bounds)
			}
			return nil
		},
	}
}

// text is a word that allowed judges.
func text(name, doc, bounds string, at func(*Config) *string, allowed func(string) (why, hint string)) Setting {
	return Setting{
		Name: name, Doc: doc, Bounds: bounds,
		get: func(c *Config) any { return *at(c) },
		set: func(c *Config, words []string) error {
			word, err := one(name, words)
			if err != nil {
				return err
			}
			if why, hint := allowed(word); word != "" && why != "" {
				return refused(name, "%s", why).WithHint("%s", hint)
			}
			*at(c) = word
			return nil
		},
		check: func(c *Config) error {
			if word := *at(c); word != "" && !plainText(word, maxPath) {
				return refused(name, "it is too long or not plain text")
			}
			return nil
		},
	}
}

func flag(name, doc string, at func(*Config) *bool) Setting {
	return Setting{
		Name: name, Doc: doc, Bounds: "true, false",
		get: func(c *Config) any { return *at(c) },
		set: func(c *Config, words []string) error {
			text, err := one(name, words)
			if err != nil {
				return err
			}
			if text != "true" && text != "false" {
				return refused(name, "it must be true or false")
			}
			*at(c) = text == "true"
			return nil
		},
		check: func(*Config) error { return nil },
	}
}

func number(name, doc string, least, most int, at func(*Config) *int) Setting {
	return Setting{
		Name: name, Doc: doc, Bounds: fmt.Sprintf("%d to %d", least, most),
		get: func(c *Config) any { return *at(c) },
		set: func(c *Config, words []string) error {
			text, err := one(name, words)
			if err != nil {
				return err
			}
			if *at(c), err = strconv.Atoi(text); err != nil {
				return refused(name, "it must be a whole number")
			}
			return nil
		},
		check: func(c *Config) error {
			if v := *at(c); v < least || v > most {
				return refused(name, "it must be %d to %d", least, most)
			}
			return nil
		},
	}
}

func patterns(name, doc string, at func(*Config) *[]string, most int) Setting {
	return Setting{
		Name: name, Doc: doc, Bounds: fmt.Sprintf("up to %d patterns", most),
		get: func(c *Config) any { return *at(c) },
		set: func(c *Config, words []string) error {
			*at(c) = append([]string{}, words...)
			return nil
		},
		check: func(c *Config) error {
			if len(*at(c)) > most {
				return refused(name, "it has more than %d patterns", most)
			}
			for i, p := range *at(c) {
				if !plainText(p, maxPattern) {
					return refused(name, "pattern %d is empty, too long or not plain text", i+1)
				}
				if err := workspace.CheckPattern(p); err != nil {
					return refused(name, "pattern %d, %s, is not well formed, or nothing can match it", i+1, strconv.QuoteToASCII(p)).
						WithHint("%s", fault.From(err).Hint)
				}
			}
			return nil
		},
	}
}

// words are a list that allowed judges one by one: it says what is wrong with a word and what
// to do, or "".
func words(name, doc, kind string, at func(*Config) *[]string, most int, allowed func(string) (why, hint string)) Setting {
	return Setting{
		Name: name, Doc: doc, Bounds: fmt.Sprintf("up to %d %s", most, kind),
		get: func(c *Config) any { return *at(c) },
		set: func(c *Config, words []string) error {
			*at(c) = append([]string{}, words...)
			return nil
		},
		check: func(c *Config) error {
			if len(*at(c)) > most {
				return refused(name, "it has more than %d %s", most, kind)
			}
			for i, w := range *at(c) {
				if why, hint := allowed(w); why != "" {
					return refused(name, "entry %d, %s", i+1, why).WithHint("%s", hint)
				}
			}
			return nil
		},
	}
}

// variable is a name of the environment. What changes how programs are loaded, or is dodo's
// own, is not given on.
func variable(name string) (why, hint string) {
	valid := name != "" && len(name) <= 100 && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) && (name[0] < '0' || name[0] > '9')
	switch {
	case !valid:
		return strconv.QuoteToASCII(name) + " is not the name of a variable", remedy
	case slices.ContainsFunc([]string{"DODO_", "LD_", "DYLD_", "TUNNEL_TOKEN"}, func(p string) bool { return strings.HasPrefix(name, p) }),
		slices.Contains([]string{"NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "NODE_PATH", "COMSPEC", "PATHEXT", "HOME", "PATH", "TMPDIR", "TERM"}, name):
		return strconv.QuoteToASCII(name) + " is never given to commands", "leave it out"
	}
	return "", ""
}

// What commands have of their own, below it too, and where servers put their sockets.
var (
	ofTheKernel = []string{"/proc", "/sys", "/dev"}
	ofServers   = []string{"/run", "/run/user/*", "/var/run", "/tmp", "/var/tmp"}
)

func readPath(path string) (why, hint string) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || !plainText(path, maxPath) {
		return strconv.QuoteToASCII(path) + " is not the absolute path of a directory, without . and .. and not the whole file system", remedy
	}
	for _, dir := range ofTheKernel {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return strconv.QuoteToASCII(path) + " is the kernel's own: commands have one of their own", remedy
		}
	}
	for _, dir := range ofServers {
		if is, _ := filepath.Match(dir, path); is || strings.HasPrefix(dir, path+"/") {
			return strconv.QuoteToASCII(path) + " is, or has in it, where servers of this machine have their sockets, which can be used by whoever reads it", remedy
		}
	}
	return "", ""
}

func egressEntry(e string) (why, hint string) {
	if err := egress.CheckEntry(e); err != nil {
		f := fault.From(err)
		return f.Msg, f.Hint
	}
	return "", ""
}

// plainText reports whether a text has 1 to most bytes and no control characters.
func plainText(s string, most int) bool {
	return s != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
