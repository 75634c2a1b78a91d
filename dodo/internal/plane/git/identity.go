package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// identity is in whose name a commit is made.
type identity struct{ name, email string }

// identity is what the repository's configuration says, and where it says nothing, what the
// owner's own says. Also whether the owner has commits signed.
func (g *session) identity(ctx context.Context) (id identity, signs bool, err error) {
	global, err := g.global(ctx)
	if err != nil {
		return id, false, err
	}
	all := append(global, g.config...)
	id = identity{crop(all.get("user.name")), crop(all.get("user.email"))}
	if id.name == "" || id.email == "" {
		return id, false, fault.New(contract.InvalidInput, "git does not know in whose name to commit").
			WithHint("the owner can say so: git config --global user.name NAME, and user.email ADDRESS")
	}
	return id, all.on("commit.gpgsign"), nil
}

// global is the owner's own configuration, read as data: nothing that it includes or names is
// looked at.
func (g *session) global(ctx context.Context) (list settings, err error) {
	if g.Home == "" {
		return nil, nil
	}
	for _, name := range []string{filepath.Join(".config", "git", "config"), ".gitconfig"} { // git reads them in this order
		data, err := readBounded(filepath.Join(g.Home, name), maxConfig)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, err
		}
		more, err := g.parse(ctx, data)
		if err != nil {
			return nil, fault.Wrap(contract.InvalidInput, err, "git's configuration of this user cannot be read").
				WithHint("the owner can mend it: git config --global --list")
		}
		list = append(list, more...)
	}
	return list, nil
}

// readBounded reads a regular file of the owner's. It may be a link: many keep such files
// elsewhere.
func readBounded(name string, most int64) ([]byte, error) {
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fault.New(contract.ResourceLimit, "git's configuration of this user is larger than %d bytes", most).WithHint("the owner can make it smaller")
	}
	return data, err
}

// crop leaves out what git does not take in a name: it would say that nothing is left.
func crop(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || r == '\n' || r == 0 {
			return -1
		}
		return r
	}, s)
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`.,:;"\'`, r) })
}

// environ has git use it, and the owner's time.
func (id identity) environ(now time.Time) []string {
	date := fmt.Sprintf("@%d %s", now.Unix(), now.Format("-0700"))
	return []string{
		"GIT_AUTHOR_NAME=" + id.name, "GIT_AUTHOR_EMAIL=" + id.email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + id.name, "GIT_COMMITTER_EMAIL=" + id.email, "GIT_COMMITTER_DATE=" + date,
	}
}
