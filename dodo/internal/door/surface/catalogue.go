package surface

// catalogue is every operation of the contract in its published order. Clients that cut a
// long list see its head. Names are only ever appended (decision 3.14). Which of them a
// build has is what its services bring.
var catalogue = []string{
	"project_overview", "list_files", "read_files", "read_image", "read_instructions", "search_code",
	"glob_files", "write_file", "edit_file", "apply_patch", "replace_in_files", "delete_path",
	"move_path", "make_directory", "symbols", "references", "preview_rename", "preview_changes",
	"apply_changes", "rollback_changes", "git_status", "git_diff", "git_log", "git_commit",
	"run_command", "run_commands", "run_task", "exec_command", "job_status", "job_output", "job_wait",
	"job_input", "job_cancel", "list_jobs", "environment_info", "todo_write", "todo_read",
	"fetch_url", "diagnostics", "change_history", "approval_status", "handoff_read", "handoff_write",
	"desktop_status", "desktop_windows", "desktop_capture", "desktop_accessibility", "desktop_action",
	"schedule_propose", "context_for_task", "analyze_impact", "read_symbol", "preview_refactor",
	"verify_changes", "context_query", "context_evidence", "context_status", "memory_search",
	"memory_inspect", "memory_status", "memory_propose", "memory_learning_propose",
	"runtime_session_open", "runtime_session_status", "runtime_session_close", "runtime_task_start",
	"runtime_task_observe", "runtime_task_cancel", "runtime_browser_collect", "runtime_snapshot",
	"runtime_evidence", "runtime_diagnose", "brain_status", "brain_query", "brain_symbol",
	"brain_rebuild", "brain_pause", "brain_cancel", "multimodal_status", "screen_observe",
	"image_view", "media_open", "media_extract", "media_transcribe", "media_subtitles",
	"media_search", "media_read", "media_job", "media_close", "speech_synthesize", "browser_session",
	"browser_observe", "browser_action", "game_session", "game_step", "workflow_save",
	"workflow_search", "workflow_run", "resource_inspect", "resource_read", "resource_read_range",
	"resource_preview", "resource_extract", "resource_transform", "agent_run_open",
	"agent_run_status", "agent_plan_set", "agent_hypothesis_open", "agent_intent_acquire",
	"agent_intent_release", "agent_read", "agent_write", "agent_exec", "agent_snapshot_create",
	"agent_snapshot_compare", "agent_snapshot_rollback", "agent_hypothesis_judge",
	"agent_skill_search", "agent_skill_inspect", "agent_skill_propose", "agent_run_control",
	"subagent_spawn", "subagent_status", "subagent_result", "subagent_control",
}

// hybrid are the operations that the hybrid surface also shows directly, in order.
var hybrid = []string{
	"list_files", "read_files", "read_instructions", "search_code", "glob_files", "write_file",
	"edit_file", "apply_patch", "replace_in_files", "delete_path", "move_path", "make_directory",
	"symbols", "references", "preview_changes", "apply_changes", "rollback_changes", "git_status",
	"git_diff", "git_log", "git_commit", "run_command", "run_commands", "run_task", "exec_command",
	"job_status", "job_output", "job_wait", "job_cancel", "list_jobs",
}

// A gateway is a tool that leads to the operations of one kind.
type gateway struct {
	name, domain, title, doc string
	operations               []string
}

// gateways are the gateways in their order (spec dodo-catalog 5.1). Every operation but
// project_overview is in exactly one.
var gateways = []gateway{
	{"dodo_read", "code", "Read the workspace", "Reads files, searches and looks things up in the workspace. Changes nothing.", []string{
		"list_files", "read_files", "read_image", "read_instructions", "search_code", "glob_files",
		"symbols", "references", "diagnostics", "change_history", "approval_status", "environment_info",
		"todo_read", "handoff_read", "job_status", "job_output", "job_wait", "list_jobs",
	}},
	{"dodo_write", "code", "Change files", "Writes, edits, moves and deletes files. Each change is journaled and can be rolled back.", []string{
		"write_file", "edit_file", "apply_patch", "replace_in_files", "delete_path", "move_path",
		"make_directory", "preview_changes", "apply_changes", "rollback_changes", "preview_rename",
		"todo_write", "handoff_write", "agent_write", "agent_snapshot_rollback",
	}},
	{"dodo_exec", "exec", "Run commands", "Runs commands and controls what was started.", []string{
		"run_command", "run_commands", "run_task", "exec_command", "job_input", "job_cancel",
		"runtime_task_start", "runtime_task_cancel", "agent_exec",
	}},
	{"dodo_git_read", "git", "Read git", "Shows status, differences and history of the repository.", []string{
		"git_status", "git_diff", "git_log",
	}},
	{"dodo_git_write", "git", "Commit", "Commits in the repository. Never pushes.", []string{
		"git_commit",
	}},
	{"dodo_desktop_view", "desktop", "See the desktop", "Lists and pictures windows of the programs the owner allowed.", []string{
		"desktop_status", "desktop_windows", "desktop_capture", "desktop_accessibility",
	}},
	{"dodo_desktop_control", "desktop", "Control the desktop", "Clicks and types in windows of the programs the owner allowed.", []string{
		"desktop_action",
	}},
	{"dodo_assist_read", "code", "Understand the project", "Gathers context, evidence and knowledge about the project. Changes nothing in it.", []string{
		"subagent_status", "subagent_result", "context_for_task", "analyze_impact", "read_symbol",
		"context_query", "context_evidence", "context_status", "memory_search", "memory_inspect",
		"memory_status", "runtime_session_status", "runtime_task_observe", "runtime_snapshot",
		"runtime_evidence", "runtime_diagnose", "agent_run_status", "agent_read",
		"agent_snapshot_create", "agent_snapshot_compare", "agent_skill_search", "agent_skill_inspect",
		"brain_status", "brain_query", "brain_symbol",
	}},
	{"dodo_assist_change", "code", "Plan and verify", "Proposes, plans, verifies and steers longer work.", []string{
		"subagent_spawn", "subagent_control", "preview_refactor", "verify_changes", "memory_propose",
		"memory_learning_propose", "runtime_session_open", "runtime_session_close", "agent_run_open",
		"agent_plan_set", "agent_hypothesis_open", "agent_intent_acquire", "agent_intent_release",
		"agent_hypothesis_judge", "agent_skill_propose", "agent_run_control", "brain_rebuild",
		"brain_pause", "brain_cancel",
	}},
	{"dodo_media", "media", "Media", "Looks at pictures, sound, video, documents and the screen.", []string{
		"multimodal_status", "screen_observe", "image_view", "media_open", "media_extract",
		"media_transcribe", "media_subtitles", "media_search", "media_read", "media_job", "media_close",
		"speech_synthesize", "resource_inspect", "resource_read", "resource_read_range",
		"resource_preview", "resource_extract", "resource_transform",
	}},
	{"dodo_browser", "browser", "Browser", "Opens pages in a browser of its own, looks at them and acts on them.", []string{
		"browser_session", "browser_observe", "browser_action", "runtime_browser_collect",
	}},
	{"dodo_game", "game", "Games", "Plays turn by turn on a page or window.", []string{
		"game_session", "game_step",
	}},
	{"dodo_workflow_read", "workflow", "Find workflows", "Finds saved workflows.", []string{
		"workflow_search",
	}},
	{"dodo_workflow_write", "workflow", "Save a workflow", "Saves a list of steps.", []string{
		"workflow_save",
	}},
	{"dodo_workflow_run", "workflow", "Run a workflow", "Runs a saved workflow step by step.", []string{
		"workflow_run",
	}},
	{"dodo_schedule", "schedule", "Propose a schedule", "Proposes a command to be run by the clock; the owner decides.", []string{
		"schedule_propose",
	}},
	{"dodo_web", "web", "Fetch a page", "Fetches a public page.", []string{
		"fetch_url",
	}},
}
