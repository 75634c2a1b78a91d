// Package gate is the one road to an operation.
//
// What it is: Gate.Run takes a call by whatever door it came (a tool, a gateway's target, a
// command of the owner) through the contract's checks in their order: who calls, which
// workspace, what they may do there, size, arguments, replay, preparation, the owner's
// rules, the turn, the effect, the answer, the audit (spec dodo-behaviour 1.11).
//
// What one may rely on: nothing has an effect before the owner's rules allowed this very
// call, and authority is asked for again after every wait; effects of one workspace happen
// one at a time in the order they came; an effect with an idempotency key happens once,
// and its answer is given again afterwards, also after a restart; a panic below fails the
// call alone; a call that could not be recorded in the audit gives no result.
//
// What it deliberately does not do: it knows no protocol and no operation, it opens no
// file, and the lock between processes is not its own: who changes files takes it while
// they do.
package gate
