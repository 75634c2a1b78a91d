package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bounds of a client's command.
const (
	commandLimit = time.Minute
	maxOutput    = 1 << 20 // bytes of each stream
)

// commands runs client programs, without a shell, in the environment of the user.
type commands struct{ env map[string]string }

// quiet keeps clients from looking for updates and from reporting the call.
var quiet = map[string]string{
	"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
	"DISABLE_AUTOUPDATER":                      "1",
	"PI_OFFLINE":                               "1",
	"PI_SKIP_VERSION_CHECK":                    "1",
}

// output is what a command left.
type output struct {
	status         int
	stdout, stderr string
}

// What Node.js and Bun write last when a program of theirs dies, and the line that says of what.
var (
	jsVersion = regexp.MustCompile(`^(Node\.js|Bun) v\d`)
	jsError   = regexp.MustCompile(`^(Uncaught )?(\w*Error|error)( \[\w+\])?: `)
)

// said is what a failed command complained of, one line of it: the last, or what a program
// of Node.js or Bun died of.
func (o output) said() string {
	for _, text := range []string{o.stderr, o.stdout} {
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool {
			return strings.TrimSpace(l) == "" || strings.HasPrefix(l, "WARNING")
		})
		if len(lines) == 0 {
			continue
		}
		line := lines[len(lines)-1]
		if jsVersion.MatchString(line) {
			for _, l := range lines {
				if jsError.MatchString(l) {
					line = l
				}
			}
		}
		return fmt.Sprintf("%.300s", strings.TrimSpace(line))
	}
	return fmt.Sprintf("exit status %d", o.status)
}

var (
	errAbsent = errors.New("the command is not there")
	errSilent = errors.New("the command did not end in time")
	errLoud   = errors.New("the command printed too much")
)

// find is where a command is: by an override's path, or on the user's PATH.
func (c commands) find(name, override string) (string, error) {
	if v := c.env[override]; v != "" {
		name = v
	}
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) && runnable(name) {
			return name, nil
		}
		return "", errAbsent
	}
	for _, dir := range filepath.SplitList(c.env["PATH"]) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && runnable(path) {
			return path, nil
		}
	}
	return "", errAbsent
}

func runnable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// run runs a program to its end. A status other than 0 is no error. path, when not "", is
// put before the user's PATH. One that takes too long or prints too much is ended with all
// that it started.
func (c commands) run(ctx context.Context, path, program string, args ...string) (output, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/" // no project, so no configuration of one
	env := maps.Clone(c.env)
	maps.Copy(env, quiet)
	if path != "" {
		env["PATH"] = path + string(os.PathListSeparator) + env["PATH"]
	}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, errs := &bounded{stop: cancel}, &bounded{stop: cancel}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	err := cmd.Run()
	o := output{status: cmd.ProcessState.ExitCode(), stdout: out.kept.String(), stderr: errs.kept.String()}
	var exit *exec.ExitError
	switch {
	case out.over || errs.over:
		return o, errLoud
	case ctx.Err() != nil:
		return o, errors.Join(errSilent, ctx.Err())
	case errors.As(err, &exit), err == nil, errors.Is(err, exec.ErrWaitDelay):
		return o, nil
	}
	return o, err
}

// bounded keeps the beginning of a stream and stops what writes too much. The buffer is
// not embedded: its ReadFrom would be called instead of Write.
type bounded struct {
	kept bytes.Buffer
	over bool
	stop func()
}

// Write keeps p.
func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > maxOutput {
		b.over = true
		b.stop()
		return 0, errLoud
	}
	return b.kept.Write(p)
}
