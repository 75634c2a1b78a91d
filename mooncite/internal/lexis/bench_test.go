package lexis_test

import (
	"strings"
	"testing"

	"localmcp/mooncite/internal/lexis"
)

const prose = "Why did the parseConfigFile call in src/harbor/manifest_chunk.go:212 fail with ECONNRESET after the retries? " +
	"We changed the retry policy so that it waits between attempts, and the tests were running without errors since. "

func BenchmarkDocument(b *testing.B) {
	var t lexis.Tokenizer
	text := strings.Repeat(prose, 5)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst, _ = t.Document(dst[:0], text)
	}
}
