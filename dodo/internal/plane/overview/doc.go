// Package overview tells a client where it is: the workspace and its rules, the machine's
// tools, and what became of its own questions to the owner.
//
// What it is: the operations project_overview, environment_info and approval_status.
//
// What one may rely on: project_overview alone hands out the workspace's id and epoch, and
// says in few words how to go on; what is not known is absent and never guessed; nothing
// of the project is executed or obeyed.
//
// What it deliberately does not do: it runs no program (so tools are found, not asked for
// their version), and it does not say what is in files beyond a few lines of the documents
// people begin with.
package overview
