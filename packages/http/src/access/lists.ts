import { invalid, isOptions, knownFields } from '@sluice/core'
import type { KeyOrMode } from '../keys/missing-key.ts'
import type { HttpRequest } from '../request/request.ts'
import { AddressSet } from './address-set.ts'

/** The answer of the lists for a client. */
export type Access = 'allow' | 'block' | 'unlisted'

/** The clients that pass uncounted, and those that are refused, even if both lists name them. */
export class AccessLists {
  readonly #allow: AccessList
  readonly #block: AccessList

  constructor(allow: AccessList | undefined, block: AccessList | undefined) {
    this.#allow = allow ?? AccessList.read({}, 'allow')
    this.#block = block ?? AccessList.read({}, 'block')
  }

  /** Reads the address only where there is something to compare it with. */
  ofAddress(request: HttpRequest): Access {
    if (!this.#block.hasAddresses && !this.#allow.hasAddresses) return 'unlisted'
    const address = request.ip
    if (address === undefined) return 'unlisted'
    if (this.#block.hasAddress(address)) return 'block'
    return this.#allow.hasAddress(address) ? 'allow' : 'unlisted'
  }

  /** Tells whether a client with an allowed address may still be blocked by its key. */
  get blockKeys(): boolean {
    return this.#block.hasKeys
  }

  /** @param access what the address says */
  ofKeys(keys: readonly KeyOrMode[], access: Access): Access {
    let known = access
    for (const found of keys) {
      if (typeof found === 'string') continue
      if (this.#block.hasKey(found.key)) return 'block'
      if (this.#allow.hasKey(found.key)) known = 'allow'
    }
    return known
  }
}

/**
 * The parsed lists of a guard's options. The guards of its routes inherit them, so that thousands
 * of entries are parsed once.
 * @throws SluiceError that names the entry which is wrong
 */
export function readLists({ allow, block }: ListOptions): ListOptions {
  return {
    ...(allow !== undefined && { allow: AccessList.read(allow, 'allow') }),
    ...(block !== undefined && { block: AccessList.read(block, 'block') }),
  }
}

interface ListOptions {
  readonly allow?: AccessListOptions | undefined
  readonly block?: AccessListOptions | undefined
}

/** `undefined` where there are none: as for most guards. */
export function accessLists({
  allow,
  block,
}: {
  readonly allow: AccessList | undefined
  readonly block: AccessList | undefined
}): AccessLists | undefined {
  return allow || block ? new AccessLists(allow, block) : undefined
}

/** The clients that a list names. */
export interface AccessListOptions {
  /** Addresses and networks: `203.0.113.9`, `10.0.0.0/8`, `2001:db8::/32`. @default none */
  readonly ips?: readonly string[] | undefined
  /** Keys, as `limiter.reset` takes them: `@key/partner`, `@user/42`. @default none */
  readonly keys?: readonly string[] | undefined
}

/** The clients that `allow`, or `block`, names. */
export class AccessList implements AccessListOptions {
  readonly ips: readonly string[]
  readonly keys: readonly string[]
  readonly #addresses: AddressSet
  readonly #keys: ReadonlySet<string>

  /** @throws SluiceError that names the entry which is no address, network or key */
  static read(options: unknown, option: string): AccessList {
    if (options instanceof AccessList) return options
    if (!isOptions(options)) {
      throw invalid({ option }, options, `a plain object of lists, as in { ips: ['10.0.0.0/8'] }`)
    }
    knownFields(options, option, ['ips', 'keys'])
    return new AccessList(options, option)
  }

  private constructor({ ips, keys }: AccessListOptions, option: string) {
    this.ips = entries(ips, `${option}.ips`)
    this.keys = entries(keys, `${option}.keys`)
    this.#addresses = new AddressSet(this.ips, `${option}.ips`)
    for (const [index, key] of this.keys.entries()) {
      if (typeof key === 'string' && key !== '') continue
      throw invalid({ option: `${option}.keys[${index}]` }, key, 'a key: text that is not empty')
    }
    this.#keys = new Set(this.keys)
  }

  hasAddress(address: string): boolean {
    return this.#addresses.has(address)
  }

  get hasAddresses(): boolean {
    return this.ips.length > 0
  }

  get hasKeys(): boolean {
    return this.#keys.size > 0
  }

  hasKey(key: string): boolean {
    return this.#keys.has(key)
  }
}

function entries(list: readonly string[] | undefined, option: string): readonly string[] {
  if (list === undefined) return []
  if (Array.isArray(list)) return [...list]
  throw invalid({ option }, list, 'an array')
}
