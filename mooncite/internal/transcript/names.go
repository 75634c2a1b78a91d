package transcript

// A nameSet remembers names in bounded memory: it has every name that was added, and
// the more there were the more others it has as well (a Bloom filter).
type nameSet struct {
	N    int    `json:"n"` // names added
	Bits []byte `json:"bits"`
}

// Bounds of a set. Of names never added it has 5 in 100 while it may grow, half when
// there are five thousand, all but some in the end.
const (
	minNameBytes = 32
	maxNameBytes = 1 << 10
)

// has reports whether the name may have been added; false is certain.
func (s *nameSet) has(name string) bool {
	if len(s.Bits) == 0 {
		return false
	}
	a, b := s.places(name)
	return s.Bits[a>>3]>>(a&7)&1 == 1 && s.Bits[b>>3]>>(b&7)&1 == 1
}

// room makes room for n more names.
func (s *nameSet) room(n int) {
	if len(s.Bits) == 0 {
		s.Bits = make([]byte, minNameBytes)
	}
	for len(s.Bits) < maxNameBytes && len(s.Bits) < s.N+n {
		s.Bits = append(s.Bits, s.Bits...) // a place is a digest's last bits, one more now
	}
}

// add puts a name into the set.
func (s *nameSet) add(name string) {
	s.room(1)
	s.N++
	a, b := s.places(name)
	s.Bits[a>>3] |= 1 << (a & 7)
	s.Bits[b>>3] |= 1 << (b & 7)
}

// places gives a name's bits.
func (s *nameSet) places(name string) (a, b uint32) {
	sum, last := textKey("name", name), uint32(8*len(s.Bits)-1)
	return uint32(sum) & last, uint32(sum>>32) & last
}
