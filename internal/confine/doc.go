// Package confine takes rights away from the process that calls it, for good.
//
// What it is: Landlock rules and a seccomp filter of our own, the dropping of
// capabilities and of inherited descriptors ([Self]), a test that tries what must be
// denied now ([Try]), and a supervisor that starts the program again as a worker
// ([Supervise], [Inherit]).
//
// What one may rely on: after [Self] returns nil, every thread of the process, those
// still to come and every process it starts has no new privileges, no capability, the
// same Landlock domain and the same filter; what the filter does not allow is refused
// with EPERM, a call of a foreign architecture kills the process, and arguments are
// compared by the 32 bits that the kernel looks at, so that the upper ones hide
// nothing. Nothing here can be undone. Without seccomp [Self] fails; with an old
// Landlock, or none, it succeeds and its [State] says so. A worker dies with its
// supervisor, however that ends.
//
// What it deliberately does not do: it confines no other program, knows no product's
// directories, keeps no socket, network or shell for anybody, and has no adapter for
// systems other than Linux on amd64 and arm64: there everything answers [NotSupported].
package confine
