package memory

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// The two kinds of id.
const (
	memoryPrefix    = "mooncite-memory:"
	candidatePrefix = "mooncite-skill-candidate:"
)

// newID makes an id: the prefix and a random UUID (RFC 9562, version 4).
func newID(prefix string) string {
	var u [16]byte
	rand.Read(u[:]) // never fails
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u[:])
	return prefix + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// isID reports whether s is what newID makes.
func isID(prefix, s string) bool {
	u, ok := strings.CutPrefix(s, prefix)
	if !ok || len(u) != 36 || u[14] != '4' || !strings.ContainsRune("89ab", rune(u[19])) {
		return false
	}
	for i, c := range []byte(u) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func checkMemoryID(name, s string) error {
	if !isID(memoryPrefix, s) {
		return refuse("%s is not a memory id as answers name it (%sUUID)", name, memoryPrefix)
	}
	return nil
}

func checkCandidateID(s string) error {
	if !isID(candidatePrefix, s) {
		return refuse("candidate_id is not a candidate id as answers name it (%sUUID)", candidatePrefix)
	}
	return nil
}
