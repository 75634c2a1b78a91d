package index

import (
	"sync"

	"localmcp/mooncite/internal/evidence"
)

// said tells which documents are dialogue, a bit each. It is filled when it is asked
// for, a stretch of numbers at a time: in a search by words FTS5 would walk the whole list of
// dialogue beside theirs.
type said struct {
	mu        sync.Mutex // guards what follows
	stretches map[int64]*stretch
}

// stretchDocs is how many document numbers a stretch has.
const stretchDocs = 1 << 15

type stretch struct {
	upTo int64 // the highest document there was when it was filled
	bits [stretchDocs / 64]uint64
}

// dialogue reports whether a document is dialogue. What was erased since, or numbered
// anew, may be told wrongly: it only decides what is looked at first.
func (s *Snapshot) dialogue(doc int64) (bool, error) {
	k, at := doc/stretchDocs, doc%stretchDocs
	s.said.mu.Lock()
	defer s.said.mu.Unlock()
	x := s.said.stretches[k]
	if x == nil || x.upTo < doc {
		last := min(s.top, (k+1)*stretchDocs-1)
		docs, err := s.docsBetween(quote(classToken(evidence.Dialogue)), k*stretchDocs, last, stretchDocs)
		if err != nil {
			return false, err
		}
		x = &stretch{upTo: max(last, doc)}
		for _, d := range docs {
			x.bits[d%stretchDocs/64] |= 1 << (d % 64)
		}
		if s.said.stretches == nil {
			s.said.stretches = map[int64]*stretch{}
		}
		s.said.stretches[k] = x
	}
	return x.bits[at/64]>>(at%64)&1 == 1, nil
}
