package engine

import (
	"fmt"
	"math/rand/v2"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

func randomHits(r *rand.Rand, n int) []*hit {
	var srcs []*index.Source
	for i := range 4 {
		srcs = append(srcs, &index.Source{ID: int64(i), Origin: evidence.Claude, Present: r.IntN(4) > 0})
	}
	var hits []*hit
	for i := range n {
		src := srcs[r.IntN(len(srcs))]
		h := &hit{doc: int64(i), src: src, unit: &index.Unit{Source: src.ID, Session: fmt.Sprint("s", src.ID)}, text: fmt.Sprint("text ", r.IntN(4)),
			span:  &index.Span{Entry: fmt.Sprint("e", r.IntN(5)), Time: int64(r.IntN(4)), Role: evidence.User, Copy: r.IntN(3) == 0, Off: r.IntN(5) == 0, Class: evidence.Class(r.IntN(3))},
			score: r.Float64(), coverage: float64(r.IntN(3)) / 2, exact: r.IntN(3)}
		hits = append(hits, h)
	}
	return hits
}
