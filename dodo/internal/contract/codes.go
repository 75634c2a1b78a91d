package contract

import "localmcp/internal/fault"

// The 29 codes of failed calls. The list is closed: clients know it.
const (
	AuthRequired            fault.Code = "AUTH_REQUIRED"
	WorkspaceAccessRequired fault.Code = "WORKSPACE_ACCESS_REQUIRED"
	Forbidden               fault.Code = "FORBIDDEN"
	WorkspaceMismatch       fault.Code = "WORKSPACE_MISMATCH"
	StaleWorkspace          fault.Code = "STALE_WORKSPACE"
	PathDenied              fault.Code = "PATH_DENIED"
	SecretPathDenied        fault.Code = "SECRET_PATH_DENIED"
	NotFound                fault.Code = "NOT_FOUND"
	UnsupportedEncoding     fault.Code = "UNSUPPORTED_ENCODING"
	UnsupportedLanguage     fault.Code = "UNSUPPORTED_LANGUAGE"
	FileTooLarge            fault.Code = "FILE_TOO_LARGE"
	FileChanged             fault.Code = "FILE_CHANGED"
	AmbiguousEdit           fault.Code = "AMBIGUOUS_EDIT"
	PlanExpired             fault.Code = "PLAN_EXPIRED"
	PlanHashMismatch        fault.Code = "PLAN_HASH_MISMATCH"
	ApprovalRequired        fault.Code = "APPROVAL_REQUIRED"
	ApprovalExpired         fault.Code = "APPROVAL_EXPIRED"
	IdempotencyConflict     fault.Code = "IDEMPOTENCY_CONFLICT"
	ResourceLimit           fault.Code = "RESOURCE_LIMIT"
	JobNotFound             fault.Code = "JOB_NOT_FOUND"
	JobNotRunning           fault.Code = "JOB_NOT_RUNNING"
	Timeout                 fault.Code = "TIMEOUT"
	RecoveryRequired        fault.Code = "RECOVERY_REQUIRED"
	PartialRecoveryRequired fault.Code = "PARTIAL_RECOVERY_REQUIRED"
	MigrationReviewRequired fault.Code = "MIGRATION_REVIEW_REQUIRED"
	InvalidInput            fault.Code = "INVALID_INPUT"
	NotSupported            fault.Code = "NOT_SUPPORTED"
	Conflict                fault.Code = "CONFLICT"
	InternalError           fault.Code = "INTERNAL_ERROR"
)

// A CodeMeaning says what a code tells.
type CodeMeaning struct {
	Code fault.Code
	HTTP int // status of an owner's door that answers with it
	Text string
}

// Codes are the codes in their published order.
var Codes = []CodeMeaning{
	{AuthRequired, 401, "no authenticated caller"},
	{WorkspaceAccessRequired, 403, "the caller is known, but the owner has not granted it this workspace"},
	{Forbidden, 403, "a scope is missing, or the thing belongs to another caller"},
	{WorkspaceMismatch, 409, "the workspace id is that of another workspace"},
	{StaleWorkspace, 409, "the workspace was opened anew since; call project_overview again"},
	{PathDenied, 400, "the path is not one that file tools may reach"},
	{SecretPathDenied, 403, "the path is one of those kept secret"},
	{NotFound, 404, "nothing is there by that name or id"},
	{UnsupportedEncoding, 415, "the bytes are not text in the encoding asked for"},
	{UnsupportedLanguage, 415, "nothing here understands that language"},
	{FileTooLarge, 413, "the file, or what would become of it, is above the limit"},
	{FileChanged, 409, "the bytes on disk are no longer those the call rests on"},
	{AmbiguousEdit, 409, "the text to find is there more or less often than expected"},
	{PlanExpired, 409, "the plan was used, is too old, or was made before the workspace was opened anew"},
	{PlanHashMismatch, 409, "the hash is not that of the stored plan"},
	{ApprovalRequired, 403, "the owner must approve this call on this machine"},
	{ApprovalExpired, 403, "the approval ended before it was used"},
	{IdempotencyConflict, 409, "the key was used for a call with other arguments"},
	{ResourceLimit, 429, "a budget, a quota or a size is used up"},
	{JobNotFound, 404, "no job of this workspace has that id"},
	{JobNotRunning, 409, "the job is over"},
	{Timeout, 504, "it took too long"},
	{RecoveryRequired, 409, "how something ended is not known, or an earlier change must be recovered first"},
	{PartialRecoveryRequired, 500, "a change failed on the way and could not be taken back whole"},
	{MigrationReviewRequired, 409, "the owner must look at a migration of the state first"},
	{InvalidInput, 400, "the arguments do not fit"},
	{NotSupported, 501, "this machine or this configuration cannot do that"},
	{Conflict, 409, "what is there is not what the call needs"},
	{InternalError, 500, "something went wrong inside the program"},
}
