package workspace

import (
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/internal/fault"
)

// builtinSecrets are the names that hold keys, passwords and tokens (spec dodo-behaviour
// 4.2), as rules of an ignore file: first those of the specification, then more of the kind.
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

*.ppk
client_secret*.json
.pgpass
.my.cnf
.mylogin.cnf
.htpasswd
.authinfo
.dockercfg
.s3cfg
.boto
.vault-token
.azure/
.password-store/
**/.config/gcloud/
**/.config/gh/hosts.yml
**/.config/rclone/rclone.conf
**/.cargo/credentials
**/.cargo/credentials.toml
**/.gem/credentials
**/.m2/settings.xml
**/.m2/settings-security.xml
**/.terraform.d/credentials.tfrc.json
.*_history
fish_history
`

// original is the name of the file that an editor's copy is of: f~, f.bak, f.orig, #f#, .f.swp.
// A copy of what is secret is secret.
func original(rel string) string {
	switch rel[len(rel)-1] {
	case '~':
		return rel[:len(rel)-1]
	case '#':
		at := strings.LastIndexByte(rel, '/') + 1
		return rel[:at] + strings.Trim(rel[at:], "#")
	case 'k', 'K', 'g', 'G', 'p', 'P':
		for _, ending := range []string{".bak", ".orig", ".swp"} {
			if n := len(rel) - len(ending); n > 0 && strings.EqualFold(rel[n:], ending) {
				return rel[:n]
			}
		}
	}
	return rel
}

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
