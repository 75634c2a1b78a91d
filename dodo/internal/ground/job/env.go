package job

import (
	"slices"
	"strings"
)

// passed are the variables of the server's environment that commands get (spec
// dodo-behaviour 5.4).
var passed = []string{"HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL", "COLORTERM"}

// never are those that no command gets, whatever the owner lists: they make programs load
// code, or are the server's own secrets.
var never = []string{"NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "NODE_PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "COMSPEC", "PATHEXT", "TUNNEL_TOKEN", "TUNNEL_TOKEN_FILE"}

func forbidden(name string) bool {
	return slices.Contains(never, name) || strings.HasPrefix(name, "DODO_") || strings.HasPrefix(name, "DYLD_")
}

// environment is that of a command.
func (s *Service) environment(terminal bool) []string {
	set := map[string]string{"GIT_TERMINAL_PROMPT": "0"} // nobody is there to answer
	if !terminal {
		set["PAGER"] = "cat"
	}
	speaks := false
	for _, entry := range s.Environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || forbidden(name) || !slices.Contains(passed, name) && !slices.Contains(s.EnvAllow, name) {
			continue
		}
		set[name] = value
		speaks = speaks || name == "LANG" || name == "LC_ALL" || name == "LC_CTYPE"
	}
	if !speaks {
		set["LANG"] = "C.UTF-8" // output is read as UTF-8
	}
	set["PATH"] = s.Place.Path()
	set["TERM"] = "dumb"
	if terminal {
		set["TERM"] = "xterm-256color"
	}
	var list []string
	for name, value := range set {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}
