// Package schedule starts commands by the clock, after the owner has approved each.
//
// What it is: the proposing of schedules, by a client or by the owner; the conditions that
// hold when one is approved and each time it is due; and the scheduler, which looks once a
// second at what is due in one workspace.
//
// What one may rely on: nothing runs but what the owner approved, by the digest of all that
// it says; saved trust must be trusted, in personal access too, when it is approved and each
// time; a schedule that rules, directory or grant no longer fit is paused and says why; a
// time is written down as taken before anything is started, by one process only, and is
// never used again: what was missed, what would overlap, and what nobody knows the end of is
// skipped and recorded; revoking ends what runs. Commands get no input.
//
// What it deliberately does not do: it starts no process (a [Launcher] does), catches up with
// nothing, pins no revision of the code that a command runs, and ticks only where it is
// told to.
package schedule
