package source_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/fault"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
)

func TestRegister(t *testing.T) {
	h := testenv.NewHome(t)
	p := places(t, h)
	b := source.Registration{Origin: evidence.Codex, Dir: h.Path("b")}
	a := source.Registration{Origin: evidence.Codex, Dir: h.Path("a")}
	c := source.Registration{Origin: evidence.ChatGPT, Dir: h.Path("a")}
	for i, r := range []source.Registration{b, a, c, a} {
		must(t, os.MkdirAll(r.Dir, 0o700))
		added, err := p.Register(t.Context(), r)
		must(t, err)
		if added != (i < 3) {
			t.Errorf("%v: added %t", r, added)
		}
	}
	got, err := p.Registered()
	must(t, err)
	if diff := cmp.Diff([]source.Registration{c, a, b}, got); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(h.Path(".config/mooncite/sources.json"))
	must(t, err)
	testenv.Golden(t, "testdata/sources.json", []byte(strings.ReplaceAll(string(data), h.Dir, "/home/me")))
	st, err := os.Stat(h.Path(".config/mooncite/sources.json"))
	must(t, err)
	if st.Mode() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}

	must(t, os.RemoveAll(h.Path("b"))) // what is gone can still be taken out
	must(t, p.Unregister(t.Context(), b))
	for _, x := range []struct {
		r    source.Registration
		hint string
	}{
		{b, "source list"},
		{source.Registration{Origin: evidence.Claude, Dir: h.Path("a")}, "registered for chatgpt"},
		{source.Registration{Origin: evidence.Codex, Dir: h.Path(".codex/sessions")}, "MOONCITE_AUTO_SOURCES=0"},
	} {
		err := p.Unregister(t.Context(), x.r)
		if f := fault.From(err); !errors.Is(err, source.Configuration) || !strings.Contains(f.Msg, "not registered for "+string(x.r.Origin)) || !strings.Contains(f.Hint, x.hint) {
			t.Errorf("%v: %v", x.r, err)
		}
	}
	if got, _ := p.Registered(); len(got) != 2 {
		t.Errorf("left: %v", got)
	}
}

// Neither a home nor a configuration directory comes into being by a wrong call.
func TestNothingIsMadeInVain(t *testing.T) {
	h := testenv.NewHome(t)
	home := h.Path("mistyped")
	h.Set("HOME", home)
	h.Set("XDG_CONFIG_HOME", "")
	h.Set("XDG_STATE_HOME", "")
	p := places(t, h)
	must(t, os.Mkdir(h.Path("real"), 0o700))
	r := source.Registration{Origin: evidence.Codex, Dir: h.Path("real")}
	_, err := p.Register(t.Context(), r)
	for what, err := range map[string]error{"add": err, "state": p.Housed(p.StateDir)} {
		if f := fault.From(err); !errors.Is(err, source.Configuration) || !strings.Contains(f.Msg, "home directory does not exist") || !strings.Contains(f.Hint, "HOME") || strings.Contains(f.Msg+f.Hint, home) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, p.Housed(h.Path("elsewhere")))
	if err := p.Unregister(t.Context(), r); !strings.Contains(err.Error(), "not registered") {
		t.Errorf("remove: %v", err)
	}
	if _, err := os.Stat(home); err == nil {
		t.Error("the home was made")
	}
	must(t, os.Mkdir(home, 0o700))
	must(t, p.Housed(p.StateDir))
	if err := p.Unregister(t.Context(), r); !strings.Contains(err.Error(), "not registered") {
		t.Errorf("remove: %v", err)
	}
	if _, err := os.Stat(p.ConfigDir); err == nil {
		t.Error("the configuration directory was made")
	}
	register(t, p, r)
}

func TestRegisterRefuses(t *testing.T) {
	h := testenv.NewHome(t)
	p := places(t, h)
	must(t, os.MkdirAll(h.Path("real"), 0o700))
	must(t, os.Symlink("real", h.Path("ln")))
	h.Write(t, "file", "")
	for name, r := range map[string]source.Registration{
		"relative":       {Origin: evidence.Codex, Dir: "real"},
		"not normalised": {Origin: evidence.Codex, Dir: h.Path("real") + "/"},
		"missing":        {Origin: evidence.Codex, Dir: h.Path("none")},
		"a file":         {Origin: evidence.Codex, Dir: h.Path("file")},
		"a link":         {Origin: evidence.Codex, Dir: h.Path("ln")},
		"Pi":             {Origin: evidence.Pi, Dir: h.Path("real")},
		"unknown":        {Origin: "gemini", Dir: h.Path("real")},
		"around state":   {Origin: evidence.Codex, Dir: h.Dir},
		"everything":     {Origin: evidence.Codex, Dir: "/"},
		"too long":       {Origin: evidence.Codex, Dir: h.Path(strings.Repeat("x", 300))},
	} {
		_, err := p.Register(t.Context(), r)
		f := fault.From(err)
		if err == nil || f.Code != source.Configuration && f.Code != source.RootUnavailable || f.Hint == "" || strings.Contains(f.Msg, h.Dir) {
			t.Errorf("%s: %v (%q)", name, err, f)
		}
	}
	if _, err := os.Stat(h.Path(".config/mooncite")); err == nil {
		t.Error("a refused source made the configuration directory")
	}
}

func TestBadRegistryIsNamedAndLeftAlone(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", "no JSON"},
		"no JSON":        {"{\n\n!", "line 3"},
		"two values":     {`{"version":1,"sources":[]} 1`, "no JSON"},
		"array":          {`[]`, "not an object"},
		"no version":     {`{"sources":[]}`, "version is missing"},
		"other version":  {`{"version":2,"sources":[]}`, "version is 2"},
		"no sources":     {`{"version":1}`, "sources is missing"},
		"null sources":   {`{"version":1,"sources":null}`, "sources is missing"},
		"extra key":      {`{"version":1,"sources":[],"x":1}`, "/x"},
		"wrong case":     {`{"Version":1,"sources":[]}`, "/Version"},
		"twice":          {`{"version":1,"version":1,"sources":[]}`, "no JSON"},
		"extra in entry": {`{"version":1,"sources":[{"origin":"codex","root":"/a","x":1}]}`, "/sources/0/x"},
		"no root":        {`{"version":1,"sources":[{"origin":"codex"}]}`, "sources[0].root is missing"},
		"no origin":      {`{"version":1,"sources":[{"root":"/a"}]}`, "sources[0].origin is missing"},
		"pi":             {`{"version":1,"sources":[{"origin":"pi","root":"/a"}]}`, "sources[0]: origin is not one of"},
		"relative":       {`{"version":1,"sources":[{"origin":"codex","root":"a"}]}`, "sources[0]: root is not an absolute path"},
		"dots":           {`{"version":1,"sources":[{"origin":"codex","root":"/a/../b"}]}`, "sources[0]: root is not in its shortest form"},
		"repeated":       {`{"version":1,"sources":[{"origin":"codex","root":"/a"},{"origin":"codex","root":"/a"}]}`, "sources[1] repeats sources[0]"},
		"number":         {`{"version":1,"sources":[{"origin":"codex","root":7}]}`, "/sources/0/root"},
		"too large":      {strings.Repeat(" ", source.MaxRegistry+1), "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			h := testenv.NewHome(t)
			file := h.Write(t, ".config/mooncite/sources.json", c.text)
			p := places(t, h)
			_, err := p.Registered()
			f := fault.From(err)
			if err == nil || f.Code != source.Configuration || !strings.Contains(f.Msg, c.want) || !strings.Contains(f.Msg, "sources.json") || f.Hint == "" {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			must(t, os.MkdirAll(h.Path("a"), 0o700))
			if _, err := p.Register(t.Context(), source.Registration{Origin: evidence.Codex, Dir: h.Path("a")}); !errors.Is(err, source.Configuration) {
				t.Errorf("registered over it: %v", err)
			}
			if data, _ := os.ReadFile(file); string(data) != c.text {
				t.Error("the file was changed")
			}
		})
	}
}

func TestReadableConfigurationIsFine(t *testing.T) {
	h := testenv.NewHome(t)
	file := h.Write(t, ".config/mooncite/sources.json", `{"sources":[],"version":1}`)
	must(t, os.Chmod(file, 0o644))
	must(t, os.Chmod(h.Path(".config/mooncite"), 0o775))
	must(t, os.Chmod(h.Dir, 0o775))
	_, err := places(t, h).Registered()
	must(t, err)
	must(t, os.Chmod(file, 0o666))
	_, err = places(t, h).Registered()
	if !errors.Is(err, source.Configuration) || !strings.Contains(err.Error(), "can be changed by everyone") {
		t.Errorf("got %v", err)
	}
}

func TestTwoRegistrationsAtOnceBothCount(t *testing.T) {
	h := testenv.NewHome(t)
	p := places(t, h)
	var wg sync.WaitGroup
	var added atomic.Int64
	for _, name := range []string{"a", "b", "c", "d", "a", "b", "c", "d"} {
		must(t, os.MkdirAll(h.Path(name), 0o700))
		wg.Go(func() {
			new, err := p.Register(t.Context(), source.Registration{Origin: evidence.Codex, Dir: h.Path(name)})
			if err != nil {
				t.Error(err)
			}
			if new {
				added.Add(1)
			}
		})
	}
	wg.Wait()
	if n := added.Load(); n != 4 { // of two that add the same, one did
		t.Errorf("%d were told that they added one", n)
	}
	got, err := p.Registered()
	must(t, err)
	if len(got) != 4 {
		t.Errorf("%v", got)
	}
}
