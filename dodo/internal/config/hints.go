package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// HintsName is the file at a workspace's root that its authors may put there. MaxHints is
// its size at most, in bytes.
const (
	HintsName = ".dodo.json"
	MaxHints  = 64 << 10
)

// Bounds of hints.
const (
	maxExclude  = 200
	maxTasks    = 50
	maxTaskArgs = 64
)

// Hints are what a repository says about itself. They are text from outside: they exclude
// files and describe commands, and grant nothing.
type Hints struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Exclude     []string `json:"exclude"` // more patterns to leave out of listings and search
	Tasks       []Task   `json:"tasks"`
}

// A Task is a command that a repository offers. Running it needs what every command needs.
type Task struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Program string   `json:"program"`
	Args    []string `json:"args"`
	Cwd     string   `json:"cwd"` // below the root; empty: the root
}

var taskID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// ParseHints reads the file. When anything in it is not understood the fault says what, and
// the whole file is to be ignored.
func ParseHints(data []byte) (Hints, error) {
	var h Hints
	if len(data) > MaxHints {
		return Hints{}, ignored(nil, "it is larger than %d bytes", MaxHints)
	}
	if err := jsonv2.Unmarshal(data, &h, jsonv2.RejectUnknownMembers(true)); err != nil {
		var semantic *jsonv2.SemanticError
		switch {
		case errors.Is(err, jsonv2.ErrUnknownName) && errors.As(err, &semantic):
			return Hints{}, ignored(err, "it has an unknown key at depth %d", strings.Count(string(semantic.JSONPointer), "/"))
		case errors.As(err, &semantic):
			return Hints{}, ignored(err, "a value has the wrong type")
		}
		return Hints{}, ignored(err, "it is not valid JSON")
	}
	if err := h.check(); err != "" {
		return Hints{}, ignored(nil, "%s", err)
	}
	return h, nil
}

// ignored is the fault of a file that is ignored. Its sentence has no text of the file.
func ignored(cause error, format string, args ...any) error {
	return fault.Wrap(contract.InvalidInput, cause, "%s is ignored: %s", HintsName, fmt.Sprintf(format, args...))
}

// check says what is wrong; empty when nothing is.
func (h Hints) check() string {
	optional := func(s string, most int) bool { return s == "" || plainText(strings.ReplaceAll(s, "\n", " "), most) }
	switch {
	case !optional(h.Name, 100):
		return "its name is too long or not plain text"
	case !optional(h.Description, 2000):
		return "its description is too long or not plain text"
	case len(h.Exclude) > maxExclude:
		return fmt.Sprintf("it excludes by more than %d patterns", maxExclude)
	case len(h.Tasks) > maxTasks:
		return fmt.Sprintf("it has more than %d tasks", maxTasks)
	}
	for i, p := range h.Exclude {
		if !plainText(p, maxPattern) || strings.HasPrefix(p, "!") {
			return fmt.Sprintf("pattern %d cannot be used; one can only leave out, never take in", i+1)
		}
		if workspace.CheckPattern(p) != nil {
			return fmt.Sprintf("pattern %d is not well formed, or nothing can match it", i+1)
		}
	}
	seen := map[string]bool{}
	for i, t := range h.Tasks {
		if why := t.check(); why != "" {
			return fmt.Sprintf("task %d %s", i+1, why)
		}
		if seen[t.ID] {
			return fmt.Sprintf("task %d has the id of another", i+1)
		}
		seen[t.ID] = true
	}
	return ""
}

func (t Task) check() string {
	switch {
	case !taskID.MatchString(t.ID):
		return "has no usable id"
	case !plainText(t.Title, 200):
		return "has no usable title"
	case !plainText(t.Program, 4096):
		return "has no usable program"
	case len(t.Args) > maxTaskArgs:
		return fmt.Sprintf("has more than %d arguments", maxTaskArgs)
	case strings.HasPrefix(t.Cwd, "/") || strings.ContainsRune(t.Cwd, 0):
		return "has a directory that is not below the root"
	}
	for part := range strings.SplitSeq(t.Cwd, "/") {
		if part == ".." {
			return "has a directory that is not below the root"
		}
	}
	for _, a := range t.Args {
		if strings.ContainsRune(a, 0) || len(a) > MaxHints {
			return "has an argument that cannot be one"
		}
	}
	return ""
}
