// Package surface shows the operations as tools: all of them (full), behind a few gateways
// (compact), or both the gateways and the coding tools (hybrid) (contract 029).
//
// What it is: the published order of the catalogue, the gateways, dodo_discover, and the
// schemas of the tools: an operation's arguments with the workspace's context around them.
//
// What one may rely on: a surface changes what is shown and never what is allowed: a direct
// call and a gateway's call take the same road; only operations that exist are shown, and a
// gateway without any is not; the order is that of the contract; every schema is in the
// portable subset.
//
// What it deliberately does not do: it decides nothing, and it runs nothing but by the
// road it is given.
package surface
