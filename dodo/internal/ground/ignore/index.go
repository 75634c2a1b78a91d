package ignore

// An index tells for 64 rules, one bit each, which of them may match at all, by the first
// and the last byte of a name or a path. Most entries of a tree match no rule, and most
// rules are out at once by it.
type index struct {
	name, path, last          [256]uint64 // rules by a byte that they need
	anyName, anyPath, anyLast uint64      // rules that need none there
}

func (x *index) add(u *rule, bit uint64) {
	first, any := &x.path, &x.anyPath
	if u.names {
		first, any = &x.name, &x.anyName
	}
	if u.form == ending || u.text == "" {
		*any |= bit
	} else {
		first[u.text[0]] |= bit
	}
	end := u.text
	if u.form == tokens && len(u.tokens) > 0 {
		end = u.tail
	}
	if end == "" {
		x.anyLast |= bit
	} else {
		x.last[end[len(end)-1]] |= bit
	}
}

// candidates are the rules that may match a path with that name.
func (x *index) candidates(path, name string) uint64 {
	return (x.anyName | x.anyPath | x.name[name[0]] | x.path[path[0]]) & (x.anyLast | x.last[name[len(name)-1]])
}
