// Command mooncite-bench measures the built program mooncite against its goals for
// speed, memory and size, on invented histories.
//
// What it is: a client. It starts the binary as a person or an MCP client would
// (the command line, and serve over stdio with JSON-RPC lines it writes itself), in
// an isolated HOME, and prints a table: goal, measured value, ok or over.
//
//	mooncite-bench [-mb 10,100] [-bin bin/mooncite] [-dir DIR] [-plain BIN] [-seed N] [-soft] [-v]
//	mooncite-bench gen [-mb 10] [-seed N] [-only ORIGIN] HOME
//
// What one may rely on: nothing of the caller's environment reaches the program
// but PATH; the stored corpora are never changed, what changes a history works on
// a copy; the exit status is 1 when a goal is missed or could not be measured for
// a fault of the program (-soft: 0), 2 for a wrong call.
//
// What it deliberately does not do: it imports none of the program's own rooms
// except the corpus generator, so it cannot measure anything a user does not get
// (floor.go, the yardstick of the cold rebuild, is the one exception). It judges
// medians, not the slowest value, where a shared machine would judge instead.
package main
