package workspace

import (
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/internal/fault"
)

// builtinSecrets are the names that hold keys, passwords and tokens (spec dodo-behaviour
// 4.2), as rules of an ignore file.
const builtinSecrets = `
.env
.env.*
*.env
.envrc
*.pem
*.key
*.p12
*.pfx
*.jks
*.keystore
id_rsa*
id_dsa*
id_ecdsa*
id_ed25519*
*.kdbx
.npmrc
.pypirc
.netrc
_netrc
.git-credentials
.ssh/
.gnupg/
.aws/
**/.kube/config
**/.docker/config.json
secrets.*
credentials.json
service-account*.json
*.tfstate
*.tfstate.*
`

// secretRules are the built-in names, what the owner adds, and after that what the owner
// excepts.
func secretRules(deny, allow []string) (*ignore.Rules, error) {
	var b strings.Builder
	b.WriteString(builtinSecrets)
	for _, list := range []struct {
		patterns   []string
		name, sign string
	}{{deny, "secretDeny", ""}, {allow, "secretAllow", "!"}} {
		for _, pattern := range list.patterns {
			if err := CheckPattern(pattern); err != nil {
				return nil, fault.Wrap(contract.InvalidInput, err, "a pattern of %s does not hold", list.name).
					WithHint("correct it in the configuration: patterns are those of .gitignore").With("pattern", pattern)
			}
			pattern = literalStart(pattern)
			if list.sign != "" {
				pattern = strings.TrimSuffix(pattern, "/") // judge takes all for directories
			}
			b.WriteString(list.sign + pattern + "\n")
		}
	}
	return ignore.ParseFold([]byte(b.String()), ""), nil
}

// CheckPattern refuses, with INVALID_INPUT, a pattern of [Options] that would not hold.
func CheckPattern(pattern string) error { return ignore.Check(literalStart(pattern)) }

// literalStart keeps a pattern of the owner's from meaning a comment or an exception.
func literalStart(pattern string) string {
	if strings.HasPrefix(pattern, "!") || strings.HasPrefix(pattern, "#") {
		return `\` + pattern
	}
	return pattern
}
