import { invalid, isOptions, knownFields } from '@sluice/core'
import type { KeyOrMode } from '../keys/missing-key.ts'
import type { HttpRequest } from '../request/exchange.ts'
import { AddressSet } from './address-set.ts'

export type Access = 'allow' | 'block' | 'unlisted'

/** The clients on a list. */
export interface AccessListOptions {
  /** Addresses and networks: `203.0.113.9`, `10.0.0.0/8`, `2001:db8::/32`. @default none */
  readonly ips?: readonly string[] | undefined
  /** Keys as in `limiter.reset`: `@key/partner`, `@user/42`. @default none */
  readonly keys?: readonly string[] | undefined
}

export class AccessList implements AccessListOptions {
  readonly ips: readonly string[]
  readonly keys: readonly string[]
  readonly addresses: AddressSet
  readonly keySet: ReadonlySet<string>

  constructor({ ips, keys }: AccessListOptions, option: string) {
    this.ips = entries(ips, `${option}.ips`)
    this.keys = entries(keys, `${option}.keys`)
    this.addresses = new AddressSet(this.ips, `${option}.ips`)
    for (const [index, key] of this.keys.entries()) {
      if (typeof key === 'string' && key !== '') continue
      throw invalid({ option: `${option}.keys[${index}]` }, key, 'a key: a non-empty string')
    }
    this.keySet = new Set(this.keys)
  }
}

function entries(list: readonly string[] | undefined, option: string): readonly string[] {
  if (list === undefined) return []
  if (Array.isArray(list)) return [...list]
  throw invalid({ option }, list, 'an array')
}

/**
 * Parses a list, unless it is already parsed: route guards inherit the lists of their guard, so
 * that thousands of entries are parsed once.
 * @throws SluiceError that names an entry that is not an address, network or key
 */
export function readList(
  options: AccessListOptions | undefined,
  option: string,
): AccessList | undefined {
  if (options === undefined || options instanceof AccessList) return options
  if (!isOptions(options)) {
    throw invalid({ option }, options, `a plain object of lists, as in { ips: ['10.0.0.0/8'] }`)
  }
  knownFields(options, option, ['ips', 'keys'])
  return new AccessList(options, option)
}

const nobody = new AccessList({}, 'nobody')

/** Clients that pass uncounted, and clients that are refused, even if they are on both lists. */
export class AccessLists {
  readonly #allow: AccessList
  readonly #block: AccessList

  constructor(allow: AccessList = nobody, block: AccessList = nobody) {
    this.#allow = allow
    this.#block = block
  }

  /** Reads the address only if there is something to compare it with. */
  ofAddress(request: HttpRequest): Access {
    if (this.#block.ips.length === 0 && this.#allow.ips.length === 0) return 'unlisted'
    const address = request.ip
    if (address === undefined) return 'unlisted'
    if (this.#block.addresses.has(address)) return 'block'
    return this.#allow.addresses.has(address) ? 'allow' : 'unlisted'
  }

  /** Returns whether a client with an allowed address may still be blocked by its key. */
  get blockKeys(): boolean {
    return this.#block.keys.length > 0
  }

  /** @param access the result for the address */
  ofKeys(keys: readonly KeyOrMode[], access: Access): Access {
    let known = access
    for (const found of keys) {
      if (typeof found === 'string') continue
      if (this.#block.keySet.has(found.key)) return 'block'
      if (this.#allow.keySet.has(found.key)) known = 'allow'
    }
    return known
  }
}
