package engine

import (
	"strings"
	"testing"
)

func TestLowerCase(t *testing.T) {
	var all strings.Builder
	for c := range 128 {
		all.WriteByte(byte(c))
	}
	for n := range 128 {
		for _, s := range []string{all.String()[n:], all.String()[:n] + "É", all.String()[:n] + "\xff", "ÄB" + all.String()[n:]} {
			if got, want := lowerCase(s), strings.ToLower(s); got != want {
				t.Errorf("%q: %q, want %q", s, got, want)
			}
		}
	}
}

func BenchmarkLowerCase(b *testing.B) {
	s := strings.Repeat("The Quick brown fox, ", 500)
	for name, f := range map[string]func(string) string{"strings": strings.ToLower, "ours": lowerCase} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				f(s)
			}
		})
	}
}
