// Command testsum reads what "go test -json" prints and shows it to people.
//
// What it is: a filter: one line a package, the whole output of what failed, every
// skipped test with its reason (those that the file lists: how many, by line of the
// file), and a count at the end.
//
//	go test -json ./... | testsum SKIPS-FILE
//
// What one may rely on: the exit status is 1 when a test or a package failed, when
// nothing ran, or when the environment has CI=true and a test skipped that the file
// does not list.
//
// What it deliberately does not do: it starts nothing; what the go command itself
// answers is its caller's to check.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | testsum SKIPS-FILE")
		os.Exit(2)
	}
	list, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(2)
	}
	ok, err := sum(os.Stdin, os.Stdout, string(list), os.Getenv("CI") == "true")
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// event is one line of "go test -json".
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

type key struct{ pkg, test string }

// told is what go test says of a skipped test besides its reason.
var told = regexp.MustCompile(`^\s*(=== |--- )`)

func sum(in io.Reader, out io.Writer, list string, strict bool) (ok bool, err error) {
	allowed, err := parse(list)
	if err != nil {
		return false, err
	}
	output := map[key]string{}
	var passed, failed, skipped, unexpected int
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // not from a test
			continue
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			output[k] += e.Output
			continue
		case "pass":
			if e.Test == "" {
				fmt.Fprintf(out, "ok    %-44s %6.1f s\n", e.Package, e.Elapsed)
			} else {
				passed++
			}
		case "fail":
			if e.Test != "" {
				failed++
			} else {
				fmt.Fprintf(out, "FAIL  %-44s %6.1f s\n", e.Package, e.Elapsed)
				unexpected++ // a package may fail without a test that does
			}
			fmt.Fprint(out, output[k])
		case "skip":
			if e.Test == "" { // no test files
				break
			}
			skipped++
			if r := allows(allowed, k); r != nil {
				r.times++
				break
			}
			mark := "skip"
			if strict {
				mark, unexpected = "SKIP", unexpected+1
			}
			fmt.Fprintf(out, "%s  %s %s: %s\n", mark, e.Package, e.Test, reason(output[k]))
		default:
			continue
		}
		delete(output, k)
	}
	if err := lines.Err(); err != nil {
		return false, err
	}
	for _, r := range allowed {
		if r.times > 0 {
			fmt.Fprintf(out, "skip  %dx %s %s: %s\n", r.times, r.pkg, r.test, r.why)
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if strict && unexpected > 0 && failed == 0 {
		fmt.Fprintln(out, "a package failed, or a test marked SKIP skipped without being listed as one that may")
	}
	return passed > 0 && failed == 0 && unexpected == 0, nil
}

// A rule lists tests that may skip.
type rule struct {
	pkg, test, why string
	times          int
}

// parse reads lines "PACKAGE TEST # reason".
func parse(list string) ([]*rule, error) {
	var rules []*rule
	for line := range strings.Lines(list) {
		what, why, _ := strings.Cut(line, "#")
		f := strings.Fields(what)
		if len(f) == 0 {
			continue
		}
		why = strings.TrimSpace(why)
		if len(f) != 2 || why == "" {
			return nil, fmt.Errorf("%q is not PACKAGE TEST # reason", strings.TrimSpace(line))
		}
		rules = append(rules, &rule{pkg: f[0], test: f[1], why: why})
	}
	return rules, nil
}

// allows finds the rule by which a test may skip, nil if there is none.
func allows(rules []*rule, k key) *rule {
	for _, r := range rules {
		head, open := strings.CutSuffix(r.test, "*")
		if path.Join("localmcp", r.pkg) == k.pkg && (r.test == k.test || open && strings.HasPrefix(k.test, head)) {
			return r
		}
	}
	return nil
}

// reason is what a skipped test printed, without go test's own lines.
func reason(text string) string {
	var why []string
	for line := range strings.Lines(text) {
		if s := strings.TrimSpace(line); s != "" && !told.MatchString(line) {
			why = append(why, s)
		}
	}
	return strings.Join(why, " ")
}
