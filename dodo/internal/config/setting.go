package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/egress"
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
		flag("allowWebFetch", "whether clients may fetch public pages with fetch_url", func(c *Config) *bool { return &c.AllowWebFetch }),
		entries("egressAllow", "what the network is used for, by jobs and fetch_url: host or host:port, where host is a name, *.name, an address, a range or * "+
			"for everything public; none: the same as *; without a port: 80 and 443; an entry may name a private address",
			func(c *Config) *[]string { return &c.EgressAllow }),
		entries("egressDeny", "what the network is never used for, whatever egressAllow says; without a port: every port",
			func(c *Config) *[]string { return &c.EgressDeny }),
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

func entries(name, doc string, at func(*Config) *[]string) Setting {
	return Setting{
		Name: name, Doc: doc, Bounds: fmt.Sprintf("up to %d entries", maxEntries),
		get: func(c *Config) any { return *at(c) },
		set: func(c *Config, words []string) error {
			*at(c) = append([]string{}, words...)
			return nil
		},
		check: func(c *Config) error {
			if len(*at(c)) > maxEntries {
				return refused(name, "it has more than %d entries", maxEntries)
			}
			for i, e := range *at(c) {
				if err := egress.CheckEntry(e); err != nil {
					f := fault.From(err)
					return refused(name, "entry %d, %s", i+1, f.Msg).WithHint("%s", f.Hint)
				}
			}
			return nil
		},
	}
}

// plainText reports whether a text has 1 to most bytes and no control characters.
func plainText(s string, most int) bool {
	return s != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
