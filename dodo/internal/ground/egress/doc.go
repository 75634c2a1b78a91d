// Package egress is the one way by which dodo reaches the network.
//
// What it is: a [Dialer] that judges where a connection goes by the owner's rules and by
// what the address is set aside for, and a [Proxy] over it that serves HTTP clients which
// have no other way out, such as the commands of a job.
//
// What one may rely on: a name is looked up once, every address it has is judged, and the
// connection goes to an address that was judged, never to a name; what the connection
// itself says of its other end is held against it. Without an entry of the owner's only
// public addresses are reached, by ports 80 and 443. An address that carries another one
// in it (mapped, 6to4, Teredo, NAT64) is never a way round: the mapped form is judged as
// what it carries, the others are refused. A deny entry wins over everything. Refusals are
// FORBIDDEN and say what the owner can do; a name without addresses is NOT_FOUND; what
// takes too long is TIMEOUT. The system's proxy variables are never looked at.
//
// The rules. An entry is host or host:port, and host is one of
//
//	example.com        this name
//	*.example.com      every name below it, but not the name itself
//	192.0.2.7          an address; IPv6 as fd00::7, with a port [fd00::7]:443
//	10.0.0.0/8         a range; with a port 10.0.0.0/8:443, [fd00::/8]:443
//	*                  everything public
//
// An allow entry without a port means ports 80 and 443, a deny entry without one every
// port. No allow entry at all is the same as the one entry "*"; with allow entries, only
// what they name is reached. Entries for addresses open those addresses, private and local
// ones too. An entry for one exact name also opens private addresses that the name has, but
// no other special ones: loopback only for localhost, and never link-local, where clouds
// keep their metadata. What is below a "*." may be anybody's, so it opens public addresses
// only. Names of the machine and its network (localhost, one label, .localhost, .local,
// .internal) need an entry for the name.
//
// What it deliberately does not do: it speaks no TLS, so it cannot see whether what is said
// inside a tunnel is meant for the host that the tunnel leads to; an owner who lets a job
// reach a host lets it send there. It follows no redirect: each hop is a new connection of
// whoever follows it. It limits no amount of data, and carries only TCP.
package egress
