package contract

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// idAlphabet are the characters of ids: no i, l, o, u.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// The prefixes of ids.
const (
	PrefixPlan      = "plan"
	PrefixChangeset = "cs"
	PrefixCursor    = "cur"
	PrefixHandoff   = "hnd"
	PrefixApproval  = "apr"
	PrefixProject   = "prj"
	PrefixJob       = "job"
	PrefixBoot      = "boot"
	PrefixSchedule  = "sched"
	PrefixGrant     = "grant"
)

// NewID returns a new id: the prefix, "_" and n random characters of 5 bits each; 0 means
// 10, as the contract's ids have.
func NewID(prefix string, n int) string {
	if n == 0 {
		n = 10
	}
	b := make([]byte, n)
	rand.Read(b)
	for i, c := range b {
		b[i] = idAlphabet[c&31]
	}
	return prefix + "_" + string(b)
}

// WorkspaceID is the id of a root in an installation (spec dodo-behaviour 1.5). It cannot
// be guessed without the installation's secret.
func WorkspaceID(secret []byte, root string) string {
	h := sha256.New()
	h.Write(secret)
	h.Write([]byte{0})
	h.Write([]byte(root))
	return "ws_" + hex.EncodeToString(h.Sum(nil))[:20]
}

// IsProjectID reports whether a word has the form of a project's id.
func IsProjectID(s string) bool {
	random, ok := strings.CutPrefix(s, PrefixProject+"_")
	return ok && len(random) >= 8 && len(random) <= 64 && strings.Trim(random, idAlphabet) == ""
}

// IsHash reports whether a word has the form of a hash.
func IsHash(s string) bool {
	digits, ok := strings.CutPrefix(s, hashPrefix)
	return ok && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}

// hashPrefix begins a hash as it is shown.
const hashPrefix = "sha256:"

// Hash is the hash of bytes as it is shown: "sha256:" and 64 hex digits.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hashPrefix + hex.EncodeToString(sum[:])
}

// HashSum is the shown form of a SHA-256 sum.
func HashSum(sum []byte) string { return hashPrefix + hex.EncodeToString(sum) }
