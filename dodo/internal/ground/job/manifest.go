package job

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The most tasks of one file (spec dodo-catalog 6).
const (
	scriptsMost  = 30
	targetsMost  = 30
	composerMost = 20
)

// manifests are the files that describe tasks, in the order in which these are listed.
var manifests = []struct {
	file  string
	tasks func(data []byte, has map[string]bool, offers []Offer) []Recipe
}{
	{offersName, func(_ []byte, _ map[string]bool, offers []Offer) (list []Recipe) {
		for _, o := range offers {
			title := o.Title
			if title == "" {
				title = o.ID
			}
			list = append(list, Recipe{ID: "dodo:" + o.ID, Title: title, Program: o.Program, Args: o.Args, Cwd: o.Cwd})
		}
		return list
	}},
	{"package.json", func(data []byte, has map[string]bool, _ []Offer) (list []Recipe) {
		program := "npm"
		for _, lock := range [][2]string{{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"}} {
			if has[lock[0]] {
				program = lock[1]
				break
			}
		}
		for _, name := range scripts(data, scriptsMost) {
			list = append(list, Recipe{ID: "npm:" + name, Title: program + " run " + name, Program: program, Args: []string{"run", name}})
		}
		return list
	}},
	{"Makefile", func(data []byte, _ map[string]bool, _ []Offer) (list []Recipe) {
		for _, name := range targets(data) {
			list = append(list, Recipe{ID: "make:" + name, Title: "make " + name, Program: "make", Args: []string{name}})
		}
		return list
	}},
	{"go.mod", fixed("go", "go", "build ./...", "test ./...", "vet ./...")},
	{"Cargo.toml", fixed("cargo", "cargo", "build", "test", "clippy")},
	{"pyproject.toml", python},
	{"requirements.txt", func(data []byte, has map[string]bool, offers []Offer) []Recipe {
		if has["pyproject.toml"] {
			return nil
		}
		return python(data, has, offers)
	}},
	{"composer.json", func(data []byte, _ map[string]bool, _ []Offer) (list []Recipe) {
		for _, name := range scripts(data, composerMost) {
			list = append(list, Recipe{ID: "composer:" + name, Title: "composer run-script " + name, Program: "composer", Args: []string{"run-script", name}})
		}
		return list
	}},
	{"build.gradle", func(data []byte, has map[string]bool, offers []Offer) []Recipe {
		program := "gradle"
		if has["gradlew"] {
			program = "./gradlew"
		}
		return fixed("gradle", program, "build", "test")(data, has, offers)
	}},
	{"pom.xml", func(data []byte, has map[string]bool, offers []Offer) []Recipe {
		program := "mvn"
		if has["mvnw"] {
			program = "./mvnw"
		}
		return fixed("mvn", program, "test", "package")(data, has, offers)
	}},
}

// fixed makes tasks of a program's own commands, named by their first word.
func fixed(prefix, program string, commands ...string) func([]byte, map[string]bool, []Offer) []Recipe {
	return func([]byte, map[string]bool, []Offer) (list []Recipe) {
		for _, c := range commands {
			args := strings.Fields(c)
			list = append(list, Recipe{ID: prefix + ":" + args[0], Title: program + " " + c, Program: program, Args: args})
		}
		return list
	}
}

func python([]byte, map[string]bool, []Offer) []Recipe {
	return []Recipe{
		{ID: "py:pytest", Title: "python3 -m pytest", Program: "python3", Args: []string{"-m", "pytest"}},
		{ID: "py:ruff", Title: "ruff check .", Program: "ruff", Args: []string{"check", "."}},
		{ID: "py:mypy", Title: "mypy .", Program: "mypy", Args: []string{"."}},
	}
}

// scripts are the names in the object "scripts" of a JSON file, in its order.
func scripts(data []byte, most int) (names []string) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for name, value := range members(data) {
		if name != "scripts" {
			continue
		}
		for name := range members(value) {
			if len(names) == most {
				return names
			}
			names = append(names, name)
		}
	}
	return names
}

// members are those of a JSON object, as far as it can be read.
func members(object []byte) func(func(string, []byte) bool) {
	return func(yield func(string, []byte) bool) {
		d := jsontext.NewDecoder(bytes.NewReader(object))
		if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
			return
		}
		for d.PeekKind() == '"' {
			t, err := d.ReadToken()
			if err != nil {
				return
			}
			name := t.String()
			value, err := d.ReadValue()
			if err != nil || !yield(name, bytes.Clone(value)) {
				return
			}
		}
	}
}

// target is a line of a makefile that has one whose name is plain: no pattern, no variable,
// no special one.
var target = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_./-]*)[ \t]*::?(?:[^=:]|$)`)

// targets are the names of a makefile's targets, in its order.
func targets(data []byte) (names []string) {
	seen := map[string]bool{}
	for line := range bytes.Lines(data) {
		m := target.FindSubmatch(bytes.TrimRight(line, "\r\n"))
		if m == nil || seen[string(m[1])] {
			continue
		}
		if len(names) == targetsMost {
			break
		}
		seen[string(m[1])] = true
		names = append(names, string(m[1]))
	}
	return names
}
