import { invalid, isOptions, knownFields } from '@sluice/core'
import { AddressSet } from './address-set.ts'

/** Whom a list names. */
export interface AccessListOptions {
  /** Addresses and networks: `203.0.113.9`, `10.0.0.0/8`, `2001:db8::/32`. @default none */
  readonly ips?: readonly string[]
  /** Keys, as `limiter.reset` takes them: `@key/partner`, `@user/42`, and the texts of your own key functions. @default none */
  readonly keys?: readonly string[]
}

/** The clients that `allow`, or `block`, names. */
export class AccessList implements AccessListOptions {
  readonly ips: readonly string[]
  readonly keys: readonly string[]
  readonly #addresses: AddressSet
  readonly #keys: ReadonlySet<string>

  /**
   * @param option what the list is called, for messages
   * @throws SluiceError that names the entry which is no address, network or key
   */
  static read(options: AccessListOptions, option: string): AccessList {
    return options instanceof AccessList ? options : new AccessList(options, option)
  }

  private constructor(options: AccessListOptions, option: string) {
    if (!isOptions(options)) {
      throw invalid({ option }, options, `a plain object of lists, as in { ips: ['10.0.0.0/8'] }`)
    }
    knownFields(options, option, ['ips', 'keys'])
    this.ips = entries(options.ips, `${option}.ips`)
    this.keys = entries(options.keys, `${option}.keys`)
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
