package git

import (
	"strconv"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// setting is one value of git's configuration. The section and the last name of its key are
// in lower case, as git writes them.
type setting struct{ key, value string }

// settings are all of a repository, in the order in which the later ones win.
type settings []setting

// parseSettings reads what `git config --list -z` writes.
func parseSettings(out []byte) (list settings) {
	for item := range strings.SplitSeq(string(out), "\x00") {
		if item == "" {
			continue
		}
		key, value, found := strings.Cut(item, "\n")
		if !found {
			value = "true" // a key alone is a switch that is on
		}
		list = append(list, setting{key, value})
	}
	return list
}

// get is the value that counts; empty when there is none.
func (l settings) get(key string) (value string) {
	for _, s := range l {
		if s.key == key {
			value = s.value
		}
	}
	return value
}

// on reports whether a switch is on.
func (l settings) on(key string) bool {
	switch strings.ToLower(l.get(key)) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// fixed holds on every call, whatever a repository's configuration says. An empty
// core.fsmonitor is none in every version of git; older ones take "false" for a program.
var fixed = settings{
	{"core.fsmonitor", ""}, {"core.hooksPath", "/dev/null"}, {"core.attributesFile", "/dev/null"},
	{"core.sshCommand", "false"}, {"core.askPass", ""}, {"core.editor", ":"}, {"core.pager", "cat"}, {"core.gitProxy", ""}, {"core.alternateRefsCommand", ""},
	{"core.untrackedCache", "false"}, {"core.splitIndex", "false"}, {"core.quotePath", "false"},
	{"credential.helper", ""}, {"protocol.allow", "never"}, {"fetch.recurseSubmodules", "false"}, {"submodule.recurse", "false"},
	{"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}, {"log.showSignature", "false"},
	{"gc.auto", "0"}, {"maintenance.auto", "false"},
	{"log.follow", "false"}, {"log.mailmap", "false"}, {"diff.external", ""}, {"diff.suppressBlankEmpty", "false"}, {"status.submoduleSummary", "false"},
	{"i18n.commitEncoding", "UTF-8"}, {"i18n.logOutputEncoding", "UTF-8"},
}

// maxOverrides bounds what a repository's configuration can make an environment grow to.
const maxOverrides = 2000

// overrides are the values that keep a repository's configuration from having anything run.
func (l settings) overrides() (settings, error) {
	seen := map[string]bool{}
	list := append(settings(nil), fixed...)
	for _, s := range l {
		if seen[s.key] {
			continue
		}
		seen[s.key] = true
		if value, is := harmless(s.key); is {
			list = append(list, setting{s.key, value})
		}
	}
	if len(list) > maxOverrides {
		return nil, fault.New(contract.ResourceLimit, "the repository's configuration has more than %d settings that could run programs", maxOverrides).
			WithHint("the owner can look at it: git config --list --show-origin")
	}
	return list, nil
}

// dataSections are the sections of git's own that hold values as well as commands: in them a
// key is judged by its name. All of any other section is overridden, also of those that later
// versions of git may bring.
const dataSections = " advice am apply author blame branch bundle clean clone color column commit commitgraph committer core diff extensions feature fetch format " +
	"fsck gc gpg grep gui help http i18n include includeif index init interactive log lsrefs mailinfo mailmap maintenance merge notes pack protocol pull push " +
	"receive reftable remote rerere safe showbranch sparse splitindex stash status submodule tag tar transfer uploadarchive uploadpack url user versionsort worktree rebase revert "

// commandWords are in the names of settings whose values are, or name, a program.
var commandWords = []string{
	"command", "cmd", "program", "process", "driver", "textconv", "editor", "pager", "helper", "hook", "askpass", "proxy",
	"external", "fsmonitor", "viewer", "browser", "exec", "uploadpack", "receivepack", "difffilter",
}

// harmless gives the value that a key of a repository's configuration must have instead of
// its own, if it could make git run something.
func harmless(key string) (value string, is bool) {
	dot, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if dot < 0 {
		return "", false
	}
	section, name := strings.ToLower(key[:dot]), strings.ToLower(key[last+1:])
	switch section + "." + name {
	case "core.fsmonitorhookversion": // a number; it is read with core.fsmonitor only
		return "", false
	case "core.hookspath":
		return "/dev/null", true
	case "core.sshcommand":
		return "false", true
	case "core.pager":
		return "cat", true
	case "core.editor":
		return ":", true
	case "submodule.update": // "!command"
		return "none", true
	case "filter.required": // or git would fail, as no filter is there
		return "false", true
	case "remote.vcs": // names a program
		return "", true
	case "diff.orderfile": // git fails when the file is not there
		return "/dev/null", true
	}
	if !strings.Contains(dataSections, " "+section+" ") {
		return "", true
	}
	for _, word := range commandWords {
		if strings.Contains(name, word) {
			return "", true
		}
	}
	return "", false
}

// environ passes settings to git. Options could not: a name may hold a "=".
func (l settings) environ() []string {
	env := make([]string, 0, 2*len(l)+1)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(l)))
	for i, s := range l {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return env
}
