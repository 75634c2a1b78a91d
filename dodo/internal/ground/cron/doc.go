// Package cron tells when a five-field expression is due on the clock of a time zone.
//
// What it is: a strict reader of expressions, with gronx deciding which minutes, hours,
// days and months a field names, and a walk of our own over the zone's clock (decisions
// 3.10).
//
// What one may rely on: instants come in strictly rising order; a local time that the clock
// jumps over is skipped and told as skipped; a local time that the clock shows twice is due
// once, the first time, when the expression names one hour, and both times when it names
// several. Where day of month and day of week are both given, either is enough (POSIX);
// one that begins with "*" only narrows the other. The search is bounded: an expression that
// is never due is found out at once.
//
// What it deliberately does not do: it knows no seconds, no years, no words such as @daily
// and no L, W, # or ?; it reads no clock and starts nothing. Zones come from the machine, or
// from the program if that embeds them.
package cron
