package confine

// A Jail says what the programs may still do that a process starts from now on. Unlike a
// [Policy] it leaves what ordinary programs need: sockets, processes, memory. It is meant
// for the first process of a set of namespaces, which it confines too.
type Jail struct {
	// Run are files and directories that may be read and run, Write those that may be
	// changed in every way but by making device files, Devices device files that may be
	// used as such. All are paths as the process sees them now, with links followed; what
	// is not there is left out.
	Run, Write, Devices []string
	// Alone is for a process that has no namespaces: it denies every socket but pairs of
	// local ones, memory and queues that it would share with others, and settings of
	// other processes. It confines the calling thread alone, which the caller has locked:
	// the programs it starts can then not signal those that stay outside.
	Alone bool
	// NoSetID refuses set-user-id and set-group-id bits on files, which root would make for
	// everybody.
	NoSetID bool

	weakness
}
