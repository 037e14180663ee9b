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
 * One text for all notations of an address, masked to its prefix: `203.0.113.9`, `203.0.113.0/24`,
 * `2001:db8:1:2::/64`. `undefined` for an invalid address. An IPv6 that stands for an IPv4
 * (`embeddedIpv4`) is that IPv4. Ports, brackets and zones are stripped. An IPv4 address is four
 * plain decimal numbers, since parsers read octal and hexadecimal forms differently.
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
  const hexadecimal = withoutDots(address)
  if (hexadecimal === undefined || !ipaddr.IPv6.isValid(hexadecimal)) return undefined
  const ipv6 = ipaddr.IPv6.parse(hexadecimal)
  return embeddedIpv4(ipv6) ?? ipv6
}

/** The IPv6 without dots: an IPv4 at its end is read as strictly as any other IPv4. */
function withoutDots(address: string): string | undefined {
  if (!address.includes('.')) return address
  const start = address.lastIndexOf(':') + 1
  const dotted = address.slice(start)
  if (!plainIpv4.test(dotted)) return undefined
  const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(dotted).octets
  return `${address.slice(0, start)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/** Returns whether an IPv6 has the prefix of a translator (RFC 6052 §2.1, RFC 8215). */
export function isTranslated(address: IpAddress): boolean {
  const bytes = address.toByteArray()
  const isOf = (prefix: readonly number[]): boolean =>
    prefix.every((byte, index) => byte === bytes[index])
  return bytes.length === 16 && (isOf(wellKnown) || isOf(localUse))
}

const wellKnown = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]
const localUse = [0, 0x64, 0xff, 0x9b, 0, 1]

/** Positions of the IPv4 behind 48, 56 or 64 bits (RFC 6052 §2.2). All other bytes are 0. */
const positions = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
] as const

/**
 * The IPv4 that an IPv6 stands for: mapped (`::ffff:0:0/96`), compatible (`::/96`), or translated.
 * Otherwise all IPv4 clients behind one translator would share one /64. `undefined` for all others,
 * and for addresses of `0.0.0.0/8`, which no client has: so `::1` stays itself.
 */
function embeddedIpv4(ipv6: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  if (ipv6.isIPv4MappedAddress()) return ipv6.toIPv4Address()
  const bytes = ipv6.toByteArray()
  const last = bytes.slice(12)
  if (isTranslated(ipv6)) return translatedIpv4(bytes) ?? clientIpv4(last)
  return bytes.slice(0, 12).every((byte) => byte === 0) ? clientIpv4(last) : undefined
}

/** The IPv4 behind a prefix shorter than 96 bits, where there is one. */
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

/** The first bits of an address, with zeros in place of the others. */
export function maskedBytes(bytes: readonly number[], prefix: number): number[] {
  return bytes.map((byte, index) => {
    const kept = Math.min(8, Math.max(0, prefix - index * 8))
    return byte & (0xff << (8 - kept))
  })
}

/** Number of addresses to remember, since clients come back. At this number all are forgotten. */
const maxKnown = 4_096

/** The longest text of an address: others are not worth remembering. */
const maxAddressLength = 64

export function remember<Value>(known: Map<string, Value>, address: string, value: Value): Value {
  if (address.length > maxAddressLength) return value
  if (known.size >= maxKnown) known.clear()
  // A copy: the text may be a slice of a long header, all of which would be kept with it.
  known.set(` ${address}`.slice(1), value)
  return value
}
