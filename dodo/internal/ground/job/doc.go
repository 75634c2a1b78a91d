// Package job runs the commands of callers and keeps what they wrote.
//
// What it is: one [Service] for one workspace. A command becomes a job: a row in the
// installation's database that is there before its process is, a process that package
// sandbox starts and confines, and a spool of its output in files of the installation
// directory. The operations start jobs, wait for them, read, feed and cancel them.
//
// What one may rely on: a call waits for its command for waitMs at most, once it has its turn in
// the workspace, which starting takes and waiting does not, and comes back with the job's id when
// it still runs; what feeds or ends a job needs no turn; a job goes on when its caller is gone, and ends when the
// caller takes back the call that started it and still waits; what ends it ends all that it started,
// as far as its [sandbox.Isolation] holds it; its standard input is closed unless it was asked
// for; output takes memory of a few buffers and disk up to the limits, oldest first, and its
// beginning stays; what is shown of it is valid UTF-8 without control sequences, with the
// well known shapes of keys masked, and its bytes are to be had as they are; output of jobs
// that ended outlives the server until their retention ends; a job whose server died is marked
// interrupted, and nothing is ever run a second time; callers other than the owner see their
// own jobs only.
//
// What it deliberately does not do: it builds no walls (package sandbox does) and asks nobody
// (the gate does); a full disk costs output and never the job; it signals no process by a
// number from a database; it does not recognise secrets of other shapes than those of package
// keyshape; it draws no picture of full-screen programs.
package job
