import ipaddr from 'ipaddr.js'

/** Number of leading bits of an address that identify a client. */
export interface IpPrefixes {
  readonly prefix4: number
  readonly prefix6: number
}

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

const plainIpv4 =
  /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/

/**
 * Returns one string for all notations of an address, masked to its prefix: `203.0.113.9`,
 * `203.0.113.0/24`, `2001:db8:1:2::/64`. `undefined` for an invalid address. An IPv6 address that
 * maps to an IPv4 (`embeddedIpv4`) is that IPv4. Ports, brackets and zones are stripped. An IPv4
 * address must be four plain decimal numbers, since parsers disagree on octal and hexadecimal
 * forms.
 */
export function canonicalIp(text: string, { prefix4, prefix6 }: IpPrefixes): string | undefined {
  if (prefix4 === 32 && plainIpv4.test(text)) return text
  const address = readIp(text)
  return address && masked(address, address.kind() === 'ipv4' ? prefix4 : prefix6)
}

/** Returns the address that a string represents, as read by `canonicalIp`. */
export function readIp(text: string): IpAddress | undefined {
  const bare = withoutPort(text)
  if (plainIpv4.test(bare)) return ipaddr.IPv4.parse(bare)
  if (!bare.includes(':') || bare.length > 100) return undefined
  const address = bare.split('%', 1)[0] ?? ''
  const hexadecimal = withoutDots(address)
  if (hexadecimal === undefined || !ipaddr.IPv6.isValid(hexadecimal)) return undefined
  const ipv6 = ipaddr.IPv6.parse(hexadecimal)
  return embeddedIpv4(ipv6) ?? ipv6
}

/** Rewrites an IPv6 address without dots. An IPv4 at its end is parsed as strictly as any other. */
function withoutDots(address: string): string | undefined {
  if (!address.includes('.')) return address
  const start = address.lastIndexOf(':') + 1
  const dotted = address.slice(start)
  if (!plainIpv4.test(dotted)) return undefined
  const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(dotted).octets
  return `${address.slice(0, start)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/** Returns whether an IPv6 address has a NAT64 prefix (RFC 6052 §2.1, RFC 8215). */
export function isTranslated(address: IpAddress): boolean {
  const bytes = address.toByteArray()
  const isOf = (prefix: readonly number[]): boolean =>
    prefix.every((byte, index) => byte === bytes[index])
  return bytes.length === 16 && (isOf(wellKnown) || isOf(localUse))
}

const wellKnown = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]
const localUse = [0, 0x64, 0xff, 0x9b, 0, 1]

/** Byte positions of the IPv4 after 48, 56 or 64 bits (RFC 6052 §2.2). All other bytes are 0. */
const positions = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
] as const

/**
 * Returns the IPv4 that an IPv6 address contains: mapped (`::ffff:0:0/96`), compatible (`::/96`),
 * or translated. Otherwise all IPv4 clients behind one NAT64 would share one /64. `undefined` for
 * all others, and for `0.0.0.0/8`, which no client has, so that `::1` remains `::1`.
 */
function embeddedIpv4(ipv6: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  if (ipv6.isIPv4MappedAddress()) return ipv6.toIPv4Address()
  const bytes = ipv6.toByteArray()
  const last = bytes.slice(12)
  if (isTranslated(ipv6)) return translatedIpv4(bytes) ?? clientIpv4(last)
  return bytes.slice(0, 12).every((byte) => byte === 0) ? clientIpv4(last) : undefined
}

/** Returns the IPv4 after a prefix shorter than 96 bits, if there is one. */
function translatedIpv4(bytes: readonly number[]): ipaddr.IPv4 | undefined {
  if (bytes[5] !== 1 || bytes[8] !== 0) return undefined
  for (const position of positions) {
    const rest = bytes.slice(position[3] + 1)
    const found = clientIpv4(position.map((index) => bytes[index] ?? 0))
    if (found && rest.every((byte) => byte === 0)) return found
  }
  return undefined
}

function clientIpv4(octets: readonly number[]): ipaddr.IPv4 | undefined {
  return octets[0] === 0 ? undefined : new ipaddr.IPv4([...octets])
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)
  if (bracketed) return bracketed[1] ?? ''
  return /^[\d.]+:\d{1,5}$/.test(text) ? text.slice(0, text.indexOf(':')) : text
}

function masked(address: IpAddress, prefix: number): string {
  const bytes = address.toByteArray()
  if (prefix === bytes.length * 8) return ipaddr.fromByteArray(bytes).toString()
  return `${ipaddr.fromByteArray(maskedBytes(bytes, prefix)).toString()}/${prefix}`
}

/** Returns the first bits of an address; the others become zero. */
export function maskedBytes(bytes: readonly number[], prefix: number): number[] {
  return bytes.map((byte, index) => {
    const kept = Math.min(8, Math.max(0, prefix - index * 8))
    return byte & (0xff << (8 - kept))
  })
}

/** Number of addresses to cache, since clients return. At this number the cache is cleared. */
const maxKnown = 4_096

/** Maximum length of an address: longer strings are not cached. */
const maxAddressLength = 64

export function remember<Value>(known: Map<string, Value>, address: string, value: Value): Value {
  if (address.length > maxAddressLength) return value
  if (known.size >= maxKnown) known.clear()
  // Copied: the string may be a slice that keeps a long header in memory.
  known.set(` ${address}`.slice(1), value)
  return value
}
