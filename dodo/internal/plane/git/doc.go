// Package git shows and commits what git knows of a workspace.
//
// What it is: the operations git_status, git_diff, git_log and git_commit over the git
// program of this machine, which one runner starts inside the sandbox.
//
// What one may rely on: git never runs outside the sandbox and never reaches a network; what
// a repository's configuration, attributes and hooks would have it run is overridden on every
// call, so that a hostile repository runs nothing even before the walls count; no argument of
// a caller is taken for an option or a pattern; what is secret, protected or outside of the
// workspace is left out and counted. A git directory outside of the workspace is used only
// when it is that of a directory above, or names this work tree itself. Nothing is ever pushed
// or fetched. A commit has exactly the content that was previewed, but for what hooks add that
// the owner allowed; it is made in a copy of the index, which takes the index's place only
// when nobody changed that meanwhile.
//
// What it deliberately does not do: it does not look into submodules, whose own configuration
// nothing here overrides; it runs no hooks of a git directory outside of the workspace, which
// they could change; it runs no filters, so it adds no file that needs one, such as
// those of Git LFS; it signs nothing, finishes no merge and amends no commit; it reads nothing
// of the owner's global configuration but name, address and whether commits are signed.
package git
