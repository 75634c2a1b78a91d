package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "localmcp"

// constraint matches file names whose ending the go command reads as a build
// constraint: an op_windows.go would be no operation at all on Linux.
var constraint = regexp.MustCompile(`^(op|cmd)_(.*_)?(aix|android|darwin|dragonfly|freebsd|illumos|ios|js|linux|netbsd|openbsd|plan9|solaris|wasip1|windows|386|amd64|arm|arm64|loong64|mips|mips64|ppc64|ppc64le|riscv64|s390x|wasm)\.go$`)

// plan is what layers.txt says.
type plan struct {
	floor map[string]int      // package, as a path below the module
	only  map[string][]string // import path -> the packages that may use it
}

// TestLayers holds every import of every file, whatever its operating system, against
// layers.txt. It parses the sources here and asks no go command: only what the test
// process itself opens makes a cached verdict stale.
func TestLayers(t *testing.T) {
	p := readPlan(t)
	seen := map[string]bool{} // package -> has a comment
	for name, file := range sources(t) {
		pkg := path.Dir(name)
		seen[pkg] = seen[pkg] || file.Doc != nil
		if constraint.MatchString(path.Base(name)) {
			t.Errorf("%s: the go command takes the end of this name for a build constraint; choose another", name)
		}
		for _, spec := range file.Imports {
			p.check(t, name, pkg, spec)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(seen)) {
		if _, listed := p.floor[pkg]; !listed {
			t.Errorf("%s is not in layers.txt: add a row that says which floor it is on", pkg)
		}
		if !seen[pkg] {
			t.Errorf("%s has no package comment: say what it is, what one may rely on, and what it does not do", pkg)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(p.floor)) {
		if _, exists := seen[pkg]; !exists {
			t.Errorf("layers.txt lists %s, which has no Go file: put a # before its row until it has", pkg)
		}
	}
}

// check judges one import.
func (p plan) check(t *testing.T, name, pkg string, spec *ast.ImportSpec) {
	t.Helper()
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if owners, sharp := p.only[imported]; sharp && !slices.Contains(owners, pkg) {
		t.Errorf("%s: %s may be imported only by %s", name, imported, strings.Join(append(owners, "tests"), ", "))
	}
	below, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return
	}
	here, listed := p.floor[pkg]
	there, known := p.floor[below]
	if listed && known && there >= here {
		t.Errorf("%s: %s is on floor %d and may not import %s on floor %d", name, pkg, here, below, there)
	}
}

// sources parses the package clause and the imports of all Go files but tests.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch base := d.Name(); {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
				return filepath.SkipDir
			}
		case strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go"):
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(name)] = f
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readPlan reads rows "FLOOR PACKAGE" and "only IMPORT PACKAGE...".
func readPlan(t *testing.T) plan {
	t.Helper()
	data, err := os.ReadFile("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := plan{floor: map[string]int{".": 0}, only: map[string][]string{}}
	for line := range strings.Lines(string(data)) {
		w := strings.Fields(line)
		if len(w) == 0 || strings.HasPrefix(w[0], "#") {
			continue
		}
		if w[0] == "only" && len(w) > 1 {
			p.only[w[1]] = w[2:]
			continue
		}
		n, err := strconv.Atoi(w[0])
		if err != nil || len(w) != 2 {
			t.Fatalf("layers.txt: %q is neither \"FLOOR PACKAGE\" nor \"only IMPORT PACKAGE...\"", strings.TrimSpace(line))
		}
		if _, twice := p.floor[w[1]]; twice {
			t.Fatalf("layers.txt lists %s twice", w[1])
		}
		p.floor[w[1]] = n
	}
	return p
}
