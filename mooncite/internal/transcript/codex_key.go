package transcript

import (
	"hash/fnv"
	"math/bits"
	"slices"
	"strings"
)

// turnKeys gives the digests by which doubles of a message are known: of all its
// texts together, of each alone, and of an answer without the elements that its
// event leaves out. White space at the ends does not count.
func turnKeys(role string, texts []string) []uint64 {
	var keys []uint64
	add := func(t string) {
		if t = strings.TrimSpace(t); t != "" {
			if k := textKey(role, t); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	together := func(texts []string) {
		add(strings.Join(texts, ""))
		if len(texts) > 1 {
			add(strings.Join(texts, "\n"))
		}
	}
	together(texts)
	if len(texts) > 1 && len(texts) <= 16 {
		// Of an answer every part may have its event; of a prompt one part is the
		// person's, and the others must be the client's, or text would be lost.
		own := -1
		for i, t := range texts {
			switch {
			case role == "assistant":
				add(t)
			case isImageMark(t) || isMachineText(t):
			case own >= 0:
				own = len(texts)
			default:
				own = i
			}
		}
		if own >= 0 && own < len(texts) {
			add(texts[own])
		}
	}
	if role == "assistant" {
		cut := make([]string, len(texts))
		same := true
		for i, t := range texts {
			cut[i] = without(without(t, "oai-mem-citation"), "proposed_plan")
			same = same && len(cut[i]) == len(t)
		}
		if !same {
			together(cut)
		}
	}
	return keys
}

// without leaves out every element of that name.
func without(t, tag string) string {
	open, end := "<"+tag+">", "</"+tag+">"
	i := strings.Index(t, open)
	if i < 0 {
		return t
	}
	var b strings.Builder
	for i >= 0 {
		j := strings.Index(t[i:], end)
		if j < 0 {
			break
		}
		b.WriteString(t[:i])
		t = t[i+j+len(end):]
		i = strings.Index(t, open)
	}
	b.WriteString(t)
	return b.String()
}

// textKey is a digest of a text that means the same in every process, since it is
// saved. It only has to tell texts of one turn apart.
func textKey(role, t string) uint64 {
	const k0, k1 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := uint64(len(t))*k0 ^ uint64(role[0])
	mix := func(v uint64) {
		hi, lo := bits.Mul64(h^v^k0, k1)
		h = hi ^ lo
	}
	for len(t) >= 8 {
		mix(uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56)
		t = t[8:]
	}
	var v uint64
	for i := range len(t) {
		v |= uint64(t[i]) << (8 * i)
	}
	mix(v)
	mix(k1)
	return h
}

// callKey gives the keys of a tool call's ids.
func callKey(ids ...value) []uint64 {
	var keys []uint64
	for _, id := range ids {
		if id.isString() && len(id) > 2 {
			h := fnv.New64a()
			h.Write([]byte("call"))
			h.Write(id)
			keys = append(keys, h.Sum64())
		}
	}
	return keys
}
