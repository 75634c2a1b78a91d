package git

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// staged is what the next commit would change in the whole repository: the difference between
// the last commit and an index, which is the repository's own when no other is named.
func (g *session) staged(ctx context.Context, index string) ([]difference, error) {
	c := call{args: []string{
		"diff", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=dirty", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--",
	}}
	if index != "" {
		c.env = []string{"GIT_INDEX_FILE=" + index}
	}
	out, err := g.runner.run(ctx, c)
	if err != nil {
		return nil, err
	}
	list, ok := parseRaw(out.bytes)
	if !ok {
		return nil, unreadable()
	}
	return list, nil
}

// unreadable is the fault of an answer that has not the form git documents.
func unreadable() error {
	return fault.New(contract.InternalError, "git answered in a form that is not known here").WithHint("the owner may have to look at the repository")
}
