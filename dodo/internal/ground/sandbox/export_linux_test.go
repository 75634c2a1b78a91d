package sandbox

// GroupsOf is where a box makes its groups.
func GroupsOf(b *Box) string { return b.groups }
