# Stand-ins for the clients: each keeps its configuration as the real one does, as far as
# mooncite can tell. A file $HOME/break/CLIENT-VERB makes a verb misbehave: fail (does
# nothing, exit 1), noop (does nothing, exit 0), late (does it, exit 1), hang.
set -eu
misbehave() {
	[ -f "$HOME/break/$1" ] || return 0
	case $(cat "$HOME/break/$1") in
	fail) echo "it broke" >&2; exit 1 ;;
	noop) exit 0 ;;
	late) trap 'exit 1' EXIT ;;
	hang) sleep 300 ;;
	esac
}
