package workspace

import "strings"

// secrets is the secret layer.
type secrets struct{}

func newSecrets(deny, allow []string) secrets { return secrets{} }

// match reports whether an entry is secret: rel is its path, name the last component.
func (s *secrets) match(rel, name string, dir bool) bool {
	n := strings.ToLower(name)
	if n[0] == '.' {
		switch n {
		case ".env", ".envrc", ".npmrc", ".pypirc", ".netrc", ".git-credentials":
			return true
		case ".ssh", ".gnupg", ".aws":
			return dir
		}
		if strings.HasPrefix(n, ".env.") {
			return true
		}
	}
	return strings.HasSuffix(n, ".env") || strings.HasSuffix(n, ".pem")
}
