import { countOption, invalid, type Option, type OptionsOf, readOptions } from '@sluice/core'
import { canonicalIp, type IpPrefixes, remember } from './canonical-ip.ts'
import { defineIdentity, type IdentityResolver } from './resolver.ts'

class IpTable {
  /** Length of the IPv6 prefix, 1 to 128. Every customer has at least a /64. @default 64 */
  prefix6?: Option<number, number> = countOption(64, { min: 1, max: 128 })
  /** Length of the IPv4 prefix, 1 to 32. @default 32 */
  prefix4?: Option<number, number> = countOption(32, { min: 1, max: 32 })
}

/** Options of `ip`. */
export interface IpOptions extends OptionsOf<IpTable> {}

/** The key shared by all invalid addresses: a client could make up any number of them. */
const invalidIp = '@ip/invalid'

/**
 * The client's address, according to the framework's proxy settings. The key is `@ip/` and the
 * canonical address, such as `@ip/203.0.113.9` or `@ip/2001:db8:1:2::/64`.
 */
export function ip(options: IpOptions = {}): IdentityResolver<unknown> {
  const prefixes = readOptions(new IpTable(), options, 'ip')
  const known = new Map<string, string>()
  return defineIdentity(
    (_native: unknown, { ip: address }) => {
      if (address === undefined) return undefined
      return known.get(address) ?? remember(known, address, keyOfIp(address, prefixes))
    },
    (address: string) => keyOfIp(addressText(address, 'ip().keyOf(address)'), prefixes),
    'address',
  )
}

/**
 * Returns the key under which `ip()` with the same options counts an address, for
 * `limiter.reset(ipKey('203.0.113.9'))`. All invalid addresses share one key; they do not throw,
 * since they may come from a client.
 * @throws SluiceError for a value that is not a string
 */
export function ipKey(address: string, options: IpOptions = {}): string {
  return keyOfIp(addressText(address, 'ipKey(address)'), readOptions(new IpTable(), options, 'ip'))
}

function addressText(address: unknown, option: string): string {
  if (typeof address === 'string') return address
  throw invalid({ option }, address, `an address as a string, such as '203.0.113.9'`)
}

function keyOfIp(address: string, prefixes: IpPrefixes): string {
  const canonical = canonicalIp(address, prefixes)
  return canonical === undefined ? invalidIp : `@ip/${canonical}`
}
