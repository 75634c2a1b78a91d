package engine

import (
	"sync"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

// recent remembers where citations given out lately stand in the index. When there are
// many, those that were neither given out nor asked for again are lost first.
type recent struct {
	mu     sync.Mutex // guards what follows
	number int64      // publication the documents belong to
	docs   map[evidence.Locator]int64
	older  map[evidence.Locator]int64
}

// maxRecent bounds each of the two maps.
const maxRecent = 4096

func (r *recent) get(number int64, l evidence.Locator) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number != number {
		return 0, false
	}
	d, ok := r.docs[l]
	if !ok {
		if d, ok = r.older[l]; ok {
			r.keep(l, d)
		}
	}
	return d, ok
}

func (r *recent) put(number int64, l evidence.Locator, doc int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number != number {
		r.number, r.docs, r.older = number, nil, nil
	}
	r.keep(l, doc)
}

// keep notes a citation. r.mu is held.
func (r *recent) keep(l evidence.Locator, doc int64) {
	if r.docs == nil || len(r.docs) >= maxRecent {
		r.docs, r.older = map[evidence.Locator]int64{}, r.docs
	}
	r.docs[l] = doc
}

// namespaces remembers the citation namespaces of sources, which are two digests.
type namespaces struct {
	mu sync.Mutex // guards m
	m  map[string]string
}

const maxNamespaces = 1 << 15

func (e *Engine) namespace(s *index.Source) string {
	path := s.StoredPath()
	n := &e.namespaces
	n.mu.Lock()
	defer n.mu.Unlock()
	if ns, ok := n.m[path]; ok {
		return ns
	}
	if n.m == nil || len(n.m) >= maxNamespaces {
		n.m = map[string]string{}
	}
	ns := evidence.Namespace(s.Root, path)
	n.m[path] = ns
	return ns
}

// generations remembers the digest of the last state that was asked for.
type generations struct {
	mu      sync.Mutex // guards what follows
	number  int64
	sources int
	digest  string
}

func (g *generations) of(v *view) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.digest == "" || g.number != v.snap.Number() || g.sources != len(v.sources) {
		g.number, g.sources, g.digest = v.snap.Number(), len(v.sources), v.digestGeneration()
	}
	return g.digest
}
