package index

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"localmcp/mooncite/internal/evidence"
)

func randomSpans(r *rand.Rand, n int) []Span {
	ids := []string{"a", "0f3c9a1e", "deadbeefdeadbeef", "8c7f2d1e-0000-4abc-8def-0123456789ab", "line-3-00ff00ff00ff00ff", "日本", "8C7F2D1E-0000-4ABC-8DEF-0123456789AB"}
	var out []Span
	for i := range n {
		s := Span{Entry: ids[r.IntN(len(ids))] + fmt.Sprint(r.IntN(3)), Ordinal: r.IntN(3), Role: evidence.Roles()[r.IntN(8)], Kind: ids[r.IntN(2)],
			Class: evidence.Class(r.IntN(3)), Off: r.IntN(3) == 0, Copy: r.IntN(3) == 0, Gone: r.IntN(9) == 0, Project: r.Int64N(5), Time: evidence.NoTime,
			Line: r.Int64N(1000), Start: r.Int64N(1 << 40), Size: r.IntN(1 << 18)}
		s.End = s.Start + r.Int64N(1<<20)
		for j := range s.Digest {
			s.Digest[j] = byte(r.Int())
		}
		if r.IntN(3) > 0 {
			s.Time = r.Int64N(1 << 41)
		}
		if r.IntN(2) == 0 {
			s.Entry = ids[3]
		}
		if i > 0 {
			switch r.IntN(4) {
			case 0:
				s.Parent = out[i-1].Entry
			case 1:
				s.Parent = ids[r.IntN(len(ids))]
			case 2: // the same record
				p := out[i-1]
				s.Line, s.Start, s.End, s.Digest = p.Line, p.Start, p.End, p.Digest
				if r.IntN(2) == 0 {
					s.Entry, s.Parent, s.Time, s.Copy = p.Entry, p.Parent, p.Time, p.Copy
				}
			}
		}
		if r.IntN(4) == 0 {
			s.Entry = lineID(&s)
		}
		out = append(out, s)
	}
	return out
}

func TestSpansRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		want := randomSpans(r, r.IntN(40))
		var got []Span
		if err := decodeSpans(encodeSpans(want), len(want), func(_ int, s *Span) bool {
			got = append(got, *s)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Span{})); diff != "" {
			t.Fatal(diff)
		}
	}
}

// A damaged block gives an error or other values, never a panic.
func FuzzDecodeSpans(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 7} {
		f.Add(encodeSpans(randomSpans(r, n)), n)
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n > 1<<16 {
			n = 1 << 16
		}
		_ = decodeSpans(b, n, func(int, *Span) bool { return true })
	})
}
