package git

import (
	"bytes"
	"strconv"
	"strings"
)

// state is what `git status --porcelain=v2 -z --branch` tells.
type state struct {
	branch   string // empty when HEAD is detached
	head     string // id of the commit; empty before the first
	upstream string
	compared bool // ahead and behind are known
	ahead    int
	behind   int
	entries  []entry
}

// entry is one path of it.
type entry struct {
	kind byte   // '1' changed, '2' renamed or copied, 'u' unmerged, '?' untracked
	xy   string // the index's state and the work tree's; "??" for what is untracked
	path string // of the repository
	orig string // of a rename or copy
	id   string // of the blob in the index
}

// staged reports whether the index differs from the last commit.
func (e entry) staged() bool { return (e.kind == '1' || e.kind == '2') && e.xy[0] != '.' }

// pending reports whether the work tree differs from the index.
func (e entry) pending() bool {
	return e.kind == '?' || (e.kind == '1' || e.kind == '2') && e.xy[1] != '.'
}

// parseState reads porcelain v2. What it does not know it passes over, as git asks for; a last
// record that is not whole is left out.
func parseState(out []byte) (s state) {
	for len(out) > 0 {
		var line string
		var whole bool
		if line, out, whole = record(out); !whole {
			break
		}
		if header, is := strings.CutPrefix(line, "# "); is {
			s.header(header)
			continue
		}
		e, ok := parseEntry(line)
		if ok && e.kind == '2' {
			if e.orig, out, ok = record(out); !ok {
				break
			}
		}
		if ok {
			s.entries = append(s.entries, e)
		}
	}
	return s
}

// record takes what stands before the next NUL.
func record(b []byte) (line string, rest []byte, whole bool) {
	head, rest, whole := bytes.Cut(b, []byte{0})
	return string(head), rest, whole
}

func (s *state) header(line string) {
	key, value, _ := strings.Cut(line, " ")
	switch key {
	case "branch.oid":
		if value != "(initial)" {
			s.head = value
		}
	case "branch.head":
		if value != "(detached)" {
			s.branch = value
		}
	case "branch.upstream":
		s.upstream = value
	case "branch.ab":
		a, b, _ := strings.Cut(value, " ")
		ahead, err1 := strconv.Atoi(strings.TrimPrefix(a, "+"))
		behind, err2 := strconv.Atoi(strings.TrimPrefix(b, "-"))
		if err1 == nil && err2 == nil {
			s.ahead, s.behind, s.compared = ahead, behind, true
		}
	}
}

// parseEntry reads a line: a kind, a fixed number of fields, and a path that may hold blanks.
func parseEntry(line string) (e entry, ok bool) {
	if len(line) < 3 || line[1] != ' ' {
		return e, false
	}
	e.kind = line[0]
	fields := map[byte]int{'1': 8, '2': 9, 'u': 10}[e.kind]
	if e.kind == '?' {
		e.xy, e.path = "??", line[2:]
		return e, true
	}
	f := strings.SplitN(line, " ", fields+1)
	if fields == 0 || len(f) != fields+1 || len(f[1]) != 2 || f[fields] == "" {
		return e, false
	}
	e.xy, e.path = f[1], f[fields]
	if e.kind != 'u' {
		e.id = f[7]
	}
	return e, true
}

// difference is one record of `git diff --raw -z --no-renames`.
type difference struct {
	mode   string // what it becomes; 000000 when it goes
	id     string // of the blob it becomes; zeros when it goes or is not in the index
	status byte   // A, D, M, T, U
	path   string
}

// parseRaw reads them. It fails on what is not of that form: who asks decides by it.
func parseRaw(out []byte) (list []difference, ok bool) {
	for len(out) > 0 {
		line, rest, whole := record(out)
		if !whole || !strings.HasPrefix(line, ":") {
			return nil, false
		}
		path, rest, whole := record(rest)
		f := strings.Split(line, " ")
		if !whole || path == "" || len(f) != 5 || len(f[4]) != 1 {
			return nil, false
		}
		list = append(list, difference{mode: f[1], id: f[3], status: f[4][0], path: path})
		out = rest
	}
	return list, true
}
