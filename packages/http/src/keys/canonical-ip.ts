import ipaddr from 'ipaddr.js'

/** How many leading bits of an address say who somebody is. */
export interface IpPrefixes {
  readonly prefix4: number
  readonly prefix6: number
}

const plainIpv4 =
  /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/

/**
 * One text for an address in whatever notation, masked to its prefix: `203.0.113.9`, `203.0.113.0/24`, `2001:db8:1:2::/64`;
 * `undefined` for what is no address. An IPv4 that is mapped into IPv6 is that IPv4. Ports, brackets and zones are
 * stripped; an IPv4 is four plain decimal numbers and nothing else, since the octal and hexadecimal forms are read
 * differently by different parsers.
 */
export function canonicalIp(text: string, { prefix4, prefix6 }: IpPrefixes): string | undefined {
  if (prefix4 === 32 && plainIpv4.test(text)) return text
  const bare = withoutPort(text)
  if (plainIpv4.test(bare)) return masked(ipaddr.IPv4.parse(bare), prefix4)
  if (!bare.includes(':') || bare.length > 100) return undefined
  const address = bare.split('%', 1)[0] ?? ''
  if (!ipaddr.IPv6.isValid(address)) return undefined
  const ipv6 = ipaddr.IPv6.parse(address)
  return ipv6.isIPv4MappedAddress() ? masked(ipv6.toIPv4Address(), prefix4) : masked(ipv6, prefix6)
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)
  if (bracketed) return bracketed[1] ?? ''
  return /^[\d.]+:\d{1,5}$/.test(text) ? text.slice(0, text.indexOf(':')) : text
}

function masked(address: ipaddr.IPv4 | ipaddr.IPv6, prefix: number): string {
  const bytes = address.toByteArray()
  if (prefix === bytes.length * 8) return ipaddr.fromByteArray(bytes).toString()
  const kept = bytes.map((byte, index) => byte & maskOf(prefix - index * 8))
  return `${ipaddr.fromByteArray(kept).toString()}/${prefix}`
}

/** The mask of a byte of which `bits` bits are left to keep. */
function maskOf(bits: number): number {
  return bits >= 8 ? 0xff : bits <= 0 ? 0 : (0xff << (8 - bits)) & 0xff
}
