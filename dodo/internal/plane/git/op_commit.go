package git

import (
	"context"
	"fmt"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/fault"
)

type commitIn struct {
	Message  string   `json:"message" minLength:"1" maxLength:"4000"`
	Paths    []string `json:"paths,omitempty" maxItems:"200" maxLength:"1024" doc:"Files and directories whose changes are staged first, relative to the workspace's root."`
	All      bool     `json:"all" default:"false" doc:"Stage first what git_status lists."`
	NoVerify bool     `json:"noVerify" default:"false" doc:"Do not run the hooks that can refuse a commit, where the owner lets hooks run at all."`
}

type commitOut struct {
	Commit       string   `json:"commit"`
	Subject      string   `json:"subject"`
	FilesChanged int      `json:"filesChanged"`
	StagedPaths  []string `json:"stagedPaths" doc:"The files in it."`
}

// The bounds of what is shown of a commit.
const (
	mostPreviewed = 1000
	mostStaged    = 1000
)

// preview is what the owner is asked about: an approval holds for exactly this.
type preview struct {
	Branch   string    `json:"branch,omitempty"`
	Head     string    `json:"head,omitempty"` // the commit that is followed
	Author   string    `json:"author"`
	Message  string    `json:"message"`
	Hooks    []string  `json:"hooks"` // that will run
	NoVerify bool      `json:"noVerify"`
	Files    []planned `json:"files"`
	Total    int       `json:"total"`
	Digest   string    `json:"digest"` // of all files, where there are more than are shown
}

func (s *Service) commit() contract.Op {
	return contract.Do(contract.Def{
		Name: "git_commit", Title: "Git commit", Gateway: "dodo_git_write",
		Doc: "Commits what is staged, after staging the paths you name, or with all what git_status lists. Secret files are never " +
			"staged, and refused when somebody staged them. Nothing is pushed. Hooks run only where the owner allows it, in the sandbox.",
		Scope: contract.ScopeExec, Class: contract.ClassExec,
	}, func(ctx context.Context, _ contract.Call, in commitIn) (act contract.Act[commitOut], err error) {
		m, err := s.prepare(ctx, in)
		if err != nil {
			return act, err
		}
		if act.Preview, err = m.preview(in.NoVerify); err != nil {
			return act, err
		}
		act.Summary = fmt.Sprintf("git commit of %d files", len(m.plan.real()))
		if n := len(m.running); n > 0 {
			act.Summary += fmt.Sprintf(", with %d hooks of the repository", n)
		}
		act.Run = func(ctx context.Context) (contract.Answer[commitOut], error) { return s.make(ctx, in, m) }
		return act, nil
	})
}

// making is a commit on its way.
type making struct {
	*session
	message  string
	id       identity
	plan     *plan
	running  []string // names of hooks
	warnings []string
}

// prepare reads and validates; it changes nothing.
func (s *Service) prepare(ctx context.Context, in commitIn) (*making, error) {
	message := tidy(in.Message)
	if message == "" || strings.ContainsRune(message, 0) {
		return nil, fault.New(contract.InvalidInput, "the message is blank or has a NUL in it").WithHint("say in one line what the commit does")
	}
	if in.All && len(in.Paths) > 0 {
		return nil, fault.New(contract.InvalidInput, "paths and all cannot be used together").WithHint("leave one of them out")
	}
	paths, err := s.wanted(in.Paths)
	if err != nil {
		return nil, err
	}
	g, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, noRepository()
	}
	m := &making{session: g, message: message}
	var signs bool
	if m.id, signs, err = g.identity(ctx); err != nil {
		return nil, err
	}
	if m.plan, err = g.draft(ctx, in, paths); err != nil {
		return nil, err
	}
	if len(m.plan.real()) == 0 {
		return nil, m.empty()
	}
	m.note(in, signs)
	return m, nil
}

// empty is the fault of a commit with nothing in it.
func (m *making) empty() error {
	hint := "stage files by naming paths, or all; git_status shows what was changed"
	if m.plan.skipped > 0 {
		hint = "what was changed is kept secret from callers"
	}
	return fault.New(contract.Conflict, "there is nothing to commit").WithHint("%s", hint)
}

// note says what the caller may not expect.
func (m *making) note(in commitIn, signs bool) {
	there := m.hooks()
	switch n := len(there); {
	case n == 0:
	case m.Hooks != HooksSandbox:
		m.warnings = append(m.warnings, fmt.Sprintf("up to %d hooks of the repository were not run; the owner can let them run in the sandbox: dodo config set gitHooks sandbox", n))
	case !m.runner.hooks:
		m.warnings = append(m.warnings, fmt.Sprintf("up to %d hooks of the repository were not run: this git is older than 2.36, which is too old to run them", n))
	case len(m.repo.write) > 0:
		// A hook could change there what the owner's own git runs.
		m.warnings = append(m.warnings, fmt.Sprintf("up to %d hooks of the repository were not run: the git directory is outside of the workspace", n))
	default:
		for _, h := range there {
			if !in.NoVerify || h != preCommit && h != checkMessage {
				m.running = append(m.running, h)
			}
		}
	}
	if signs {
		m.warnings = append(m.warnings, "the commit is not signed: git_commit signs nothing")
	}
	if n := m.plan.skipped; n > 0 {
		m.warnings = append(m.warnings, fmt.Sprintf("%d files were left out because their paths are secret or protected", n))
	}
	if n := m.plan.idle; n > 0 {
		m.warnings = append(m.warnings, fmt.Sprintf("at %d of the paths nothing was changed", n))
	}
	if n := m.plan.nested; n > 0 {
		m.warnings = append(m.warnings, fmt.Sprintf("%d other repositories in the workspace were left out", n))
	}
}

// preview is what an approval is bound to.
func (m *making) preview(noVerify bool) (preview, error) {
	digest, err := m.plan.digest()
	files := m.plan.real()
	return preview{
		Branch: m.plan.branch, Head: m.plan.head, Author: text.Visible(m.id.name + " <" + m.id.email + ">"),
		Message: text.Visible(m.message), Hooks: append([]string{}, m.running...), NoVerify: noVerify,
		Files: files[:min(len(files), mostPreviewed)], Total: len(files), Digest: digest,
	}, err
}

// tidy leaves out what git leaves out of a message: blanks at the ends of lines, empty lines
// at its ends, and more than one of them together.
func tidy(message string) string {
	var out []string
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimRight(line, " \t\r\v\f")
		if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, line)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// subject is the first paragraph as one line, as git takes it.
func subject(message string) string {
	first, _, _ := strings.Cut(message, "\n\n")
	return strings.ReplaceAll(first, "\n", " ")
}
