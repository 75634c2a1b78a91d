package source_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
)

func TestRootsOfAnEmptyHome(t *testing.T) {
	h := testenv.NewHome(t)
	var got []string
	for _, r := range places(t, h).Resolve().Roots {
		if r.State != source.Missing || r.Problem != nil || r.Digest != evidence.RootDigest(r.Dir, r.Automatic) {
			t.Errorf("%+v", r)
		}
		line := string(r.Origin) + " " + strings.TrimPrefix(r.Dir, h.Dir)
		if r.Automatic {
			line += " automatic"
		}
		got = append(got, line)
	}
	want := []string{
		"pi /.pi/agent/sessions",
		"omp /.omp/agent/sessions",
		"claude-code /.claude/projects automatic",
		"claude-code /.config/claude-sol/projects automatic",
		"codex /.codex/sessions automatic",
		"codex /.codex/archived_sessions automatic",
		"chatgpt /incoming/chatgpt-share-archive automatic",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestVariablesMoveRoots(t *testing.T) {
	h := testenv.NewHome(t)
	for k, v := range map[string]string{
		"PI_AGENT_DIR": "/p", "PI_CODING_AGENT_DIR": "/o", "CODEX_HOME": "/c/", "CLAUDE_CONFIG_DIR": "/cl",
		"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "relative is ignored",
	} {
		h.Set(k, v)
	}
	p := places(t, h)
	if p.StateDir != "/s/mooncite" || p.ConfigDir != h.Path(".config/mooncite") {
		t.Errorf("state %s, config %s", p.StateDir, p.ConfigDir)
	}
	s := p.Resolve()
	for dir, origin := range map[string]evidence.Origin{
		"/p/sessions": evidence.Pi, "/o/sessions": evidence.OMP, "/c/sessions": evidence.Codex,
		"/c/archived_sessions": evidence.Codex, "/cl/projects": evidence.Claude, h.Path(".claude/projects"): evidence.Claude,
	} {
		_, r := rootAt(t, s, dir)
		if r.Origin != origin || r.Automatic != (origin == evidence.Codex || origin == evidence.Claude) {
			t.Errorf("%s: %+v", dir, r)
		}
	}
	h.Set("MOONCITE_STATE_DIR", "/elsewhere")
	h.Set("MOONCITE_AUTO_SOURCES", "0")
	p = places(t, h)
	if p.StateDir != "/elsewhere" {
		t.Errorf("state %s", p.StateDir)
	}
	if n := len(p.Resolve().Roots); n != 2 {
		t.Errorf("%d roots without automatic ones, want Pi and OMP", n)
	}
	h.Set("MOONCITE_AUTO_SOURCES", "false") // only 0 counts
	if n := len(places(t, h).Resolve().Roots); n != 8 {
		t.Errorf("%d roots, want 8", n)
	}
}

func TestBadEnvironment(t *testing.T) {
	h := testenv.NewHome(t)
	must(t, os.MkdirAll(h.Path(".claude/projects"), 0o700))
	h.Set("CODEX_HOME", "codex")
	s := places(t, h).Resolve()
	_, r := rootAt(t, s, "codex/sessions")
	if r.State != source.Refused || r.Problem.Code != source.Configuration || !strings.Contains(r.Problem.Hint, "CODEX_HOME") {
		t.Errorf("%+v", r)
	}
	if _, r := rootAt(t, s, h.Path(".claude/projects")); r.State != source.Usable {
		t.Errorf("%+v", r)
	}
	for name, env := range map[string]map[string]string{
		"HOME": nil, "MOONCITE_STATE_DIR": {"HOME": "/h", "MOONCITE_STATE_DIR": "state"},
	} {
		if _, err := source.PlacesOf(env); !errors.Is(err, source.Configuration) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want something about %s", err, name)
		}
	}
}

func TestRegisteringAnAutomaticRootKeepsItsDigest(t *testing.T) {
	h := testenv.NewHome(t)
	dir := h.Path(".codex/sessions")
	must(t, os.MkdirAll(dir, 0o700))
	p := places(t, h)
	_, before := rootAt(t, p.Resolve(), dir)
	register(t, p, source.Registration{Origin: evidence.Codex, Dir: dir})
	s := p.Resolve()
	_, after := rootAt(t, s, dir)
	if !after.Registered || after.Digest != before.Digest || len(s.Roots) != 7 {
		t.Errorf("before %+v, after %+v, %d roots", before, after, len(s.Roots))
	}
	h.Set("MOONCITE_AUTO_SOURCES", "0")
	h.Set("CODEX_HOME", "/elsewhere")
	if _, r := rootAt(t, places(t, h).Resolve(), dir); r.Digest != before.Digest {
		t.Error("the digest depends on a variable")
	}
}

func TestLinkedRootIsNamedWithItsRemedy(t *testing.T) {
	h := testenv.NewHome(t)
	h.Write(t, "dot files/claude/projects/p/x.jsonl", "")
	must(t, os.Symlink("dot files/claude", h.Path(".claude")))
	h.Write(t, "pi/agent/sessions/p/x.jsonl", "")
	must(t, os.Symlink("pi", h.Path(".pi")))
	p := places(t, h)
	s := p.Resolve()
	_, r := rootAt(t, s, h.Path(".claude/projects"))
	remedy := "mooncite source add claude-code '" + h.Path("dot files/claude/projects") + "'"
	if r.State != source.Refused || r.Problem.Code != source.RootUnavailable || r.Remedy != remedy {
		t.Errorf("%+v\nwant %s", r, remedy)
	}
	if strings.Contains(r.Problem.Msg+r.Problem.Hint, h.Dir) {
		t.Errorf("a path is shown: %s, %s", r.Problem.Msg, r.Problem.Hint)
	}
	if _, err := s.Open(2, rules); !errors.Is(err, source.RootUnavailable) {
		t.Errorf("opened: %v", err)
	}
	if _, r := rootAt(t, s, h.Path(".pi/agent/sessions")); r.Remedy != "export PI_AGENT_DIR="+h.Path("pi/agent") {
		t.Errorf("remedy for Pi: %s", r.Remedy)
	}

	register(t, p, source.Registration{Origin: evidence.Claude, Dir: h.Path("dot files/claude/projects")})
	if _, r := rootAt(t, p.Resolve(), h.Path(".claude/projects")); r.State != source.Covered || r.Problem != nil {
		t.Errorf("after the remedy: %+v", r)
	}
	must(t, os.RemoveAll(h.Path("dot files")))
	if _, r := rootAt(t, p.Resolve(), h.Path(".claude/projects")); r.State != source.Missing {
		t.Errorf("a link to nothing: %+v", r)
	}
}

func TestOneBadRootDoesNotSpoilTheOthers(t *testing.T) {
	h := testenv.NewHome(t)
	h.Set("MOONCITE_STATE_DIR", h.Path(".codex/sessions/state"))
	must(t, os.MkdirAll(h.Path(".codex/sessions"), 0o700))
	must(t, os.MkdirAll(h.Path(".claude/projects"), 0o700))
	h.Write(t, ".codex/archived_sessions", "a file")
	h.Write(t, ".config/mooncite/sources.json", "{")
	s := places(t, h).Resolve()
	if s.Problem == nil || s.Problem.Code != source.Configuration {
		t.Errorf("sources.json: %v", s.Problem)
	}
	for dir, want := range map[string]source.State{
		".codex/sessions": source.Refused, ".codex/archived_sessions": source.Refused, ".claude/projects": source.Usable,
	} {
		_, r := rootAt(t, s, h.Path(dir))
		if r.State != want {
			t.Errorf("%s: %+v", dir, r)
		}
		if r.State == source.Refused && (r.Problem.Hint == "" || strings.Contains(r.Problem.Msg, h.Dir)) {
			t.Errorf("%s: %q, %q", dir, r.Problem.Msg, r.Problem.Hint)
		}
	}
}

func TestStateDirectoryBehindALinkOverlapsToo(t *testing.T) {
	h := testenv.NewHome(t)
	must(t, os.MkdirAll(h.Path(".claude/projects"), 0o700))
	must(t, os.Symlink(h.Path(".claude"), h.Path("ln")))
	h.Set("MOONCITE_STATE_DIR", h.Path("ln/projects/not/yet/there"))
	if _, r := rootAt(t, places(t, h).Resolve(), h.Path(".claude/projects")); r.State != source.Refused || r.Problem.Code != source.Configuration {
		t.Errorf("%+v", r)
	}
}

func TestNestedRootsGiveNoFileTwice(t *testing.T) {
	h := testenv.NewHome(t)
	h.Write(t, "all/a.jsonl", "")
	h.Write(t, "all/inner/b.jsonl", "")
	h.Write(t, "all/skip/c.jsonl", "")
	p := places(t, h)
	for _, r := range []source.Registration{
		{Origin: evidence.Codex, Dir: h.Path("all")},
		{Origin: evidence.Codex, Dir: h.Path("all/inner")},
		{Origin: evidence.Codex, Dir: h.Path("all/skip")},
		{Origin: evidence.Claude, Dir: h.Path("all/inner")},
	} {
		register(t, p, r)
	}
	s := p.Resolve()
	var got []string
	for i, r := range s.Roots {
		if r.State != source.Usable {
			continue
		}
		tree, err := s.Open(i, rules)
		must(t, err)
		defer tree.Close()
		changes, err := source.NewWatch(tree, nil, nil).Changes(t.Context())
		must(t, err)
		for _, c := range changes {
			got = append(got, string(r.Origin)+" "+strings.TrimPrefix(r.Dir, h.Dir)+" "+c.Rel)
		}
	}
	want := []string{"claude-code /all/inner b.jsonl", "codex /all a.jsonl", "codex /all/skip c.jsonl"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
