package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTime is how long leftovers are looked for that come faster than they can be ended.
const sweepTime = 10 * time.Second

// descendants are all processes that this one started, directly or not: those whose
// parents ended came back to it. Zombies are among the dead.
func descendants() (all []int) {
	below := map[int][]int{}
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
			// Its children have another parent by now.
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			below[parent] = append(below[parent], pid)
		}
	}
	for next := below[os.Getpid()]; len(next) > 0; {
		all = append(all, next...)
		var more []int
		for _, pid := range next {
			more = append(more, below[pid]...)
		}
		next = more
	}
	return all
}

// sweep kills what is left where there is no namespace that would end. What is stopped
// starts nothing more: first everything is stopped until nothing new is found.
func sweep() {
	stopped := map[int]bool{}
	for end := time.Now().Add(sweepTime); time.Now().Before(end); {
		list := descendants()
		if len(list) == 0 {
			return
		}
		news := false
		for _, pid := range list {
			if !stopped[pid] {
				stopped[pid], news = true, true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
		if news {
			continue
		}
		for _, pid := range list {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		clear(stopped)
		for {
			var ws unix.WaitStatus
			if pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
