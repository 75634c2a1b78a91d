package walls

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// SweepTime is how long leftovers are looked for that come faster than they can be ended.
const SweepTime = 10 * time.Second

// A started process is one that this one started, directly or not.
type started struct{ pid, group int }

// descendants are all of them: those whose parents ended came back to this process.
func descendants() (all []started) {
	below := map[int][]started{}
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
		// pid (name) state parent group
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 3 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
			continue // its children have another parent by now
		}
		parent, err := strconv.Atoi(string(fields[1]))
		group, err2 := strconv.Atoi(string(fields[2]))
		if err == nil && err2 == nil {
			below[parent] = append(below[parent], started{pid, group})
		}
	}
	for next := below[os.Getpid()]; len(next) > 0; {
		all = append(all, next...)
		var more []started
		for _, p := range next {
			more = append(more, below[p.pid]...)
		}
		next = more
	}
	return all
}

// children are the direct ones of a process, by its threads, dead ones too. Kernels can lack
// the file.
func children(pid int) (list []int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, task := range tasks {
		text, err := os.ReadFile(dir + "/" + task.Name() + "/children")
		if err != nil {
			continue
		}
		for _, word := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// sweep kills what is left where there is no namespace that would end. A group dies at once.
// What changes its group and its parent faster than everything can be looked through comes
// back to this process each time, which is looked at faster. What is seen is of several
// moments: only that this process has no child any more says that nothing is left.
func sweep() {
	own := unix.Getpgrp()
	for end := time.Now().Add(SweepTime); time.Now().Before(end); {
		list := descendants()
		if bury() {
			return
		}
		groups := map[int]bool{own: true, 0: true, 1: true}
		for _, p := range list {
			if !groups[p.group] {
				groups[p.group] = true
				_ = unix.Kill(-p.group, unix.SIGKILL)
			}
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		for range 100 {
			for _, pid := range children(os.Getpid()) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			if bury() {
				return
			}
		}
	}
}

// bury waits for children that are dead, and says whether there are none any more.
func bury() (alone bool) {
	for {
		var ws unix.WaitStatus
		if pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil); pid <= 0 && err != unix.EINTR {
			return err == unix.ECHILD
		}
	}
}
