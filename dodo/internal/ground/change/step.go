package change

// Action is what is done to one path.
type Action string

// The actions. The last two are never asked for by name: directories are made on the way to
// new files and by make_directory, and removed when such a change is taken back.
const (
	Create    Action = "create"
	Modify    Action = "modify"
	Delete    Action = "delete"
	Move      Action = "move"
	MakeDir   Action = "make_directory"
	RemoveDir Action = "remove_directory"
)

// step is one line of the journal: what one path was and what it becomes. Hashes are empty
// where there is no file; paths have the form of workspace.Path.
type step struct {
	seq        int
	action     Action
	path, dest string // dest only of a Move
	before     string // hash
	after      string
	mode       uint32 // permission bits that the path has afterwards; of what was there when nothing is
	stage      string // the name beside path under which bytes wait or are kept; see stageName
}

// seen is what recovery finds under one name.
type seen struct {
	what kind
	hash string // of a regular file
}

type kind uint8

const (
	nothing kind = iota
	file
	directory
	other // a link, a device, a file with two names, one that is too large
)

// sight is what recovery finds of one step: under its path, its destination and its stage.
type sight struct{ path, dest, stage seen }

// standing says how far a step got, judged by what is on the disk alone.
type standing uint8

const (
	// unclear: what is there is neither before nor after, and it may rest on our effect.
	unclear standing = iota
	// before: nothing was done yet, or it was taken back.
	before
	// after: it was done.
	after
	// robbed: it was done, and what it displaced is not what it was planned for: another
	// program wrote in between. The displaced bytes wait in the stage.
	robbed
	// foreign: nothing of ours is in effect; another program changed the path.
	foreign
)

// standing judges a step of a change whose stages were not swept yet: in it a stage is
// missing only where none was written yet, or where it took the path's name.
func (s step) standing(v sight) standing {
	switch s.action {
	case Create:
		return s.created(v)
	case Modify:
		return s.modified(v)
	case Delete:
		return s.deleted(v)
	case Move:
		return s.moved(v)
	}
	return s.made(v)
}

// created: the stage takes the path's name, so new bytes in it were not published. What else
// is in it was taken from the path when the step was to be undone, and is another program's.
func (s step) created(v sight) standing {
	staged := v.stage.is(s.after)
	switch {
	case v.path.what == nothing && (staged || v.stage.what == nothing):
		return before
	case v.path.what == nothing:
		return robbed
	case staged:
		return foreign // the very same bytes, too
	case v.path.is(s.after) && v.stage.what == nothing:
		return after
	}
	return unclear // published and then changed, or another's before the stage was written
}

// modified: the stage holds the new bytes until the names are swapped, and then the old.
func (s step) modified(v sight) standing {
	switch {
	case v.path.is(s.before) && v.stage.what != nothing && !v.stage.is(s.before) && !v.stage.is(s.after):
		return unclear // the stage has what another program wrote, and nothing else does
	case v.path.is(s.before):
		return before
	case v.path.is(s.after) && (v.stage.is(s.before) || v.stage.what == nothing):
		return after
	case v.path.is(s.after) && v.stage.is(s.after):
		return foreign // another program wrote the very same bytes
	case v.path.is(s.after):
		return robbed
	case v.stage.is(s.after), v.stage.what == nothing:
		return foreign // the stage did not take part in a swap
	}
	return unclear
}

// deleted: the path's file takes the stage's name.
func (s step) deleted(v sight) standing {
	switch {
	case v.path.is(s.before) && v.stage.what == nothing:
		return before
	case v.path.what == nothing && v.stage.is(s.before):
		return after
	case v.path.what == nothing && v.stage.what == nothing:
		return foreign // it was not ours that removed it
	case v.path.what == nothing:
		return robbed
	case v.stage.what == nothing:
		return foreign
	}
	return unclear
}

func (s step) moved(v sight) standing {
	switch {
	case v.path.is(s.before) && v.dest.what == nothing:
		return before
	case v.path.what == nothing && v.dest.is(s.before):
		return after
	case v.dest.what == nothing:
		return foreign
	case v.path.what == nothing:
		return robbed
	case v.path.is(s.before) && !v.dest.is(s.before):
		return foreign // a move never takes a place that is taken
	}
	return unclear
}

func (s step) made(v sight) standing {
	switch v.path.what {
	case nothing:
		return before
	case directory:
		return after
	}
	return foreign
}

func (s seen) is(hash string) bool { return s.what == file && s.hash == hash }

// verdict is what is done with a change that was interrupted.
type verdict uint8

const (
	ask      verdict = iota // the owner decides
	complete                // every step was done: it counts as committed
	takeBack                // what was done of it is undone
)

// judge decides by how far every step got (see [step.standing]).
func judge(all []standing) verdict {
	v := complete
	for _, s := range all {
		switch s {
		case unclear:
			return ask
		case after:
		default:
			v = takeBack
		}
	}
	return v
}
