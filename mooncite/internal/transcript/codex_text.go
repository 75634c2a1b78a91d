package transcript

import (
	"strings"

	"localmcp/mooncite/internal/evidence"
)

// userText adds what stands in the user's chair; it reports whether a person spoke.
// warnings says that the client's own warnings may stand there too.
func userText(sp *spanner, t string, warnings bool) bool {
	if isMachineText(t) || warnings && isClientWarning(t) {
		sp.dialogue(t, evidence.System, evidence.Boilerplate)
		return false
	}
	if i := ideRequest(t); i >= 0 {
		if strings.TrimSpace(t[i:]) == "" {
			sp.dialogue(t, evidence.System, evidence.Boilerplate)
			return false
		}
		sp.dialogue(t[i:], evidence.User, evidence.Dialogue)
		sp.extra(t[:i], evidence.System, "", evidence.Boilerplate)
		return true
	}
	n := len(sp.old)
	sp.dialogue(t, evidence.User, evidence.Dialogue)
	return len(sp.old) > n
}

// ideRequest gives where the request begins in a prompt that an editor wrapped in
// its context, or -1.
func ideRequest(t string) int {
	if !strings.HasPrefix(t, "# ") {
		return -1
	}
	const head = "\n## My request for Codex:"
	i := strings.Index(t, head)
	if i < 0 {
		return -1
	}
	i += len(head)
	for i < len(t) && (t[i] == ' ' || t[i] == '\t' || t[i] == '\r' || t[i] == '\n') {
		i++
	}
	return i
}

// machineTags are elements clients put into the user's chair.
var machineTags = []string{
	"environment_context", "user_instructions", "INSTRUCTIONS", "permissions instructions",
	"collaboration_mode", "apps_instructions", "skill", "turn_aborted", "user_shell_command",
	"subagent_notification", "user_action", "skills_instructions", "plugins_instructions", "model_switch",
}

// isMachineText reports whether t is wholly made of such elements. A person may
// quote them beside own words.
func isMachineText(t string) bool {
	t = strings.TrimSpace(t)
	if t == "" || t[0] != '<' && t[0] != '#' {
		return false
	}
	for t != "" {
		if strings.HasPrefix(t, "# AGENTS.md instructions") {
			i := strings.Index(t, "<INSTRUCTIONS>")
			if i < 0 || i > 4096 {
				return false
			}
			t = t[i:]
		}
		tag := ""
		for _, m := range machineTags {
			if rest, ok := strings.CutPrefix(t, "<"+m); ok && rest != "" && (rest[0] == '>' || rest[0] == ' ') {
				tag = m
				break
			}
		}
		if tag == "" {
			return false
		}
		end := "</" + tag + ">"
		i := strings.Index(t, end)
		if i < 0 {
			return false
		}
		rest := strings.TrimSpace(t[i+len(end):])
		if rest != "" && !machineStart(rest) {
			return strings.HasSuffix(t, end) // it quotes its own end
		}
		t = rest
	}
	return true
}

// machineStart reports whether another such element comes next.
func machineStart(t string) bool {
	t = strings.TrimSpace(t)
	if strings.HasPrefix(t, "# AGENTS.md instructions") {
		return true
	}
	for _, m := range machineTags {
		if strings.HasPrefix(t, "<"+m) {
			return true
		}
	}
	return false
}

// isClientWarning knows the one-line warnings a client gives the model in the
// user's chair. Typed prompts have an event, so only response items are asked.
func isClientWarning(t string) bool {
	return strings.HasPrefix(t, "Warning: ") && len(t) < 1024 && !strings.Contains(strings.TrimSpace(t), "\n")
}

func isImageMark(t string) bool {
	t = strings.TrimSpace(t)
	return t == "</image>" || strings.HasPrefix(t, "<image") && strings.HasSuffix(t, ">") && strings.Count(t, "<") == 1
}

// contextCwd finds the working directory in an environment context.
func contextCwd(t string) string {
	if !strings.HasPrefix(strings.TrimSpace(t), "<environment_context>") {
		return ""
	}
	_, rest, ok := strings.Cut(t, "<cwd>")
	if !ok {
		return ""
	}
	cwd, _, ok := strings.Cut(rest, "</cwd>")
	if !ok || len(cwd) > 4096 {
		return ""
	}
	return strings.TrimSpace(cwd)
}
