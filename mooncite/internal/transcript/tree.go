package transcript

import "slices"

// A tree keeps what says which entries of a file are on its current branch, for
// files whose records name their parent.
//
// The rule: the leaf is the last record of the main chain, and the leaf and its
// ancestors are current. A parent counts only when it stands before its child, so
// there are no cycles and no surprises from later bytes. Beyond that, for Claude
// Code, whose one answer is several records:
//   - all records of one answer (one group) are current together;
//   - a side record, one that nobody speaks in (a tool result, a notice), is current
//     when its parent is, and does not move the leaf unless it hangs on the tip;
//   - a chain of sub-agent records inside the main file has its own tip, its last
//     record, and is current up to it, whoever speaks last in the main chain.
//
// A parent that stands nowhere, behind a damaged line, is taken to have stood in that
// line and to have followed the leaf: one lost record must not cut off the rest.
//
// The tip is the leaf with its group and its side records: a record that hangs on
// any of them goes on with the branch and changes no label given before.
//
// Of the records before New the tree knows the tip, and of the others which ids and
// groups there may have been ([nameSet]). Wherever one of those could make a label other
// than it was given or is given now, the tree asks for labels anew (relabel). It takes a
// record that comes a second time for the same one: hanging where it hung.
type tree struct {
	index map[string]int32
	nodes []node
	owner []int32 // node of every emitted entry, or -1

	oldTip   tip     // empty: there was no main chain before New
	oldNames nameSet // ids and groups before New
	lost     nameSet // groups with a record off the branch
	tip      tip
	leaf     string
	leafNode int32 // or outside: then the leaf is from before New
	relabel  bool
	gap      bool // a damaged line was met: the next parent that is nowhere stood in it
}

type node struct {
	parent int32 // or one of the below
	group  string
	answer string // group, but of a side record that of what it hangs on
	side   bool
	sub    bool // record of a sub-agent inside the main file
}

const (
	outside = -1 // a record before New that is part of the tip of that time
	unknown = -2 // perhaps one before New that is not part of the tip
	nowhere = -3 // surely no record
	root    = -4
)

// A tip is a set of record ids, bounded: the state it is saved in stays small.
type tip struct {
	IDs   []string `json:"ids,omitempty"`
	Group string   `json:"group,omitempty"`
	// Loose says that records may hang on these ids that are not among them: the leaf
	// was chosen, or they were too many.
	Loose bool `json:"loose,omitempty"`
}

const maxTip = 48

func (t *tip) has(id string) bool { return slices.Contains(t.IDs, id) }

func (t *tip) add(id string) {
	if len(t.IDs) == maxTip { // the first ones are the answer itself, the last ones the newest
		t.IDs = slices.Delete(t.IDs, maxTip/4, maxTip/4+1)
		t.Loose = true
	}
	t.IDs = append(t.IDs, id)
}

// treeState is the part of a saved state that belongs to the tree.
type treeState struct {
	Tip   tip     `json:"tip"`
	Names nameSet `json:"names,omitzero"`
	Lost  nameSet `json:"lost,omitzero"`
	Leaf  string  `json:"leaf,omitempty"`
	Gap   bool    `json:"gap,omitempty"`
}

func newTree(s treeState) tree {
	return tree{
		index: map[string]int32{}, oldTip: s.Tip, oldNames: s.Names, lost: s.Lost,
		tip: tip{IDs: slices.Clone(s.Tip.IDs), Group: s.Tip.Group, Loose: s.Tip.Loose}, leaf: s.Leaf, leafNode: outside, gap: s.Gap,
	}
}

// state gives what a tree of the records that follow goes on from; after labels.
func (t *tree) state() treeState {
	names, group := t.oldNames, t.oldTip.Group
	names.room(len(t.nodes))
	for id := range t.index {
		names.add(id)
	}
	for i := range t.nodes {
		if g := t.nodes[i].group; g != "" && g != group {
			names.add(g)
			group = g
		}
	}
	return treeState{Tip: t.tip, Names: names, Lost: t.lost, Leaf: t.leaf, Gap: t.gap}
}

// known reports whether a record of that id was taken, as far as can be told: of
// those before New only the tip is remembered.
func (t *tree) known(id string) bool {
	_, ok := t.index[id]
	return ok || t.oldTip.has(id)
}

// doubt asks for labels anew when a record that is not [tree.known] may be one from
// before New that came again. Most that do show by their parent, see add; doubt is for
// the rare records that change something whatever they hang on.
func (t *tree) doubt(id string) { t.relabel = t.relabel || t.oldNames.has(id) }

// add takes a record that is not [tree.known] and returns its node.
func (t *tree) add(id, parent string, n node) int32 {
	n.parent = t.find(parent)
	// A record from before New hung on one from before New. Was that part of the tip, so
	// was the record itself, unless the tip is loose: then it is known.
	if (n.parent < outside || n.parent == outside && (t.oldTip.Loose || n.sub)) && t.oldNames.has(id) {
		n.parent = unknown // it came again, perhaps
	}
	switch {
	case n.parent == unknown:
		t.relabel = true
	case n.parent == nowhere && t.gap && t.leaf != "":
		n.parent, parent = t.leafNode, t.leaf
		t.gap = false
	}
	n.answer = n.group
	if n.side {
		switch {
		case n.parent >= 0:
			n.answer = t.nodes[n.parent].answer
		case n.parent == outside:
			n.answer = t.oldTip.Group
		}
	}
	i := int32(len(t.nodes))
	t.nodes = append(t.nodes, n)
	t.index[id] = i
	if n.sub {
		return i
	}
	hangs := parent != "" && t.tip.has(parent)
	switch {
	case t.leaf == "":
		t.tip = tip{IDs: []string{id}, Group: n.answer}
	case hangs && (n.side || n.group != "" && n.group == t.tip.Group):
		t.tip.add(id)
	case n.side:
		return i
	default:
		t.tip = tip{IDs: []string{id}, Group: n.answer}
	}
	t.leaf, t.leafNode = id, i
	return i
}

func (t *tree) find(id string) int32 {
	if id == "" {
		return root
	}
	if p, ok := t.index[id]; ok {
		return p
	}
	if t.oldTip.has(id) {
		return outside
	}
	if t.oldNames.has(id) {
		return unknown
	}
	return nowhere
}

// goingOn gives what a record hangs on that never cuts the branch (a compaction): the
// parent it names, or the leaf when it names none or one that is nowhere.
func (t *tree) goingOn(parent string) string {
	switch at := t.find(parent); {
	case at >= outside:
		return parent
	case at == unknown:
		t.relabel = true
	}
	return t.leaf
}

// choose makes the record of that id the leaf, when it is not part of the tip.
func (t *tree) choose(id string) {
	if t.tip.has(id) {
		return
	}
	switch i := t.find(id); {
	case i >= 0:
		if !t.nodes[i].sub {
			t.leaf, t.leafNode = id, i
			t.tip = tip{IDs: []string{id}, Group: t.nodes[i].answer, Loose: true}
		}
	case i == outside:
		t.leaf, t.leafNode = id, outside
		t.tip = tip{IDs: []string{id}, Group: t.oldTip.Group, Loose: true}
	case i == unknown:
		t.relabel = true
	}
}

// emitted notes that an entry of node n (-1: of none) was given out.
func (t *tree) emitted(n int32) { t.owner = append(t.owner, n) }

// labels returns the branch of every emitted entry, and whether entries from
// before New have, or may have, another branch than they had.
func (t *tree) labels() (off Bits, relabel bool) {
	relabel = t.relabel
	current := make([]bool, len(t.nodes))
	// walk marks a path up to its root, or to what is marked, and says where it left.
	walk := func(i int32) int32 {
		for i >= 0 && !current[i] {
			current[i] = true
			i = t.nodes[i].parent
		}
		return i
	}
	tipHolds := true // the tip of before New is on the path
	if t.leafNode >= 0 && walk(t.leafNode) != outside && len(t.oldTip.IDs) > 0 {
		relabel, tipHolds = true, false
	}
	t.walkSubAgents(current)
	groups := map[string]bool{}
	if tipHolds && t.oldTip.Group != "" {
		groups[t.oldTip.Group] = true
	}
	for i := range t.nodes {
		if g := t.nodes[i].group; g != "" && current[i] && !groups[g] {
			groups[g] = true
			relabel = relabel || t.lost.has(g)
		}
	}
	for i := range t.nodes {
		if groups[t.nodes[i].group] {
			walk(int32(i))
		}
	}
	for i := range t.nodes {
		if g := t.nodes[i].group; g != "" && !current[i] {
			relabel = relabel || t.oldNames.has(g) // perhaps of a record that is current
			t.lost.add(g)
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if !n.side || current[i] {
			continue
		}
		switch {
		case n.parent >= 0:
			current[i] = current[n.parent]
		case n.parent == outside:
			current[i] = tipHolds
		}
	}
	for e, n := range t.owner {
		if n >= 0 && !current[n] {
			off.Set(e)
		}
	}
	return off, relabel
}

// walkSubAgents marks every chain of sub-agent records from its last record up.
func (t *tree) walkSubAgents(current []bool) {
	var top []int32 // the first record of each one's chain
	for i := range t.nodes {
		n := &t.nodes[i]
		if !n.sub {
			continue
		}
		if top == nil {
			top = make([]int32, len(t.nodes))
		}
		top[i] = int32(i)
		if n.parent >= 0 && t.nodes[n.parent].sub {
			top[i] = top[n.parent]
		}
	}
	if top == nil {
		return
	}
	done := map[int32]bool{}
	for i := len(t.nodes) - 1; i >= 0; i-- {
		if !t.nodes[i].sub || done[top[i]] {
			continue
		}
		done[top[i]] = true
		for j := int32(i); j >= 0 && t.nodes[j].sub && !current[j]; j = t.nodes[j].parent {
			current[j] = true
		}
	}
}
