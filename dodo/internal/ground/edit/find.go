package edit

import "bytes"

// longFind is the length from which a text is searched by its own borders: the library's
// search compares whole texts at each likely place, which takes the product of both
// lengths when a long text repeats itself.
const longFind = 4096

// A finder finds one text, in time that grows with the text searched and not with the find
// text. Its zero value finds nothing.
type finder struct {
	find []byte
	back []int32 // of a long text: length of the longest border of each beginning
}

func newFinder(find []byte) *finder { return &finder{find: find} }

func (f *finder) borders() {
	find := f.find
	f.back = make([]int32, len(find))
	k := int32(0)
	for i := 1; i < len(find); i++ {
		for k > 0 && find[k] != find[i] {
			k = f.back[k-1]
		}
		if find[k] == find[i] {
			k++
		}
		f.back[i] = k
	}
}

// next is the first place at or after from, or -1.
func (f *finder) next(text []byte, from int) int {
	if len(f.find) == 0 || from+len(f.find) > len(text) {
		return -1
	}
	if len(f.find) < longFind {
		if i := bytes.Index(text[from:], f.find); i >= 0 {
			return from + i
		}
		return -1
	}
	if f.back == nil {
		f.borders()
	}
	k := int32(0)
	for i := from; i < len(text); i++ {
		for k > 0 && f.find[k] != text[i] {
			k = f.back[k-1]
		}
		if f.find[k] == text[i] {
			if k++; int(k) == len(f.find) {
				return i + 1 - len(f.find)
			}
		}
	}
	return -1
}

// overlap is a place that begins inside the match at i, or -1.
func (f *finder) overlap(text []byte, i int) int {
	m := len(f.find)
	return f.next(text[:min(len(text), i+2*m-1)], i+1)
}
