package job_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/job"
)

func (w *world) tasks() map[string]job.Recipe {
	w.t.Helper()
	list, err := w.svc.Tasks(context.Background())
	must(w.t, err)
	all := map[string]job.Recipe{}
	for _, r := range list {
		all[r.ID] = r
	}
	return all
}

func TestTasks(t *testing.T) {
	w := newWorld(t)
	w.offers = []job.Offer{{ID: "demo", Title: "Show it", Program: "sh", Args: []string{"-c", "echo demo"}, Cwd: "sub"}}
	w.reopen()
	if len(w.tasks()) != 0 {
		t.Error("an empty workspace has tasks")
	}
	w.write(".dodo.json", `{}`, 0o644)
	w.write("package.json", "\ufeff"+`{"name":"x","scripts":{"test":"jest","build:all":"tsc","--evil":"x","a\nb":"x","":"x"},"more":[1]}`, 0o644)
	w.write("pnpm-lock.yaml", "", 0o644)
	w.write("Makefile", "VAR := x\nall: build\nbuild:\n\techo\n.PHONY: all\n%.o: %.c\n-x:\nA=b: c\nbuild: again\nsub/dir: x\nlast::\n", 0o644)
	w.write("go.mod", "module x", 0o644)
	w.write("Cargo.toml", "", 0o644)
	w.write("pyproject.toml", "", 0o644)
	w.write("requirements.txt", "", 0o644)
	w.write("composer.json", `{"scripts":{"lint":["a","b"]}}`, 0o644)
	w.write("build.gradle", "", 0o644)
	w.write("gradlew", "", 0o755)
	w.write("pom.xml", "", 0o644)
	got := map[string]string{}
	for id, r := range w.tasks() {
		got[id] = r.Program + " " + strings.Join(r.Args, " ") + " in " + r.Cwd + " by " + r.Source
		if !contract.IsHash(r.RecipeDigest) || r.Title == "" {
			t.Errorf("%+v", r)
		}
	}
	want := map[string]string{
		"dodo:demo": "sh -c echo demo in sub by .dodo.json", "npm:test": "pnpm run test in . by package.json", "npm:build:all": "pnpm run build:all in . by package.json",
		"make:all": "make all in . by Makefile", "make:build": "make build in . by Makefile", "make:sub/dir": "make sub/dir in . by Makefile", "make:last": "make last in . by Makefile",
		"go:build": "go build ./... in . by go.mod", "go:test": "go test ./... in . by go.mod", "go:vet": "go vet ./... in . by go.mod",
		"cargo:build": "cargo build in . by Cargo.toml", "cargo:test": "cargo test in . by Cargo.toml", "cargo:clippy": "cargo clippy in . by Cargo.toml",
		"py:pytest": "python3 -m pytest in . by pyproject.toml", "py:ruff": "ruff check . in . by pyproject.toml", "py:mypy": "mypy . in . by pyproject.toml",
		"composer:lint": "composer run-script lint in . by composer.json",
		"gradle:build":  "./gradlew build in . by build.gradle", "gradle:test": "./gradlew test in . by build.gradle",
		"mvn:test": "mvn test in . by pom.xml", "mvn:package": "mvn package in . by pom.xml",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, broken := range []string{"", "{", `{"scripts":[]}`, `{"scripts":{"a":`, `[]`, strings.Repeat("[", 100000)} {
		w.write("package.json", broken, 0o644)
		for id := range w.tasks() {
			if strings.HasPrefix(id, "npm:") {
				t.Errorf("%.20q has %s", broken, id)
			}
		}
	}
}

// TestRunTask: a task runs as it was listed or not at all.
func TestRunTask(t *testing.T) {
	w := newWorld(t)
	w.offers = []job.Offer{{ID: "demo", Title: "Show it", Program: "./demo.sh", Args: []string{"an arg"}}}
	w.reopen()
	w.write(".dodo.json", `{}`, 0o644)
	w.write("demo.sh", "#!/bin/sh\necho \"demo of $1\"\n", 0o755)
	r := w.tasks()["dodo:demo"]
	args := obj{"taskId": r.ID, "recipeDigest": r.RecipeDigest, "idempotencyKey": "12345678"}
	d := w.call("run_task", args)
	if d.str("taskId") != r.ID || d["replayed"] != false {
		t.Errorf("%v", d)
	}
	if o := w.ended(d.str("jobId")); o.str("stdout") != "demo of an arg\n" {
		t.Errorf("%v", o)
	}
	if s := w.call("job_status", obj{"jobId": d["jobId"]}); s.str("kind") != "task" || s.str("taskId") != r.ID {
		t.Errorf("%v", s)
	}
	w.write(".dodo.json", `{ }`, 0o644)
	_, err := w.try("run_task", args)
	refused(t, err, contract.Conflict)
	if again := w.tasks()["dodo:demo"]; again.RecipeDigest == r.RecipeDigest {
		t.Error("the digest does not depend on the file")
	}
}

func FuzzManifests(f *testing.F) {
	for _, s := range []string{"a: b\n", `{"scripts":{"a":"b"}}`, "x::\r\n"} {
		f.Add(s)
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, s string) {
		w.t = t
		w.write("package.json", s, 0o644)
		w.write("Makefile", s, 0o644)
		for id, r := range w.tasks() {
			if last := r.Args[len(r.Args)-1]; last == "" || last[0] == '-' || strings.ContainsAny(id, "\n\x1b\x00") {
				t.Errorf("%q gives %+v", s, r)
			}
		}
	})
}
