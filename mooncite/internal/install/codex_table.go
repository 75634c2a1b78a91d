package install

import (
	"bytes"
	"slices"
	"strings"
)

const codexConfig = "config.toml"

var codexTable = []byte("[mcp_servers." + serverName + "]")

// withTable is before with the table that after has. Nothing is kept where after differs in
// more than what Codex does: then another process has written too.
func withTable(before, after []byte) ([]byte, bool) {
	from, to, ok := table(after)
	if _, _, twice := table(before); !ok || twice || !sameOthers(before, after) {
		return nil, false
	}
	want := bytes.Clone(before)
	if n := len(want); n > 0 {
		if want[n-1] != '\n' {
			want = append(want, '\n')
		}
		want = append(want, '\n')
	}
	want = append(want, bytes.TrimRight(after[from:to], "\n")...)
	return append(want, '\n'), true
}

// withoutTable is before without its table, and without the empty line above that when
// nothing follows. Nothing is kept where after differs in more than what Codex does.
func withoutTable(before, after []byte) ([]byte, bool) {
	from, to, ok := table(before)
	if _, _, still := table(after); !ok || still || !sameOthers(before, after) {
		return nil, false
	}
	head, rest := before[:from], before[to:]
	if len(rest) == 0 { // what was the end of the file is so again
		if short := bytes.TrimSuffix(head, []byte("\n")); bytes.HasSuffix(short, []byte("\n")) {
			head = short
		}
	}
	return append(bytes.Clone(head), rest...), true
}

// table finds our table: from its header to the next one, which it must not be a part of.
// Tables below ours, such as its env, are not expected and give up.
func table(text []byte) (from, to int, ok bool) {
	from = -1
	for at := 0; at < len(text); {
		end := at + bytes.IndexByte(text[at:], '\n') + 1
		if end == at {
			end = len(text)
		}
		line := bytes.TrimSpace(text[at:end])
		switch {
		case bytes.Equal(line, codexTable):
			if from >= 0 {
				return 0, 0, false
			}
			from, to = at, len(text)
		case bytes.HasPrefix(line, codexTable[:len(codexTable)-1]):
			return 0, 0, false
		case from >= 0 && to == len(text) && (bytes.HasPrefix(line, []byte("[")) || bytes.HasPrefix(line, []byte("#"))):
			to = at
		}
		at = end
	}
	return from, to, from >= 0
}

// sameOthers reports whether two texts have the same other servers, by name, and are the
// same outside of servers but for spacing and lines of comment.
func sameOthers(a, b []byte) bool { return slices.Equal(others(a), others(b)) }

func others(text []byte) []string {
	var lines, servers []string
	server := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			var name string
			if name, server = strings.CutPrefix(line, "[mcp_servers."); server {
				name, _, _ = strings.Cut(name, "]")
				name, _, _ = strings.Cut(name, ".") // a table below a server's may become a value in it
				servers = append(servers, name)
			}
		}
		if !server && line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	slices.Sort(servers)
	servers = slices.DeleteFunc(slices.Compact(servers), func(s string) bool { return s == serverName })
	return append(lines, servers...)
}
