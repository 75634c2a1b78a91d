package ignore_test

import (
	"errors"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/internal/fault"
)

func TestGlob(t *testing.T) {
	cases := []struct {
		glob     string
		yes, not []string
	}{
		{"*.go", []string{"a.go", "x/y/a.go", ".go"}, []string{"a.goo", "a.go/b"}},
		{"*.{ts,tsx}", []string{"a.ts", "b/a.tsx"}, []string{"a.t", "a.tsxx"}},
		{"src/*.go", []string{"src/a.go"}, []string{"src/x/a.go", "x/src/a.go"}},
		{"/src/*.go", []string{"src/a.go"}, []string{"x/src/a.go"}},
		{"./src/*.go", []string{"src/a.go"}, nil},
		{"/top", []string{"top"}, []string{"x/top"}},
		{"src/**", []string{"src/a", "src/a/b"}, []string{"src", "x/src/a"}},
		{"**/*_test.go", []string{"a_test.go", "x/y/a_test.go"}, []string{"a.go"}},
		{"**/{a,b}/**/*.c", []string{"a/x.c", "q/b/r/s/x.c"}, []string{"c/x.c"}},
		{"{src,lib/{one,two}}/*.js", []string{"src/a.js", "lib/one/a.js"}, []string{"lib/a.js"}},
		{"foo**/bar", []string{"foox/bar"}, []string{"foobar", "foo/x/bar"}},
		{"[!a-c]?[[:digit:]]", []string{"dx1", "q/é1"}, []string{"ax1", "d/1"}},
		{"[{,}]x", []string{"{x", ",x", "}x"}, []string{"x"}},
		{`\{a,b\}`, []string{"{a,b}"}, []string{"a"}},
		{"a{,.bak}", []string{"a", "a.bak"}, []string{"a."}},
		{"a}", []string{"a}"}, nil},
		{`\!a`, []string{"!a"}, nil},
		{"*", []string{"a", "b/c"}, nil},
		{"**", []string{"a", "b/c"}, nil},
	}
	for _, c := range cases {
		g, err := ignore.ParseGlob(c.glob)
		if err != nil {
			t.Errorf("%q: %v", c.glob, err)
			continue
		}
		for _, p := range c.yes {
			if !g.Match(p) {
				t.Errorf("%q does not match %q", c.glob, p)
			}
		}
		for _, p := range c.not {
			if g.Match(p) {
				t.Errorf("%q matches %q", c.glob, p)
			}
		}
	}
}

func TestGlobDir(t *testing.T) {
	for glob, want := range map[string]string{
		"*.go": "", "src/*.go": "src", "src/a/**": "src/a", "src/a.go": "src", "src/a[b]c/x": "src", "s*/a": "",
		"src/{a,b}/x": "", "src/{a,b}.go": "src", "/top": "", "src/**/x": "src",
	} {
		g, err := ignore.ParseGlob(glob)
		if err != nil {
			t.Errorf("%q: %v", glob, err)
		} else if g.Dir() != want {
			t.Errorf("%q is below %q, not %q", glob, g.Dir(), want)
		}
	}
}

func TestBadGlob(t *testing.T) {
	for glob, at := range map[string]int{
		"": 0, "!a": 0, "a[b": 1, "a{b": 1, "a{b,{c}": 1, `a\`: 1, "a/": 1, "a//b": 2, "../a": 0, "a/./b": 2, "a/../b": 2, "a\x00": 1, "[[:no:]]": 1,
		"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}": 40, "{{{{{{{{{a}}}}}}}}}": 8, "./": 0, "/": 0, "./a[": 3,
	} {
		_, err := ignore.ParseGlob(glob)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != contract.InvalidInput || f.Hint == "" {
			t.Errorf("%q: %v", glob, err)
		} else if f.Detail["at"] != at {
			t.Errorf("%q: at %v, want %d: %v", glob, f.Detail["at"], at, err)
		}
	}
}
