package engine

import (
	"sync"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

// recent remembers where citations given out lately stand in the index.
type recent struct {
	mu     sync.Mutex // guards what follows
	number int64      // publication the documents belong to
	docs   map[evidence.Locator]int64
}

const maxRecent = 2048

func (r *recent) get(number int64, l evidence.Locator) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number != number {
		return 0, false
	}
	d, ok := r.docs[l]
	return d, ok
}

func (r *recent) put(number int64, l evidence.Locator, doc int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number != number || r.docs == nil || len(r.docs) >= maxRecent {
		r.number, r.docs = number, map[evidence.Locator]int64{}
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
