// Command probe confines itself and says what it can still do. Tests build it without
// cgo and run it in processes of their own, because confinement is for good.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"localmcp/internal/confine"
)

// job is what a test asks for.
type job struct {
	Policy  confine.Policy
	Trial   confine.Trial
	Threads int      // how many try at once
	Open    []string // files to open for reading afterwards
	Wait    string   // a line is printed and one is read before they are opened
	Int80   bool     // make a 32-bit call at the end
}

// found is what it answers.
type found struct {
	State    confine.State
	Error    string
	Verified string              // the fault of Verify
	Attempts []confine.Attempt   // all threads' together
	Status   map[string][]string // line of the status -> its values over all threads
	Opened   map[string]string
	Extra    map[string]string // what Go's own library met
	Fds      []string
}

func main() {
	switch os.Args[1] {
	case "try":
		try()
	case "supervise":
		supervise(os.Args[2:])
	case "worker":
		work(os.Args[2])
	case "exec":
		// What a supervisor may run besides itself.
		_, err := confine.Self(confine.Policy{Supervisor: true})
		fmt.Println("confined:", err)
		fmt.Println("other:", start("/bin/true"))
		fmt.Println("own:", start("/proc/self/exe"))
		_, err = net.Dial("udp", "127.0.0.1:9")
		fmt.Println("socket:", err)
		fmt.Println("write:", os.WriteFile(os.Args[2], nil, 0o600))
	case "hello":
	}
}

// start runs a program to its end.
func start(name string) error {
	pid, err := syscall.ForkExec(name, []string{name, "hello"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func try() {
	var j job
	fail(json.NewDecoder(strings.NewReader(os.Args[2])).Decode(&j))
	// Threads that are there before, each busy in a system call of its own.
	var pipes [][2]int
	var begun sync.WaitGroup
	for range j.Threads {
		var p [2]int
		fail(syscall.Pipe2(p[:], syscall.O_CLOEXEC))
		pipes = append(pipes, p)
		begun.Add(1)
		go func() {
			runtime.LockOSThread()
			begun.Done()
			var b [1]byte
			syscall.Read(p[0], b[:])
		}()
	}
	begun.Wait()
	time.Sleep(20 * time.Millisecond)
	var f found
	state, err := confine.Self(j.Policy)
	f.State = state
	if err != nil {
		f.Error = err.Error()
		fail(json.NewEncoder(os.Stdout).Encode(f))
		return
	}
	if err := confine.Verify(state, j.Trial); err != nil {
		f.Verified = err.Error()
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range max(1, j.Threads) { // and threads that come later
		wait.Go(func() {
			runtime.LockOSThread()
			list := confine.Try(j.Trial)
			mu.Lock()
			defer mu.Unlock()
			f.Attempts = append(f.Attempts, list...)
		})
	}
	wait.Wait()
	f.Status = statuses()
	f.Extra = extra(j)
	if j.Wait != "" {
		fmt.Println(j.Wait)
		var line string
		fmt.Scanln(&line)
	}
	f.Opened = map[string]string{}
	for _, name := range j.Open {
		_, err := os.ReadFile(name)
		f.Opened[name] = text(err)
	}
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		f.Fds, _ = dir.Readdirnames(-1)
		dir.Close()
	}
	fail(json.NewEncoder(os.Stdout).Encode(f))
	if j.Int80 {
		int80()
	}
	for _, p := range pipes {
		syscall.Close(p[1])
	}
}

func text(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

func statuses() map[string][]string {
	all := map[string][]string{}
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	fail(err)
	for _, t := range tasks {
		data, err := os.ReadFile(t)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok {
				all[name] = append(all[name], strings.TrimSpace(value))
			}
		}
	}
	return all
}

// extra goes through Go's own library, as a dependency would.
func extra(j job) map[string]string {
	out := map[string]string{}
	try := func(name string, f func() error) { out[name] = text(f()) }
	try("net.Dial tcp", func() error { _, err := net.Dial("tcp", "127.0.0.1:9"); return err })
	try("net.Dial udp", func() error { _, err := net.Dial("udp", "127.0.0.1:9"); return err })
	try("net.Dial unix", func() error { _, err := net.Dial("unix", "/run/nothing.sock"); return err })
	try("net.Listen", func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err })
	try("exec", func() error { return start("/proc/self/exe") })
	dumpable, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_DUMPABLE, 0, 0)
	out["dumpable"] = fmt.Sprint(dumpable, int(errno))
	limits, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max core file size"); ok {
			out["core"] = strings.Join(strings.Fields(rest), " ")
		}
	}
	for _, dir := range j.Policy.Read {
		name := filepath.Join(dir, "a")
		try("chmod", func() error { return os.Chmod(name, 0o600) })
		try("chtimes", func() error { return os.Chtimes(name, time.Now(), time.Now()) })
		try("truncate", func() error { return os.Truncate(name, 0) })
		try("rename", func() error { return os.Rename(name, name+"b") })
		try("remove", func() error { return os.Remove(name) })
		try("write", func() error { return os.WriteFile(name, nil, 0o600) })
		try("create", func() error { return os.WriteFile(name+"c", nil, 0o600) })
		try("link", func() error { return os.Link(name, name+"d") })
	}
	for _, dir := range j.Policy.Write {
		name := filepath.Join(dir, "s")
		try("state", func() error {
			return errors.Join(os.WriteFile(name, []byte("x"), 0o600), os.Rename(name, name+"2"), os.Remove(name+"2"))
		})
		try("mkdir in state", func() error { return os.Mkdir(name, 0o700) })
		try("symlink in state", func() error { return os.Symlink("/", name) })
	}
	return out
}

// supervise runs this program as a worker.
func supervise(args []string) {
	_, err := confine.Self(confine.Policy{Supervisor: true})
	fail(err)
	ctx, cancel := context.WithCancel(context.Background())
	if strings.HasPrefix(args[0], "stop") {
		time.AfterFunc(300*time.Millisecond, cancel)
	}
	status, err := confine.Supervise(ctx, append([]string{"probe", "worker"}, args...))
	if err != nil {
		fmt.Println("fault:", err)
		os.Exit(9)
	}
	os.Exit(status)
}

func work(how string) {
	letter, text, err := confine.Inherit()
	fail(err)
	_, err = confine.Self(confine.Policy{}, 3)
	fail(err)
	fmt.Printf("worker %d of %d: letter %q\n", os.Getpid(), os.Getppid(), text)
	switch how {
	case "again": // three workers, one after the other
		if len(text) < 2 {
			fail(letter.Leave(append(text, 'x')))
			os.Exit(confine.Again)
		}
		os.Exit(7)
	case "stop and again": // is told to end while it hands over
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		<-told
		os.Exit(confine.Again)
	case "die":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	time.Sleep(time.Minute)
}
