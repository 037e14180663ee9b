import ipaddr from 'ipaddr.js'

/** How many leading bits of an address say who somebody is. */
export interface IpPrefixes {
  readonly prefix4: number
  readonly prefix6: number
}

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

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
  const address = readIp(text)
  return address && masked(address, address.kind() === 'ipv4' ? prefix4 : prefix6)
}

/** The address that a text stands for, as `canonicalIp` reads it. */
export function readIp(text: string): IpAddress | undefined {
  const bare = withoutPort(text)
  if (plainIpv4.test(bare)) return ipaddr.IPv4.parse(bare)
  if (!bare.includes(':') || bare.length > 100) return undefined
  const address = bare.split('%', 1)[0] ?? ''
  if (!ipaddr.IPv6.isValid(address)) return undefined
  const ipv6 = ipaddr.IPv6.parse(address)
  return ipv6.isIPv4MappedAddress() ? ipv6.toIPv4Address() : ipv6
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)
  if (bracketed) return bracketed[1] ?? ''
  return /^[\d.]+:\d{1,5}$/.test(text) ? text.slice(0, text.indexOf(':')) : text
}

function masked(address: IpAddress, prefix: number): string {
  const bytes = address.toByteArray()
  if (prefix === bytes.length * 8) return ipaddr.fromByteArray(bytes).toString()
  const kept = bytes.map((byte, index) => byte & maskOf(prefix - index * 8))
  return `${ipaddr.fromByteArray(kept).toString()}/${prefix}`
}

/** The mask of a byte of which `bits` bits are left to keep. */
function maskOf(bits: number): number {
  return bits >= 8 ? 0xff : bits <= 0 ? 0 : (0xff << (8 - bits)) & 0xff
}
